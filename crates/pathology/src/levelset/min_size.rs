//! l4: removes objects that are too small for nuclei.

use super::{AREA_UM2, MPP};
use crate::kernels::{Connectivity, components::filter_by_area};
use crate::typed_operation::{Arguments, Inputs, TypedOperation, argument, port};
use pleach_regions::{DataRegion, ElementType};
use pleach_workflow::OperationError;

pub(crate) const MIN_SIZE: TypedOperation = TypedOperation {
    name: "levelset.min-size",
    version: 1,
    arguments: &[argument("sizeThld", AREA_UM2), MPP],
    inputs: &[port("contoured", ElementType::Mask)],
    outputs: &[port("sized", ElementType::Mask)],
    nanoseconds_a_pixel: 0.4,
    bytes_a_pixel: 1.3,
    fixed_bytes: 0,
    within_core: None,
    device: None,
    run,
};

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the whole part of 0 to 1e15")]
fn run(inputs: &Inputs<'_>, arguments: &Arguments<'_>) -> Result<Vec<DataRegion>, OperationError> {
    let mpp = arguments.real(1);
    let least = (arguments.real(0) / (mpp * mpp)) as u64;
    let kept = filter_by_area(inputs.pixels(0)?, inputs.width(), Connectivity::Four, least..u64::MAX);
    Ok(vec![inputs.mask(kept)?])
}
