//! Stain normalization after Reinhard et al., "Color transfer between images" (2001), of the tissue in a tile.
//!
//! The result for a pixel depends only on its color, so each occurring color is computed once. `nuclei.normalize` fits
//! the transfer to its tile, and its target is that of the reference application. `nuclei.normalize-fitted` reads the
//! statistics of a slide or of another target from a table ([`StainFit`]).

mod color_table;
mod transfer;

use crate::typed_operation::{Arguments, Inputs, TypedOperation, port};
use color_table::ColorTable;
use pleach_regions::{DataRegion, ElementType};
use pleach_workflow::{Argument, Operation, OperationError, Port, StainFit, Value};
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
    run: |inputs, _| run(inputs, StainFit::default()),
};

pub(crate) const FITTED: TypedOperation = TypedOperation {
    name: "nuclei.normalize-fitted",
    inputs: &[port("image", ElementType::Bgr8), port("stain", ElementType::Table)],
    run: run_fitted,
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
}

fn run_fitted(inputs: &Inputs<'_>, _: &Arguments<'_>) -> Result<Vec<DataRegion>, OperationError> {
    let no_fit = || OperationError::Library { library: "stain", cause: "the table has no fit".into() };
    run(inputs, StainFit::of_table(inputs.table(1)?).ok_or_else(no_fit)?)
}

fn run(inputs: &Inputs<'_>, mut fit: StainFit) -> Result<Vec<DataRegion>, OperationError> {
    let (pixels, _) = inputs.pixels(0)?.as_chunks::<3>();
    let mut table = ColorTable::of(pixels);
    pixels.iter().for_each(|pixel| *table.entry(pixel) += 1);

    fit.source = fit.source.or_else(|| statistics(&mut table));
    let transfer = Transfer::new(&fit);
    // Reuses the table: the counts are no longer needed, and each entry becomes its color's result.
    table.for_each(|rgb, entry| {
        let [b, g, r] = transfer.as_ref().map_or_else(|| converted(rgb), |transfer| transfer.apply(rgb));
        *entry = u32::from_le_bytes([b, g, r, 0]);
    });
    let mut normalized = vec![0; inputs.pixels(0)?.len()];
    for (result, pixel) in normalized.as_chunks_mut::<3>().0.iter_mut().zip(pixels) {
        let [b, g, r, _] = table.entry(pixel).to_le_bytes();
        *result = [b, g, r];
    }
    Ok(vec![inputs.bgr(normalized)?])
}
