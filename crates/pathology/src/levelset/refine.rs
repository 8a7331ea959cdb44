//! l6: moves the contours again, which grows nuclei back after declumping, and fills holes.

use super::{CURVATURE_WEIGHT, HEMATOXYLIN_IMAGE};
use crate::kernels::{Connectivity, components::fill_holes, level_set::evolve};
use crate::typed_operation::{Arguments, Inputs, TypedOperation, port};
use pleach_regions::{DataRegion, ElementType};
use pleach_workflow::OperationError;

pub(crate) const REFINE: TypedOperation = TypedOperation {
    name: "levelset.refine",
    version: 1,
    arguments: &[CURVATURE_WEIGHT],
    inputs: &[HEMATOXYLIN_IMAGE, port("declumped", ElementType::Mask)],
    outputs: &[port("mask", ElementType::Mask)],
    nanoseconds_a_pixel: 200.0,
    bytes_a_pixel: 22.5,
    fixed_bytes: 0,
    within_core: None,
    device: None,
    run,
};

/// Number of steps, as in the published program.
const ITERATIONS: u32 = 50;

fn run(inputs: &Inputs<'_>, arguments: &Arguments<'_>) -> Result<Vec<DataRegion>, OperationError> {
    let width = inputs.width();
    let mask = evolve(inputs.pixels(0)?, inputs.pixels(1)?, width, arguments.real(0), ITERATIONS);
    Ok(vec![inputs.mask(fill_holes(&mask, width, Connectivity::Four))?])
}
