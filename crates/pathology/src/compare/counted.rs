//! Comparison with the reference on the pixels that count: those of a tile's core within a region of interest. An object
//! counts if its centroid is such a pixel, on both sides alike.

use super::{PIXELS_GAIN, count, metrics, owned_metrics};
use crate::objects::compare_counted;
use crate::typed_operation::{Arguments, DeviceVariant, Inputs, TypedOperation, port};
use pleach_accelerate::kernels::overlap::{Extent, count_overlap};
use pleach_accelerate::{DeviceOutput, Task};
use pleach_regions::{DataRegion, ElementType};
use pleach_workflow::{AcceleratedError, OperationError};

pub(crate) const COUNTED_MASKS: TypedOperation = TypedOperation {
    name: "compare.counted-masks",
    version: 1,
    arguments: &[],
    inputs: &[
        port("mask", ElementType::Mask),
        port("reference", ElementType::Mask),
        port("counted", ElementType::Mask),
    ],
    outputs: &[port("metrics", ElementType::Table)],
    nanoseconds_a_pixel: 0.8,
    bytes_a_pixel: 2.0,
    fixed_bytes: 0,
    within_core: None,
    device: Some(DeviceVariant {
        gain: PIXELS_GAIN,
        // Three masks.
        bytes_a_pixel: 3.0,
        fixed_bytes: 1 << 10,
        run: masks_on,
    }),
    run: masks,
};

pub(crate) const COUNTED_OBJECTS: TypedOperation = TypedOperation {
    name: "compare.counted-objects",
    version: 1,
    arguments: &[],
    inputs: &[
        port("mask", ElementType::Mask),
        port("reference", ElementType::Labels),
        port("counted", ElementType::Mask),
    ],
    outputs: &[port("object_metrics", ElementType::Table)],
    // Same cost as without regions: objects that do not count are compared too.
    nanoseconds_a_pixel: 2.5,
    bytes_a_pixel: 2.0,
    fixed_bytes: 0,
    within_core: None,
    device: None,
    run: objects,
};

fn masks(inputs: &Inputs<'_>, _: &Arguments<'_>) -> Result<Vec<DataRegion>, OperationError> {
    let (mask, reference, counted) = (inputs.pixels(0)?, inputs.pixels(1)?, inputs.pixels(2)?);
    let within = |pixels: &[u8]| -> Vec<u8> {
        pixels.iter().zip(counted).map(|(pixel, counted)| pixel & counted).collect()
    };
    let (both, either) = count(&within(mask), &within(reference));
    Ok(vec![DataRegion::Table(metrics(both, either))])
}

fn masks_on(
    task: &mut Task<'_>,
    inputs: &Inputs<'_>,
    _: &Arguments<'_>,
) -> Result<Vec<DeviceOutput>, AcceleratedError> {
    let (mask, reference) = (task.input(inputs.region(0))?, task.input(inputs.region(1))?);
    let (counted, size) = (task.input(inputs.region(2))?, inputs.image_size(task)?);
    let [both, either] = count_overlap(task, [&mask, &reference], size, Extent::Counted(&counted))?;
    Ok(vec![DeviceOutput::Host(DataRegion::Table(metrics(both, either)))])
}

fn objects(inputs: &Inputs<'_>, _: &Arguments<'_>) -> Result<Vec<DataRegion>, OperationError> {
    Ok(owned_metrics(&compare_counted(&inputs.objects(0)?, &inputs.objects(1)?, inputs.pixels(2)?)))
}
