//! Reads the reference of a tile from an image or from polygons.
//!
//! Files named `*.geojson` are polygons, all others images.

use super::read::unreadable;
use super::{ImageFileError, TileInfo, probe, read_labels, read_mask, read_polygons};
use crate::objects::{Polygon, covers_a_pixel, rasterize};
use pleach_regions::{DataRegion, ElementType, LabelMap, Raster};
use pleach_workflow::Annotations;
use std::path::Path;

/// Checks a reference without decoding an image. For an image, checks the header and compares its size with the tile's.
/// For polygons, reads the file and returns how its polygons are placed in the tile.
///
/// # Errors
/// Returns an [`ImageFileError`].
pub fn check_reference(
    path: &Path,
    tile: &Path,
    size: TileInfo,
) -> Result<Option<Annotations>, ImageFileError> {
    if is_geojson(path) {
        return annotations(path, size).map(Some);
    }
    let found = probe(path)?;
    if found != size {
        let (path, tile) = (path.to_owned(), tile.to_owned());
        return Err(ImageFileError::SizeDiffers { path, found, tile, wanted: size });
    }
    Ok(None)
}

/// Counts the polygons of a file that are partly outside, outside or unusable in a tile of this size.
fn annotations(path: &Path, size: TileInfo) -> Result<Annotations, ImageFileError> {
    let (polygons, map) = drawn(path, size)?;
    let TileInfo { width_px, height_px } = size;
    let mut is_seen = vec![false; polygons.len()];
    for label in map.labels().iter().filter_map(|label| (*label as usize).checked_sub(1)) {
        is_seen[label] = true;
    }
    let mut found = Annotations { objects: polygons.len(), ..Annotations::default() };
    for (polygon, is_seen) in polygons.iter().zip(is_seen) {
        // Only a polygon without visible pixels needs the second test.
        match (is_seen, polygon.reaches_beyond(width_px, height_px)) {
            (true, true) => found.partly_outside += 1,
            (true, false) => {}
            (false, true) if !covers_a_pixel(polygon, width_px, height_px) => found.outside += 1,
            (false, _) => found.unusable += 1,
        }
    }
    Ok(found)
}

/// Reads the reference of a tile of this size: as a label map if `wanted` is [`ElementType::Labels`], else as a mask.
/// [`rasterize`] draws polygons.
///
/// # Errors
/// Returns an [`ImageFileError`].
pub fn read_reference(
    path: &Path,
    size: TileInfo,
    wanted: ElementType,
) -> Result<DataRegion, ImageFileError> {
    match (is_geojson(path), wanted) {
        (false, ElementType::Labels) => read_labels(path),
        (false, _) => read_mask(path),
        (true, ElementType::Labels) => labels_of_polygons(path, size).map(DataRegion::Labels),
        (true, _) => {
            let map = labels_of_polygons(path, size)?;
            let mask = map.labels().iter().map(|label| if *label == 0 { 0 } else { 255 }).collect();
            let mask = Raster::new(size.width_px, size.height_px, 1, mask);
            mask.map(DataRegion::Mask).map_err(|cause| unreadable(path, cause))
        }
    }
}

fn labels_of_polygons(path: &Path, size: TileInfo) -> Result<LabelMap, ImageFileError> {
    drawn(path, size).map(|(_, map)| map)
}

/// Reads the polygons of a file and draws their label map.
fn drawn(path: &Path, size: TileInfo) -> Result<(Vec<Polygon>, LabelMap), ImageFileError> {
    let TileInfo { width_px, height_px } = size;
    let polygons = read_polygons(path)?;
    let map = rasterize(&polygons, width_px, height_px).map_err(|cause| unreadable(path, cause))?;
    // Positions in microns or on the whole slide are a common mistake and cover no pixel. A file without polygons is
    // valid.
    if !polygons.is_empty() && map.labels().iter().all(|label| *label == 0) {
        let (path, features) = (path.to_owned(), polygons.len());
        return Err(ImageFileError::NothingInside { path, features, width_px, height_px });
    }
    Ok((polygons, map))
}

fn is_geojson(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("geojson"))
}
