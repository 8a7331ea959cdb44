//! t4: removes candidates that are too small or too large.

use crate::kernels::{Connectivity, components::filter_by_area};
use crate::typed_operation::{AREA, Arguments, Inputs, TypedOperation, argument, port};
use pleach_regions::{DataRegion, ElementType};
use pleach_workflow::OperationError;

pub(crate) const CANDIDATE_AREA: TypedOperation = TypedOperation {
    name: "nuclei.candidate-area",
    version: 1,
    arguments: &[argument("minSize", AREA), argument("maxSize", AREA)],
    inputs: &[port("bw1", ElementType::Mask)],
    outputs: &[port("bw1_t", ElementType::Mask)],
    nanoseconds_a_pixel: 0.5,
    bytes_a_pixel: 1.3,
    fixed_bytes: 0,
    within_core: None,
    device: None,
    run,
};

fn run(inputs: &Inputs<'_>, arguments: &Arguments<'_>) -> Result<Vec<DataRegion>, OperationError> {
    let areas = arguments.area(0)..arguments.area(1);
    let kept = filter_by_area(inputs.pixels(0)?, inputs.width(), Connectivity::Eight, areas);
    Ok(vec![inputs.mask(kept)?])
}
