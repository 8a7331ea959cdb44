//! Comparison with the reference on the window of a slide's tile. Pixels count within the core, and objects if their
//! centroid is in the core, so that objects on a border count once. `objects/owned.rs` defines how tiles share a pair.

use super::{COUNTED_MASKS, COUNTED_OBJECTS, PIXELS_GAIN, count, masks_within, metrics, owned_metrics};
use crate::objects::compare_owned;
use crate::typed_operation::{Arguments, DeviceVariant, Inputs, TypedOperation, port};
use pleach_regions::{DataRegion, ElementType};
use pleach_workflow::OperationError;

pub(crate) const CORE_MASKS: TypedOperation = TypedOperation {
    name: "compare.core-masks",
    version: 1,
    arguments: &[],
    inputs: &[
        port("mask", ElementType::Mask),
        port("reference", ElementType::Mask),
        port("core", ElementType::Table),
    ],
    outputs: &[port("metrics", ElementType::Table)],
    nanoseconds_a_pixel: 0.2,
    bytes_a_pixel: 0.0,
    fixed_bytes: 0,
    within_core: Some(&COUNTED_MASKS),
    device: Some(DeviceVariant {
        gain: PIXELS_GAIN,
        // Both masks.
        bytes_a_pixel: 2.0,
        fixed_bytes: 1 << 10,
        run: |task, inputs, _| masks_within(task, inputs, inputs.core(2)?),
    }),
    run: masks,
};

pub(crate) const OWNED_OBJECTS: TypedOperation = TypedOperation {
    name: "compare.owned-objects",
    version: 1,
    arguments: &[],
    inputs: &[
        port("mask", ElementType::Mask),
        port("reference", ElementType::Labels),
        port("core", ElementType::Table),
    ],
    outputs: &[port("object_metrics", ElementType::Table)],
    // Same cost as without a core: objects that the tile does not own are compared too.
    nanoseconds_a_pixel: 2.5,
    bytes_a_pixel: 2.0,
    fixed_bytes: 0,
    within_core: Some(&COUNTED_OBJECTS),
    device: None,
    run: objects,
};

fn masks(inputs: &Inputs<'_>, _: &Arguments<'_>) -> Result<Vec<DataRegion>, OperationError> {
    let (mask, reference, core) = (inputs.pixels(0)?, inputs.pixels(1)?, inputs.core(2)?);
    let (mut both, mut either) = (0, 0);
    for row in core.y_px as usize..(core.y_px + core.height_px) as usize {
        let start = row * inputs.width() + core.x_px as usize;
        let row = start..start + core.width_px as usize;
        let (in_both, in_either) = count(&mask[row.clone()], &reference[row]);
        both += in_both;
        either += in_either;
    }
    Ok(vec![DataRegion::Table(metrics(both, either))])
}

fn objects(inputs: &Inputs<'_>, _: &Arguments<'_>) -> Result<Vec<DataRegion>, OperationError> {
    let compared = compare_owned(&inputs.objects(0)?, &inputs.objects(1)?, inputs.core(2)?);
    Ok(owned_metrics(&compared))
}
