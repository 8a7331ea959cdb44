//! Synthetic H&E tissue: tiles of dense glioma-like tissue with the exact label map of their nuclei.
//!
//! A tile is drawn in four steps, one file each. `appearance` draws the properties of the slide (stain, focus,
//! density). `layout` places nuclei, red blood cells and vacuoles. `labels` assigns pixels to nuclei. `optics` turns
//! bands of rows that `paint` has filled with amounts of stain into pixels. Stains absorb by Beer and Lambert's law.
//! Their vectors and amounts were measured on the annotated glioma tiles of the project's data.
//!
//! The same (seed, index, size) gives the same bytes on every platform: random numbers come from ChaCha8 and integer
//! hashes, and the arithmetic is IEEE `+ − × ÷ √ floor` only, without functions of the platform's mathematical library.
//!
//! The tiles exercise segmentation. They do not claim diagnostic realism.

mod appearance;
mod arithmetic;
mod labels;
mod layout;
mod noise;
mod nucleus;
mod optics;
mod paint;
pub mod slide;

use arithmetic::Draw;
use pleach_regions::{Raster, ShapeError};
use thiserror::Error;

/// Smallest side of a tile, pixels: 2 or 3 nuclei across.
pub const MIN_SIZE_PX: u32 = 64;
/// Largest side of a tile, pixels: keeps the number of nuclei of the densest tile (about 33,000) within 16-bit labels.
pub const MAX_SIZE_PX: u32 = 8192;

/// A synthetic tile and its exact label map.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SyntheticTile {
    /// The image: square, 3 channels, B, G, R.
    pub image: Raster,
    /// Label map of the nuclei in the image.
    pub labels: NucleusLabels,
}

/// A label map of nuclei: 0 is background, every label of `1..=count` occurs and is one 4-connected nucleus.
///
/// Red blood cells are background. Where two nuclei overlap, the pixel belongs to the smaller label.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NucleusLabels {
    /// Width, pixels.
    pub width: u32,
    /// Height, pixels.
    pub height: u32,
    /// Labels, row-major.
    pub data: Vec<u16>,
}

impl NucleusLabels {
    /// Returns the number of nuclei, which is also the largest label.
    #[must_use]
    pub fn count(&self) -> u16 {
        self.data.iter().copied().max().unwrap_or(0)
    }
}

/// Error of [`generate`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum TissueError {
    /// The size is outside [`MIN_SIZE_PX`]`..=`[`MAX_SIZE_PX`].
    #[error("tissue tile: {size_px} px; {MIN_SIZE_PX} to {MAX_SIZE_PX} px are allowed")]
    Size {
        /// The requested size, pixels.
        size_px: u32,
    },
    /// The length of the image does not fit its shape.
    #[error(transparent)]
    Shape(#[from] ShapeError),
}

/// Generates tile `index` of the slide collection `seed`: `size_px × size_px` pixels at 40× (about 0.25 µm per pixel).
///
/// Tiles of one seed differ in stain, focus and density like slides of one archive. A larger tile is not an extension
/// of a smaller one.
///
/// # Errors
/// [`TissueError::Size`] when `size_px` is outside [`MIN_SIZE_PX`]`..=`[`MAX_SIZE_PX`].
///
/// # Examples
/// ```
/// let tile = pleach_pathology::tissue::generate(7, 0, 128)?;
/// assert_eq!(tile.image.channels(), 3);
/// assert!(tile.labels.count() > 0);
/// # Ok::<(), pleach_pathology::tissue::TissueError>(())
/// ```
pub fn generate(seed: u64, index: u32, size_px: u32) -> Result<SyntheticTile, TissueError> {
    if !(MIN_SIZE_PX..=MAX_SIZE_PX).contains(&size_px) {
        return Err(TissueError::Size { size_px });
    }
    let mut draw = Draw::new(seed, index);
    let recipe = appearance::TileAppearance::draw(&mut draw);
    let mut layout = layout::Layout::draw(&recipe, size_px, &mut draw);
    let labels = labels::rasterize(&mut layout.nuclei, size_px);
    let image = optics::render(&recipe, &layout, size_px)?;
    Ok(SyntheticTile { image, labels })
}
