//! Comparison of a mask with its reference, over pixels and over objects.
//!
//! [`crate::objects`] defines objects, pairs and their metrics. Windows with a halo use the operations of
//! `compare/core.rs` instead, and studies with regions of interest those of `compare/counted.rs`.

mod core;
mod counted;

pub(crate) use core::{CORE_MASKS, OWNED_OBJECTS};
pub(crate) use counted::{COUNTED_MASKS, COUNTED_OBJECTS};

use crate::objects::{self, OwnedComparison};
use crate::typed_operation::{Arguments, DeviceVariant, Inputs, TypedOperation, port};
use pleach_accelerate::kernels::ImageSize;
use pleach_accelerate::kernels::overlap::{Extent, count_overlap};
use pleach_accelerate::{DeviceOutput, Task};
use pleach_regions::{DataRegion, ElementType, PixelRectangle, Table};
use pleach_workflow::{AcceleratedError, OperationError};

pub(crate) const MASKS: TypedOperation = TypedOperation {
    name: "compare.masks",
    version: 1,
    arguments: &[],
    inputs: &[port("mask", ElementType::Mask), port("reference", ElementType::Mask)],
    outputs: &[port("metrics", ElementType::Table)],
    nanoseconds_a_pixel: 0.2,
    bytes_a_pixel: 0.0,
    fixed_bytes: 0,
    within_core: Some(&CORE_MASKS),
    device: Some(DeviceVariant {
        gain: PIXELS_GAIN,
        // Both masks.
        bytes_a_pixel: 2.0,
        fixed_bytes: 1 << 10,
        run: |task, inputs, _| {
            let (width_px, height_px) = (inputs.width() as u32, inputs.height() as u32);
            masks_within(task, inputs, PixelRectangle { x_px: 0, y_px: 0, width_px, height_px })
        },
    }),
    run: masks,
};

/// Declared gain of a comparison by pixels: a core reads two masks about as fast as a bus of 16 GB/s transfers them. Only masks that are on
/// the device already are worth a task there.
const PIXELS_GAIN: f64 = 1.0;

pub(crate) const OBJECTS: TypedOperation = TypedOperation {
    name: "compare.objects",
    version: 1,
    arguments: &[],
    inputs: &[port("mask", ElementType::Mask), port("reference", ElementType::Labels)],
    outputs: &[port("object_metrics", ElementType::Table)],
    // Measured on a densely packed tile: 818 nuclei in 1000 × 1000 px on either side.
    nanoseconds_a_pixel: 2.5,
    // Three copies of the runs of both images, 8 to 12 bytes each. Tissue has fewer than 1 run in 20 pixels.
    bytes_a_pixel: 2.0,
    fixed_bytes: 0,
    within_core: Some(&OWNED_OBJECTS),
    device: None,
    run: nuclei,
};

#[expect(clippy::cast_precision_loss, reason = "far fewer objects than 2^53")]
fn nuclei(inputs: &Inputs<'_>, _: &Arguments<'_>) -> Result<Vec<DataRegion>, OperationError> {
    let compared = objects::compare(&inputs.objects(0)?, &inputs.objects(1)?);
    let metrics = [
        compared.dice(),
        compared.jaccard(),
        compared.pair_dice(),
        compared.recall(),
        compared.objects as f64,
        compared.mean_area(),
    ];
    Ok(object_metrics(metrics, compared.objects + compared.reference_objects == 0))
}

/// Builds the table of metrics of a tile's objects.
#[expect(clippy::cast_precision_loss, reason = "far fewer objects than 2^53")]
fn owned_metrics(compared: &OwnedComparison) -> Vec<DataRegion> {
    let metrics = [
        compared.dice(),
        compared.jaccard(),
        compared.pair_dice(),
        compared.recall(),
        compared.objects as f64,
        compared.mean_area(),
    ];
    object_metrics(metrics, compared.objects + compared.reference_objects == 0)
}

/// Builds the table of object metrics. `both_empty` marks that neither side has objects.
fn object_metrics(values: [f64; 6], both_empty: bool) -> Vec<DataRegion> {
    let names = ["object-dice", "object-jaccard", "object-pair-dice", "object-recall", "nuclei", "mean-area"];
    let metrics = names.into_iter().zip(values);
    let both_empty = (OBJECTS_BOTH_EMPTY, f64::from(u8::from(both_empty)));
    vec![DataRegion::Table(Table::new(metrics.chain([both_empty])))]
}

/// Column beside pixel metrics: 1 if mask and reference are both empty, else 0. No workflow lists it as a metric.
const BOTH_EMPTY: &str = "both-empty";

/// The same column beside object metrics. A run that joins both tables has both columns.
const OBJECTS_BOTH_EMPTY: &str = "objects-both-empty";

/// Returns the column that marks runs whose value of this metric is 1 by convention, since mask and reference are both
/// empty. Returns `None` for metrics without such a convention.
#[must_use]
pub fn both_empty_column(metric: &str) -> Option<&'static str> {
    match metric {
        "dice" | "jaccard" => Some(BOTH_EMPTY),
        "object-dice" | "object-jaccard" | "object-pair-dice" | "object-recall" => Some(OBJECTS_BOTH_EMPTY),
        _ => None,
    }
}

fn masks(inputs: &Inputs<'_>, _: &Arguments<'_>) -> Result<Vec<DataRegion>, OperationError> {
    let (both, either) = count(inputs.pixels(0)?, inputs.pixels(1)?);
    Ok(vec![DataRegion::Table(metrics(both, either))])
}

/// Compares the masks within a rectangle, on a device.
fn masks_within(
    task: &mut Task<'_>,
    inputs: &Inputs<'_>,
    within: PixelRectangle,
) -> Result<Vec<DeviceOutput>, AcceleratedError> {
    let (mask, reference) = (task.input(inputs.region(0))?, task.input(inputs.region(1))?);
    let size = ImageSize { width_px: within.width_px, height_px: within.height_px };
    let extent = Extent::Rectangle { left_px: within.x_px, top_px: within.y_px, size };
    let [both, either] = count_overlap(task, [&mask, &reference], inputs.image_size(task)?, extent)?;
    Ok(vec![DeviceOutput::Host(DataRegion::Table(metrics(both, either)))])
}

/// Counts the pixels in both masks and the pixels in either.
fn count(mask: &[u8], reference: &[u8]) -> (u64, u64) {
    let (mut both, mut either) = (0_u64, 0_u64);
    // Counters of one byte cannot overflow within 255 pixels, and the compiler vectorizes them.
    for (a, b) in mask.chunks(255).zip(reference.chunks(255)) {
        let count = |(both, either): (u8, u8), (a, b): (&u8, &u8)| {
            let (a, b) = (u8::from(*a != 0), u8::from(*b != 0));
            (both + (a & b), either + (a | b))
        };
        let (in_both, in_either) = a.iter().zip(b).fold((0, 0), count);
        both += u64::from(in_both);
        either += u64::from(in_either);
    }
    (both, either)
}

#[expect(clippy::cast_precision_loss, reason = "a tile has far fewer than 2^53 pixels")]
fn metrics(both: u64, either: u64) -> Table {
    let (both, either) = (both as f64, either as f64);
    // Two empty masks agree by convention.
    let share = |part: f64, whole: f64| if whole == 0.0 { 1.0 } else { part / whole };
    Table::new([
        ("dice", share(2.0 * both, both + either)),
        ("jaccard", share(both, either)),
        ("pixel-difference", either - both),
        (BOTH_EMPTY, f64::from(u8::from(either == 0.0))),
    ])
}
