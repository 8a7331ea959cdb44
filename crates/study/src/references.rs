//! References of tiles: read from images of their own, or cut from the annotations of a tile or slide.
//!
//! The annotations of a slide are read once by a process, and each tile draws those of its window.

mod cache;

use crate::file_digest;
use pleach_pathology::image_io::{self, AnnotationSet, ImageFileError};
use pleach_pathology::objects::View;
use pleach_regions::{DataRegion, ElementType, PixelRectangle, Resolution};
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
    /// Annotations in micrometers of a slide that does not state the size of its pixels.
    #[error(
        "{}: the slide states no micrometers per pixel, which annotations in micrometers need; input.annotations.mpp states them",
        .0.display()
    )]
    NoCalibration(PathBuf),
    /// Positions that should be pixels look like micrometers.
    #[error(
        "{}: coordinates look like micrometers: all {objects} objects are within {} x {} µm, the size of the slide of {} x {} px, and \
         as pixels most are smaller than a nucleus; give annotations = {{ unit = \"um\" }}, or unit = \"px\" for pixels",
        path.display(), microns[0], microns[1], px[0], px[1]
    )]
    Micrometers {
        /// The file.
        path: PathBuf,
        /// Number of objects.
        objects: usize,
        /// Sides of the slide, rounded micrometers.
        microns: [u32; 2],
        /// Sides of the slide at full resolution.
        px: [u32; 2],
    },
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
            let view =
                View { window: tile.window(), ..view_of_slide(self.tile, tile.magnification, self.rules)? };
            return Ok(match part {
                AnnotationPart::Objects => image_io::objects_of_view(self.path, &set, &view, wanted)?,
                AnnotationPart::Counted => image_io::counted_mask(self.path, &set, &view, core(tile))?,
            });
        }
        let size = image_io::probe(self.tile)?;
        if part == AnnotationPart::Objects {
            return Ok(image_io::read_reference(self.path, size, wanted, self.rules)?);
        }
        let view = View::of_tile(size.width_px, size.height_px, self.rules);
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
        if file_digest::digest(path) == Some(digest) { Ok(set) } else { Err(changed()) }
    })
}

/// Returns the annotations of a slide, whose positions do not look like micrometers unless the study states their unit.
///
/// # Errors
/// [`ReferenceError`] names the file, or the slide.
pub(crate) fn annotations_of_slide(
    path: &Path,
    slide: &Path,
    rules: &AnnotationRules,
) -> Result<Arc<AnnotationSet>, ReferenceError> {
    let set = annotations(path, file_digest::digest(path), rules).map_err(|error| {
        // A file without a digest has a cause of its own.
        match (error, std::fs::File::open(path)) {
            (ReferenceError::Changed(_), Err(cause)) => {
                ImageFileError::Unreadable { path: path.to_owned(), cause }.into()
            }
            (error, _) => error,
        }
    })?;
    check_unit(path, &set, slide, rules)?;
    Ok(set)
}

/// Returns the view of a whole slide at a magnification, `None` for its own, in the unit of its annotations: pixels of the slide at full
/// resolution, or micrometers.
///
/// # Errors
/// [`ReferenceError`] if the slide cannot be read, or if micrometers need its calibration and it states none.
pub(crate) fn view_of_slide(
    path: &Path,
    magnification: Option<Real>,
    rules: &AnnotationRules,
) -> Result<View, ReferenceError> {
    let slide = Slide::open(path)?;
    let scale = slide.scale(magnification.map(Real::get))?;
    let slide_px_a_px = scale.level_px_a_px * slide.levels()[scale.level].downsample;
    let positions = rules.positions_a_px(slide.resolution().map(Resolution::microns_per_px));
    let positions = positions.ok_or_else(|| ReferenceError::NoCalibration(path.to_owned()))?;
    Ok(View { positions_a_px: slide_px_a_px * positions, ..View::whole(scale.width_px, scale.height_px) })
}

/// Checks that positions of an unstated unit do not look like micrometers.
///
/// # Errors
/// [`ReferenceError::Micrometers`] names the file. [`ReferenceError::Slide`] if the slide cannot be read.
fn check_unit(
    path: &Path,
    set: &AnnotationSet,
    slide: &Path,
    rules: &AnnotationRules,
) -> Result<(), ReferenceError> {
    if rules.unit.is_some() {
        return Ok(());
    }
    let slide = Slide::open(slide)?;
    let (Some(resolution), Some(full)) = (slide.resolution(), slide.levels().first()) else { return Ok(()) };
    let (px, microns) = ([full.width_px, full.height_px], resolution.microns_per_px());
    if !set.looks_like_micrometers(px, microns) {
        return Ok(());
    }
    let microns = px.map(|side| (f64::from(side) * microns).round() as u32);
    Err(ReferenceError::Micrometers { path: path.to_owned(), objects: set.objects.len(), microns, px })
}

/// Returns the core within the window.
fn core(tile: &SlideTile) -> PixelRectangle {
    let ([left, top, width_px, height_px], [x, y, ..]) = (tile.core, tile.window);
    PixelRectangle { x_px: left.saturating_sub(x), y_px: top.saturating_sub(y), width_px, height_px }
}

#[cfg(test)]
mod tests;
