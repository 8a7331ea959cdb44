//! l1: the hematoxylin of a tile as a gray image, and the tissue.
//!
//! Hematoxylin is unmixed from the original tile, as in the published program: its stain vectors are those of unnormalized
//! H&E. Tissue is classified on the normalized tile.

use super::HEMATOXYLIN_IMAGE;
use crate::kernels::hematoxylin::Hematoxylin;
use crate::normalize::is_tissue;
use crate::typed_operation::{Arguments, Inputs, TypedOperation, port};
use pleach_regions::{DataRegion, ElementType};
use pleach_workflow::OperationError;

pub(crate) const HEMATOXYLIN: TypedOperation = TypedOperation {
    name: "levelset.hematoxylin",
    version: 1,
    arguments: &[],
    inputs: &[port("tile", ElementType::Bgr8), port("normalized", ElementType::Bgr8)],
    outputs: &[HEMATOXYLIN_IMAGE, port("tissue", ElementType::Mask)],
    nanoseconds_a_pixel: 14.0,
    bytes_a_pixel: 2.0,
    fixed_bytes: 0,
    within_core: None,
    device: None,
    run,
};

fn run(inputs: &Inputs<'_>, _: &Arguments<'_>) -> Result<Vec<DataRegion>, OperationError> {
    let (pixels, _) = inputs.pixels(0)?.as_chunks::<3>();
    let unmixed = Hematoxylin::new();
    let hematoxylin = pixels.iter().map(|pixel| unmixed.light(*pixel)).collect();
    let (normalized, _) = inputs.pixels(1)?.as_chunks::<3>();
    let tissue = |[b, g, r]: &[u8; 3]| if is_tissue([*r, *g, *b].map(f64::from)) { 255 } else { 0 };
    let tissue = normalized.iter().map(tissue).collect();
    Ok(vec![inputs.gray(hematoxylin)?, inputs.mask(tissue)?])
}
