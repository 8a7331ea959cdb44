//! Stain normalization after Reinhard et al., "Color transfer between images" (2001), of the tissue in a tile.
//!
//! The result for a pixel depends only on its color, so each occurring color is computed once. `nuclei.normalize` fits
//! the transfer to its tile, and its target is that of the reference application. `nuclei.normalize-fitted` reads the
//! statistics of a slide or of another target from a table ([`StainFit`]).

mod color_table;
mod transfer;

use crate::typed_operation::{DeviceVariant, Inputs, TypedOperation, port};
use color_table::ColorTable;
use pleach_accelerate::kernels::colors::{self, CountedColor};
use pleach_accelerate::{DeviceOutput, Task};
use pleach_regions::{DataRegion, ElementType};
use pleach_workflow::{
    Accelerated, AcceleratedError, Argument, Operation, OperationError, Port, StainFit, Value,
};
pub use transfer::ColorCounts;
pub(crate) use transfer::is_tissue;
use transfer::{Transfer, converted, statistics};

/// Normalization of a tile by its own statistics.
pub(crate) struct Normalize;

const BY_TILE: TypedOperation = TypedOperation {
    name: "nuclei.normalize",
    version: 1,
    arguments: &[],
    inputs: &[port("image", ElementType::Bgr8)],
    outputs: &[port("normalized", ElementType::Bgr8)],
    nanoseconds_a_pixel: 18.0,
    bytes_a_pixel: 3.0,
    // Color table: 20 MB for a large tile of tissue, at most 64 MiB.
    fixed_bytes: 22 << 20,
    within_core: None,
    device: Some(DeviceVariant {
        // "Deconv", the operation on colors: 1096.9 / 78.15.
        gain: 14.0,
        // 3 of the image, 3 of the result, 16 of four lists of colors.
        bytes_a_pixel: 22.0,
        // A number for each of 2^24 colors.
        fixed_bytes: 64 << 20,
        run: |task, inputs, _| run_on(task, inputs, StainFit::default()),
    }),
    run: |inputs, _| run(inputs, StainFit::default()),
};

pub(crate) const FITTED: TypedOperation = TypedOperation {
    name: "nuclei.normalize-fitted",
    inputs: &[port("image", ElementType::Bgr8), port("stain", ElementType::Table)],
    device: Some(DeviceVariant {
        gain: 14.0,
        bytes_a_pixel: 22.0,
        fixed_bytes: 64 << 20,
        run: |task, inputs, _| run_on(task, inputs, fitted(inputs)?),
    }),
    run: |inputs, _| run(inputs, fitted(inputs)?),
    ..BY_TILE
};

/// Delegates to [`BY_TILE`], and names its variant with fitted values.
impl Operation for Normalize {
    fn name(&self) -> &'static str {
        BY_TILE.name
    }

    fn version(&self) -> u32 {
        BY_TILE.version
    }

    fn arguments(&self) -> &[Argument] {
        BY_TILE.arguments
    }

    fn inputs(&self) -> &[Port] {
        BY_TILE.inputs
    }

    fn outputs(&self) -> &[Port] {
        BY_TILE.outputs
    }

    fn with_stain(&self) -> Option<(&'static str, u32)> {
        Some((FITTED.name, FITTED.version))
    }

    fn cost_seconds(&self, pixels: u64) -> f64 {
        BY_TILE.cost_seconds(pixels)
    }

    fn memory_bytes(&self, pixels: u64) -> u64 {
        BY_TILE.memory_bytes(pixels)
    }

    fn run(&self, inputs: &[&DataRegion], arguments: &[Value]) -> Result<Vec<DataRegion>, OperationError> {
        BY_TILE.run(inputs, arguments)
    }

    fn accelerated(&self) -> Option<&dyn Accelerated> {
        static VARIANT: TypedOperation = BY_TILE;
        VARIANT.accelerated()
    }
}

fn fitted(inputs: &Inputs<'_>) -> Result<StainFit, OperationError> {
    let no_fit = || OperationError::Library { library: "stain", cause: "the table has no fit".into() };
    StainFit::of_table(inputs.table(1)?).ok_or_else(no_fit)
}

/// Replaces the count of each color by its new color.
fn map_colors(table: &mut ColorTable, mut fit: StainFit) {
    fit.source = fit.source.or_else(|| statistics(table));
    let transfer = Transfer::new(&fit);
    // Reuses the table: the counts are no longer needed, and each entry becomes its color's result.
    table.for_each(|rgb, entry| {
        let [b, g, r] = transfer.as_ref().map_or_else(|| converted(rgb), |transfer| transfer.apply(rgb));
        *entry = u32::from_le_bytes([b, g, r, 0]);
    });
}

/// Counts and looks pixels up on a device. Logarithms and powers are those of the host: devices round them differently.
fn run_on(
    task: &mut Task<'_>,
    inputs: &Inputs<'_>,
    fit: StainFit,
) -> Result<Vec<DeviceOutput>, AcceleratedError> {
    let (image, size) = (task.input(inputs.region(0))?, inputs.image_size(task)?);
    let normalized = colors::map_colors(task, &image, size, |counted| {
        let bgr = |counted: &CountedColor| {
            let [b, g, r, _] = counted.color.to_le_bytes();
            [b, g, r]
        };
        let pixels: Vec<[u8; 3]> = counted.iter().map(bgr).collect();
        let mut table = ColorTable::of(&pixels);
        pixels.iter().zip(counted).for_each(|(pixel, counted)| *table.entry(pixel) = counted.count);
        map_colors(&mut table, fit);
        pixels.iter().map(|pixel| *table.entry(pixel)).collect()
    })?;
    Ok(vec![inputs.bgr_on(task, normalized)?])
}

fn run(inputs: &Inputs<'_>, fit: StainFit) -> Result<Vec<DataRegion>, OperationError> {
    let (pixels, _) = inputs.pixels(0)?.as_chunks::<3>();
    let mut table = ColorTable::of(pixels);
    pixels.iter().for_each(|pixel| *table.entry(pixel) += 1);
    map_colors(&mut table, fit);
    let mut normalized = vec![0; inputs.pixels(0)?.len()];
    for (result, pixel) in normalized.as_chunks_mut::<3>().0.iter_mut().zip(pixels) {
        let [b, g, r, _] = table.entry(pixel).to_le_bytes();
        *result = [b, g, r];
    }
    Ok(vec![inputs.bgr(normalized)?])
}
