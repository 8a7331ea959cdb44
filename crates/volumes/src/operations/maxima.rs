//! Local maxima as points.

use super::{bytes, fail, reals, seconds, sides};
use pleach_regions::{DataRegion, ElementType, Points};
use pleach_workflow::{Accepts, Argument, DeclaredOperation, Port};

/// Pixels of at least `threshold` that no neighbor exceeds (8 in a plane, 26 in a stack), as points at their centers. Of
/// equal neighbors, the one before the others is one: along z, then y, then x. Bounds: a halo of 1 pixel.
pub(super) const MAXIMA: DeclaredOperation = DeclaredOperation {
    name: "volume.maxima",
    version: 1,
    arguments: &[Argument { name: "threshold", accepts: Accepts::Reals { low: 0.0, high: 1e9 } }],
    inputs: &[Port { name: "reals", element: ElementType::ArrayF32 }],
    outputs: &[Port { name: "points", element: ElementType::Points }],
    cost_seconds: |pixels| seconds(40.0, pixels),
    memory_bytes: |pixels| bytes(4, pixels),
    run: |inputs, arguments| {
        let (array, values) = reals(inputs[0])?;
        let (sides, threshold) = (sides(array), arguments[0].as_f64());
        let axes = array.extents().len();
        let mut coordinates = Vec::new();
        for (place, value) in values.iter().enumerate().filter(|(_, value)| f64::from(**value) >= threshold) {
            let at = [place % sides[0], place / sides[0] % sides[1], place / sides[0] / sides[1]];
            if is_maximum(values, sides, at, *value) {
                coordinates.extend(at[..axes].iter().map(|coordinate| *coordinate as f64));
            }
        }
        // An array has at most three axes.
        Ok(vec![DataRegion::Points(Points::new(axes as u8, coordinates).map_err(fail)?)])
    },
};

fn is_maximum(values: &[f32], sides: [usize; 3], at: [usize; 3], value: f32) -> bool {
    let range = |axis: usize| at[axis].saturating_sub(1)..=(at[axis] + 1).min(sides[axis] - 1);
    let place = |x: usize, y: usize, z: usize| (z * sides[1] + y) * sides[0] + x;
    let own = place(at[0], at[1], at[2]);
    range(2).all(|z| {
        range(1).all(|y| {
            range(0).all(|x| {
                let other = place(x, y, z);
                other == own || values[other] < value || (values[other] == value && other > own)
            })
        })
    })
}
