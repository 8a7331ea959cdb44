//! Labels of the objects of a mask, which all later operations number alike.

use super::OBJECTS;
use crate::typed_operation::{Arguments, Inputs, TypedOperation, port};
use pleach_regions::{DataRegion, ElementType};
use pleach_workflow::OperationError;

/// Numbers the connected components (8 neighbors) from 1, in raster order of their first pixels. A label map passes as it is.
pub(crate) const LABELS: TypedOperation = TypedOperation {
    name: "features.labels",
    version: 1,
    arguments: &[],
    inputs: &[port("mask", ElementType::Labels)],
    outputs: &[OBJECTS],
    nanoseconds_a_pixel: 2.0,
    bytes_a_pixel: 4.5,
    fixed_bytes: 0,
    within_core: None,
    device: None,
    run,
};

fn run(inputs: &Inputs<'_>, _: &Arguments<'_>) -> Result<Vec<DataRegion>, OperationError> {
    if let Some(given) = inputs.labels(0) {
        return Ok(vec![inputs.label_map(given.to_vec())?]);
    }
    let objects = inputs.objects(0)?;
    let mut labels = vec![0; inputs.width() * inputs.height()];
    for object in 0..objects.count() {
        for pixels in objects.pixels_of(object) {
            // Fewer objects than pixels, which 32 bits number.
            labels[pixels].fill(object as u32 + 1);
        }
    }
    Ok(vec![inputs.label_map(labels)?])
}
