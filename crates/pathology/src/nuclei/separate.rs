//! t6: cuts touching nuclei apart along watershed lines.

use super::{NORMALIZED, opencv};
use crate::kernels::components::{Components, filter_by_area};
use crate::kernels::distance::distance_to_background;
use crate::kernels::morphology::{StructuringElement, dilate};
use crate::kernels::reconstruct::reconstruct;
use crate::kernels::{Connectivity, watershed};
use crate::typed_operation::{AREA, Arguments, CONNECTIVITY, Inputs, TypedOperation, argument, port};
use pleach_regions::{DataRegion, ElementType};
use pleach_workflow::OperationError;

pub(crate) const SEPARATE: TypedOperation = TypedOperation {
    name: "nuclei.separate",
    version: 1,
    arguments: &[argument("minSizePl", AREA), argument("Watershed", CONNECTIVITY)],
    inputs: &[port("seg_open", ElementType::Mask), NORMALIZED],
    outputs: &[port("seg_nonoverlap", ElementType::Mask)],
    nanoseconds_a_pixel: 22.0,
    bytes_a_pixel: 10.5,
    fixed_bytes: 0,
    within_core: None,
    device: None,
    run,
};

fn run(inputs: &Inputs<'_>, arguments: &Arguments<'_>) -> Result<Vec<DataRegion>, OperationError> {
    let (mask, normalized) = (inputs.pixels(0)?, inputs.pixels(1)?);
    let (least, connectivity) = (arguments.area(0), arguments.connectivity(1));
    Ok(vec![inputs.mask(separated(mask, normalized, inputs.width(), least, connectivity)?)?])
}

/// Returns the mask with its objects of at least `least` pixels dilated and cut along the watershed lines of the color
/// image `normalized`.
pub(crate) fn separated(
    mask: &[u8],
    normalized: &[u8],
    width: usize,
    least: u64,
    connectivity: Connectivity,
) -> Result<Vec<u8>, OperationError> {
    let large = filter_by_area(mask, width, Connectivity::Eight, least..u64::MAX);
    let seg_big = dilate(&large, width, StructuringElement::Cross).map_err(opencv)?;
    // Planes are dropped once read: `bytes_a_pixel` declares the peak, and admission relies on it.
    drop(large);

    let Some(seeds) = seeds(&seg_big, width, connectivity) else {
        // Without background no distance exists, so no line can be placed.
        return Ok(seg_big);
    };
    let mut labels = vec![watershed::UNLABELED; seg_big.len()];
    Components::of_objects(&seeds, width, connectivity).for_each_run(|run, component| {
        labels[run].fill(1 + component as i32);
    });
    drop(seeds);
    watershed::watershed(normalized, &seg_big, &mut labels, width);
    Ok(watershed::keep_off_lines(&labels, &seg_big, width))
}

/// Returns the seeds of the flooding: the regional minima of the negated distance, after minima shallower
/// than 1 px are filled, and the whole background. Returns `None` without background.
///
/// The original program finds minima with a rule for integers, an additional depth of 1. A nucleus that is nowhere more
/// than 2 px from the background therefore has no seed and becomes background.
fn seeds(seg_big: &[u8], width: usize, connectivity: Connectivity) -> Option<Vec<u8>> {
    // MAX − 1 is MAX in f32: the background is its own marker, and never below its mask.
    let distance = distance_to_background(seg_big, width, f32::MAX)?;
    let mut filled: Vec<f32> = distance.iter().map(|distance| distance - 1.0).collect();
    reconstruct(&mut filled, &distance, width, Connectivity::Eight);
    let mut lowered = distance;
    for (lowered, filled) in lowered.iter_mut().zip(&filled) {
        *lowered = filled - 1.0;
    }
    reconstruct(&mut lowered, &filled, width, connectivity);
    let is_seed = |(lowered, filled): (&f32, &f32)| if *lowered == filled - 1.0 { 255 } else { 0 };
    Some(lowered.iter().zip(&filled).map(is_seed).collect())
}
