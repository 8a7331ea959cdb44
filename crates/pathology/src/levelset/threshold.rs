//! l2: tissue as dark as nuclei, by Otsu's level of the hematoxylin image.

use super::HEMATOXYLIN_IMAGE;
use crate::kernels::otsu::otsu;
use crate::typed_operation::{Arguments, Inputs, RATIO, TypedOperation, argument, port};
use pleach_regions::{DataRegion, ElementType};
use pleach_workflow::OperationError;

pub(crate) const THRESHOLD: TypedOperation = TypedOperation {
    name: "levelset.threshold",
    version: 1,
    arguments: &[argument("otsuRatio", RATIO)],
    inputs: &[HEMATOXYLIN_IMAGE, port("tissue", ElementType::Mask)],
    outputs: &[port("candidates", ElementType::Mask)],
    nanoseconds_a_pixel: 1.5,
    bytes_a_pixel: 1.0,
    fixed_bytes: 0,
    within_core: None,
    device: None,
    run,
};

fn run(inputs: &Inputs<'_>, arguments: &Arguments<'_>) -> Result<Vec<DataRegion>, OperationError> {
    let (hematoxylin, tissue) = (inputs.pixels(0)?, inputs.pixels(1)?);
    // An image of one value has no level, and so no nuclei.
    let limit = otsu(hematoxylin).map_or(-1.0, |level| arguments.real(0) * f64::from(level));
    let is_candidate: [bool; 256] = std::array::from_fn(|value| value as f64 <= limit);
    let candidate = |(value, tissue): (&u8, &u8)| {
        if *tissue != 0 && is_candidate[usize::from(*value)] { 255 } else { 0 }
    };
    Ok(vec![inputs.mask(hematoxylin.iter().zip(tissue).map(candidate).collect())?])
}
