//! l5: cuts clumps of nuclei apart, by mean shift or by watershed.

use super::{AREA_UM2, MPP};
use crate::kernels::Connectivity;
use crate::kernels::components::Components;
use crate::kernels::label_boundaries::{erode_boundaries, perimeters};
use crate::kernels::mean_shift::parts;
use crate::nuclei::separated;
use crate::typed_operation::{Arguments, Inputs, TypedOperation, argument, port};
use pleach_regions::{DataRegion, ElementType};
use pleach_workflow::{Accepts, OperationError};

pub(crate) const DECLUMP: TypedOperation = TypedOperation {
    name: "levelset.declump",
    version: 1,
    arguments: &[
        // 0: none, 1: mean shift, 2: watershed.
        argument("Declump", Accepts::OneOf(&[0, 1, 2])),
        argument("sizeUpperThld", AREA_UM2),
        // Kernels of mean shift from 1 px up to the longest side of a tile.
        argument("msKernel", Accepts::Reals { low: 1.0, high: 65_536.0 }),
        MPP,
    ],
    inputs: &[port("sized", ElementType::Mask), port("normalized", ElementType::Bgr8)],
    outputs: &[port("declumped", ElementType::Mask)],
    nanoseconds_a_pixel: 20.0,
    bytes_a_pixel: 6.0,
    fixed_bytes: 0,
    within_core: None,
    device: None,
    run,
};

/// Mean shift splits objects whose squared perimeter is at least this many times their area. A disk has 4π, 12.6.
const MAX_SHAPE: f64 = 30.0;

/// Smallest object in the watershed, pixels: the default of `minSizePl` in the nuclei workflow.
const MIN_WATERSHED_PX: u64 = 30;

fn run(inputs: &Inputs<'_>, arguments: &Arguments<'_>) -> Result<Vec<DataRegion>, OperationError> {
    let (mask, width) = (inputs.pixels(0)?, inputs.width());
    let mpp = arguments.real(3);
    let declumped = match arguments.byte(0) {
        0 => mask.to_vec(),
        1 => shifted_apart(mask, width, arguments.real(1) / (mpp * mpp), arguments.real(2)),
        _ => separated(mask, inputs.pixels(1)?, width, MIN_WATERSHED_PX, Connectivity::Eight)?,
    };
    Ok(vec![inputs.mask(declumped)?])
}

/// Splits objects of more than `max_area` pixels and those of an uneven shape by mean shift, and removes the boundary
/// pixels of every object. l6 grows them again.
#[expect(clippy::cast_precision_loss, reason = "areas of a tile are far below 2^53")]
fn shifted_apart(mask: &[u8], width: usize, max_area: f64, radius: f64) -> Vec<u8> {
    let objects = Components::of_objects(mask, width, Connectivity::Four);
    let mut labels = vec![0_u32; mask.len()];
    objects.for_each_run(|run, object| labels[run].fill(object + 1));
    let mut next_label = objects.count() as u32 + 1;
    let perimeters = perimeters(&labels, width, next_label - 1);
    let areas = objects.areas();
    let is_clump: Vec<bool> = areas
        .iter()
        .zip(&perimeters[1..])
        .map(|(&area, perimeter)| area as f64 > max_area || perimeter * perimeter / area as f64 > MAX_SHAPE)
        .collect();
    // Runs come in raster order, so the pixels of each clump do as well.
    let mut clumps: Vec<Vec<[u32; 2]>> = vec![Vec::new(); objects.count()];
    objects.for_each_run(|run, object| {
        if is_clump[object as usize] {
            clumps[object as usize]
                .extend(run.map(|pixel| [pixel % width, pixel / width].map(|at| at as u32)));
        }
    });
    for pixels in clumps.iter().filter(|pixels| !pixels.is_empty()) {
        let parts = parts(pixels, radius);
        let count = parts.iter().max().map_or(0, |last| last + 1);
        if count > 1 {
            for ([x, y], part) in pixels.iter().zip(&parts) {
                labels[*y as usize * width + *x as usize] = next_label + part;
            }
            next_label += count;
        }
    }
    erode_boundaries(&labels, width)
}
