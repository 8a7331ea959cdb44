//! References of tiles: read from images of their own, or cut from the annotations of a tile or slide.
//!
//! The annotations of a slide are read once by a process, and each tile draws those of its window.

mod cache;

use pleach_pathology::image_io::{self, AnnotationSet, ImageFileError};
use pleach_pathology::objects::View;
use pleach_regions::{DataRegion, ElementType, PixelRectangle};
use pleach_slides::{Slide, SlideError};
use pleach_workflow::{AnnotationPart, AnnotationRules, Real, SlideTile};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use thiserror::Error;

/// Reference file of a tile.
#[derive(Clone, Copy, Debug)]
pub struct ReferenceFile<'a> {
    /// The file.
    pub path: &'a Path,
    /// BLAKE3 digest of its content when the study began. `None` if it could not be read.
    pub digest: Option<[u8; 32]>,
    /// The tile's image, or the slide.
    pub tile: &'a Path,
    /// The tile's part of the slide.
    pub slide: Option<&'a SlideTile>,
    /// Selection of annotations.
    pub rules: &'a AnnotationRules,
}

/// Reason why a reference cannot be read.
#[derive(Debug, Error)]
pub enum ReferenceError {
    /// The reference, or the tile's header.
    #[error("{0}")]
    Image(#[from] ImageFileError),
    /// The slide's header.
    #[error("{0}")]
    Slide(#[from] SlideError),
    /// The file has other content than when the study began.
    #[error("{}: it has changed since the study began", .0.display())]
    Changed(PathBuf),
}

impl ReferenceFile<'_> {
    /// Reads the objects as a label map or mask, or the mask of the pixels that count.
    ///
    /// For a slide, verifies the digest of the file when it is read. The caller verifies that of other files.
    ///
    /// # Errors
    /// [`ReferenceError`] names the file.
    pub fn read(&self, part: AnnotationPart, wanted: ElementType) -> Result<DataRegion, ReferenceError> {
        if let Some(tile) = self.slide {
            let set = annotations(self.path, self.digest, self.rules)?;
            let view = View { window: tile.window(), ..view_of_slide(self.tile, tile)? };
            return Ok(match part {
                AnnotationPart::Objects => image_io::objects_of_view(self.path, &set, &view, wanted)?,
                AnnotationPart::Counted => image_io::counted_mask(self.path, &set, &view, core(tile))?,
            });
        }
        let size = image_io::probe(self.tile)?;
        if part == AnnotationPart::Objects {
            return Ok(image_io::read_reference(self.path, size, wanted, self.rules)?);
        }
        let view = View::whole(size.width_px, size.height_px);
        let set = image_io::read_annotations(self.path, self.rules, image_io::MAX_GEOJSON_BYTES)?;
        Ok(image_io::counted_mask(self.path, &set, &view, view.window)?)
    }
}

/// Returns the annotations of a slide with this content. They are kept for later tiles.
///
/// # Errors
/// [`ReferenceError`] if the file cannot be read or has other content.
pub(crate) fn annotations(
    path: &Path,
    digest: Option<[u8; 32]>,
    rules: &AnnotationRules,
) -> Result<Arc<AnnotationSet>, ReferenceError> {
    let changed = || ReferenceError::Changed(path.to_owned());
    let digest = digest.ok_or_else(changed)?;
    cache::get(digest, rules, || {
        let set = image_io::read_annotations(path, rules, image_io::MAX_SLIDE_GEOJSON_BYTES)?;
        // After reading: it had this content before, so the content that was read has the digest.
        if crate::file_digest::digest(path) == Some(digest) { Ok(set) } else { Err(changed()) }
    })
}

/// Returns the view of a whole slide at the magnification of a tile. Positions of annotations are pixels of the slide at full
/// resolution.
pub(crate) fn view_of_slide(slide: &Path, tile: &SlideTile) -> Result<View, SlideError> {
    let slide = Slide::open(slide)?;
    let scale = slide.scale(tile.magnification.map(Real::get))?;
    let positions_a_px = scale.level_px_a_px * slide.levels()[scale.level].downsample;
    Ok(View { positions_a_px, ..View::whole(scale.width_px, scale.height_px) })
}

/// Returns the core within the window.
fn core(tile: &SlideTile) -> PixelRectangle {
    let ([left, top, width_px, height_px], [x, y, ..]) = (tile.core, tile.window);
    PixelRectangle { x_px: left.saturating_sub(x), y_px: top.saturating_sub(y), width_px, height_px }
}
