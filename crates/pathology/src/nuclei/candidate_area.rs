//! t4: removes candidates that are too small or too large.

use crate::kernels::{Connectivity, components::filter_by_area};
use crate::typed_operation::{AREA, Arguments, DeviceVariant, Inputs, TypedOperation, argument, port};
use pleach_accelerate::kernels::areas;
use pleach_accelerate::{DeviceOutput, Task};
use pleach_regions::{DataRegion, ElementType};
use pleach_workflow::{AcceleratedError, OperationError};

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
    device: Some(DeviceVariant {
        // "Area": 129.5 / 28.1.
        gain: 4.6,
        // The mask, 4 of labels, 4 of areas, the result.
        bytes_a_pixel: 10.0,
        fixed_bytes: 1 << 20,
        run: run_on,
    }),
    run,
};

fn run(inputs: &Inputs<'_>, arguments: &Arguments<'_>) -> Result<Vec<DataRegion>, OperationError> {
    let areas = arguments.area(0)..arguments.area(1);
    let kept = filter_by_area(inputs.pixels(0)?, inputs.width(), Connectivity::Eight, areas);
    Ok(vec![inputs.mask(kept)?])
}

fn run_on(
    task: &mut Task<'_>,
    inputs: &Inputs<'_>,
    arguments: &Arguments<'_>,
) -> Result<Vec<DeviceOutput>, AcceleratedError> {
    let (mask, size) = (task.input(inputs.region(0))?, inputs.image_size(task)?);
    let range = arguments.pixel_count(0)..arguments.pixel_count(1);
    let kept = areas::filter_by_area(task, &mask, size, true, range)?;
    Ok(vec![inputs.mask_on(task, kept)?])
}
