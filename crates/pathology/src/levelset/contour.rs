//! l3: moves the contours of the candidates to the edges of the hematoxylin image.

use super::{CURVATURE_WEIGHT, HEMATOXYLIN_IMAGE};
use crate::kernels::level_set::evolve;
use crate::typed_operation::{Arguments, Inputs, TypedOperation, argument, port};
use pleach_regions::{DataRegion, ElementType};
use pleach_workflow::{Accepts, OperationError};

pub(crate) const CONTOUR: TypedOperation = TypedOperation {
    name: "levelset.contour",
    version: 1,
    arguments: &[
        CURVATURE_WEIGHT,
        // Contours stop to move long before 100,000 steps.
        argument("iterations", Accepts::Integers { low: 0, high: 100_000 }),
    ],
    inputs: &[HEMATOXYLIN_IMAGE, port("candidates", ElementType::Mask)],
    outputs: &[port("contoured", ElementType::Mask)],
    // At 100 iterations.
    nanoseconds_a_pixel: 400.0,
    bytes_a_pixel: 22.5,
    fixed_bytes: 0,
    within_core: None,
    device: None,
    run,
};

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked to be 0 to 100,000")]
fn run(inputs: &Inputs<'_>, arguments: &Arguments<'_>) -> Result<Vec<DataRegion>, OperationError> {
    let (weight, iterations) = (arguments.real(0), arguments.real(1) as u32);
    let mask = evolve(inputs.pixels(0)?, inputs.pixels(1)?, inputs.width(), weight, iterations);
    Ok(vec![inputs.mask(mask)?])
}
