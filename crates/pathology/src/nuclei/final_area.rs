//! t7: removes separated nuclei that are too small or too large, and fills holes.

use crate::kernels::Connectivity;
use crate::kernels::components::{fill_holes, filter_by_area};
use crate::typed_operation::{AREA, Arguments, CONNECTIVITY, Inputs, TypedOperation, argument, port};
use pleach_regions::{DataRegion, ElementType};
use pleach_workflow::OperationError;

pub(crate) const FINAL_AREA: TypedOperation = TypedOperation {
    name: "nuclei.final-area",
    version: 1,
    arguments: &[
        argument("minSizeSeg", AREA),
        argument("maxSizeSeg", AREA),
        argument("FillHoles", CONNECTIVITY),
    ],
    inputs: &[port("seg_nonoverlap", ElementType::Mask)],
    outputs: &[port("mask", ElementType::Mask)],
    nanoseconds_a_pixel: 0.6,
    bytes_a_pixel: 2.3,
    fixed_bytes: 0,
    within_core: None,
    device: None,
    run,
};

fn run(inputs: &Inputs<'_>, arguments: &Arguments<'_>) -> Result<Vec<DataRegion>, OperationError> {
    let width = inputs.width();
    let areas = arguments.area(0)..arguments.area(1);
    // Four-connected, so that a line 1 px wide separates nuclei.
    let kept = filter_by_area(inputs.pixels(0)?, width, Connectivity::Four, areas);
    Ok(vec![inputs.mask(fill_holes(&kept, width, arguments.connectivity(2)))?])
}
