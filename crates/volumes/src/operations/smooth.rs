//! Smoothing: the mean of a box around each pixel.

use super::{bytes, fail, reals, seconds, sides, small};
use pleach_regions::{DataRegion, DenseArray, ElementType};
use pleach_workflow::{Accepts, Argument, DeclaredOperation, Port};

const RADIUS: Accepts = Accepts::Integers { low: 0, high: 64 };

/// Mean over the box of `radius` pixels on either side along x and y, and of `radius_z` along z, clipped at the border of
/// the image. Bounds: a halo of the radii.
///
/// Each axis is averaged by itself, each mean summed in order from the first pixel: a running sum would round
/// differently in each block.
pub(super) const SMOOTH: DeclaredOperation = DeclaredOperation {
    name: "volume.smooth",
    version: 1,
    arguments: &[
        Argument { name: "radius", accepts: RADIUS },
        Argument { name: "radius_z", accepts: RADIUS },
    ],
    inputs: &[Port { name: "reals", element: ElementType::ArrayF32 }],
    outputs: &[Port { name: "smooth", element: ElementType::ArrayF32 }],
    cost_seconds: |pixels| seconds(60.0, pixels),
    memory_bytes: |pixels| bytes(8, pixels),
    run: |inputs, arguments| {
        let (array, values) = reals(inputs[0])?;
        let radii = [small(arguments[0]), small(arguments[0]), small(arguments[1])];
        let sides = sides(array);
        let mut values = values.to_vec();
        for (axis, radius) in radii.into_iter().enumerate() {
            values = mean_along(&values, sides, axis, radius);
        }
        let smooth = DenseArray::new(array.extents(), 1, values.into());
        Ok(vec![DataRegion::Array(smooth.map_err(fail)?)])
    },
};

fn mean_along(values: &[f32], sides: [usize; 3], axis: usize, radius: usize) -> Vec<f32> {
    if radius == 0 || sides[axis] == 1 {
        return values.to_vec();
    }
    let stride: usize = sides[..axis].iter().product();
    let length = sides[axis];
    let mean = |(place, _): (usize, &f32)| {
        let at = place / stride % length;
        let (first, last) = (at.saturating_sub(radius), (at + radius).min(length - 1));
        let start = place - (at - first) * stride;
        let sum: f64 = (0..=last - first).map(|step| f64::from(values[start + step * stride])).sum();
        #[expect(clippy::cast_possible_truncation, reason = "a mean of numbers of 32 bits")]
        let mean = (sum / (last - first + 1) as f64) as f32;
        mean
    };
    values.iter().enumerate().map(mean).collect()
}
