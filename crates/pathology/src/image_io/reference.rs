//! Reads the reference of a tile from an image or from annotations.
//!
//! Annotations are those of a tile, or those of a slide whose window is the tile.

use super::annotation_set::AnnotationSet;
use super::geojson::{MAX_GEOJSON_BYTES, is_annotations, read_annotations};
use super::read::unreadable;
use super::{ImageFileError, TileInfo, probe, read_labels, read_mask};
use crate::objects::View;
use pleach_regions::{DataRegion, ElementType, LabelMap, PixelRectangle, Raster};
use pleach_workflow::{AnnotationRules, Annotations};
use std::path::Path;

/// Checks a reference without decoding an image. For an image, checks the header and compares its size with the tile's.
/// For annotations, reads the file and returns how they are placed in the tile, and the set.
///
/// # Errors
/// Returns an [`ImageFileError`].
pub fn check_reference(
    path: &Path,
    tile: &Path,
    size: TileInfo,
    rules: &AnnotationRules,
) -> Result<Option<(AnnotationSet, Annotations)>, ImageFileError> {
    if is_annotations(path) {
        let view = View::of_tile(size.width_px, size.height_px, rules);
        let set = read_annotations(path, rules, MAX_GEOJSON_BYTES)?;
        let drawn = set.labels(path, &view)?;
        let found = check_annotations(path, &set, &view, Some(&drawn))?;
        return Ok(Some((set, found)));
    }
    let found = probe(path)?;
    if found != size {
        let (path, tile) = (path.to_owned(), tile.to_owned());
        return Err(ImageFileError::SizeDiffers { path, found, tile, wanted: size });
    }
    Ok(None)
}

/// Counts the annotations of a whole image. `drawn` is the label map of a tile; a slide has none.
///
/// # Errors
/// Returns [`ImageFileError::NothingInside`] if there are objects and all of them are outside.
pub fn check_annotations(
    path: &Path,
    set: &AnnotationSet,
    view: &View,
    drawn: Option<&LabelMap>,
) -> Result<Annotations, ImageFileError> {
    let found = set.count(view, drawn);
    // Positions in microns or on the whole slide are a common mistake and cover no pixel. A file without polygons is
    // valid.
    if found.objects > 0 && found.objects == found.outside + found.unusable {
        let PixelRectangle { width_px, height_px, .. } = view.window;
        let (path, features) = (path.to_owned(), found.objects);
        let of = if drawn.is_some() { "tile" } else { "slide" };
        return Err(ImageFileError::NothingInside { path, features, of, width_px, height_px });
    }
    Ok(found)
}

/// Reads the reference of a tile of this size: as a label map if `wanted` is [`ElementType::Labels`], else as a mask.
/// Annotations are rasterized.
///
/// # Errors
/// Returns an [`ImageFileError`].
pub fn read_reference(
    path: &Path,
    size: TileInfo,
    wanted: ElementType,
    rules: &AnnotationRules,
) -> Result<DataRegion, ImageFileError> {
    match (is_annotations(path), wanted) {
        (false, ElementType::Labels) => read_labels(path),
        (false, _) => read_mask(path),
        (true, _) => {
            let view = View::of_tile(size.width_px, size.height_px, rules);
            let set = read_annotations(path, rules, MAX_GEOJSON_BYTES)?;
            objects_of_view(path, &set, &view, wanted)
        }
    }
}

/// Returns the objects of a window: as a label map if `wanted` is [`ElementType::Labels`], else as a mask.
///
/// # Errors
/// Returns an [`ImageFileError`].
pub fn objects_of_view(
    path: &Path,
    set: &AnnotationSet,
    view: &View,
    wanted: ElementType,
) -> Result<DataRegion, ImageFileError> {
    match wanted {
        ElementType::Labels => set.labels(path, view).map(DataRegion::Labels),
        _ => mask(path, view, set.objects.mask(view)),
    }
}

/// Returns the pixels of a window that count as a mask. `core` is a part of the window.
///
/// # Errors
/// Returns an [`ImageFileError`].
pub fn counted_mask(
    path: &Path,
    set: &AnnotationSet,
    view: &View,
    core: PixelRectangle,
) -> Result<DataRegion, ImageFileError> {
    mask(path, view, set.counted(view, core))
}

fn mask(path: &Path, view: &View, pixels: Vec<u8>) -> Result<DataRegion, ImageFileError> {
    let PixelRectangle { width_px, height_px, .. } = view.window;
    let mask = Raster::new(width_px, height_px, 1, pixels);
    mask.map(DataRegion::Mask).map_err(|cause| unreadable(path, cause))
}
