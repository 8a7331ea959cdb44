//! l1: the hematoxylin of a tile as a gray image, and the tissue.
//!
//! Hematoxylin is unmixed from the original tile, as in the published program: its stain vectors are those of unnormalized
//! H&E. Tissue is classified on the normalized tile.

use super::HEMATOXYLIN_IMAGE;
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
    run,
};

/// Hematoxylin's row of the inverse stain matrix, for R, G, B.
const UNMIX: [f64; 3] = [1.8870768, 0.27801972, -1.55543811];

fn run(inputs: &Inputs<'_>, _: &Arguments<'_>) -> Result<Vec<DataRegion>, OperationError> {
    let hematoxylin = hematoxylin(inputs.pixels(0)?);
    let (normalized, _) = inputs.pixels(1)?.as_chunks::<3>();
    let tissue = |[b, g, r]: &[u8; 3]| if is_tissue([*r, *g, *b].map(f64::from)) { 255 } else { 0 };
    let tissue = normalized.iter().map(tissue).collect();
    Ok(vec![inputs.gray(hematoxylin)?, inputs.mask(tissue)?])
}

/// Returns the light that hematoxylin lets through, 0 (dark) to 255, of an image in B, G, R.
///
/// A channel v has the optical density −255·ln((v + 1)/255)/ln 255. The weighted sum of the densities is converted back to
/// light.
fn hematoxylin(bgr: &[u8]) -> Vec<u8> {
    let log_255 = 255_f64.ln();
    let density =
        |weight: f64| std::array::from_fn(|v| weight * (-255.0 * ((v as f64 + 1.0) / 255.0).ln() / log_255));
    let [red, green, blue]: [[f64; 256]; 3] = UNMIX.map(density);
    let (pixels, _) = bgr.as_chunks::<3>();
    let light = |[b, g, r]: &[u8; 3]| {
        let sum = red[usize::from(*r)] + green[usize::from(*g)] + blue[usize::from(*b)];
        to_byte((-(sum - 255.0) * log_255 / 255.0).exp())
    };
    pixels.iter().map(light).collect()
}

/// Rounds to an integer, half up, at most 255.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to 255")]
fn to_byte(light: f64) -> u8 {
    (light.min(255.0) + 0.5).floor() as u8
}
