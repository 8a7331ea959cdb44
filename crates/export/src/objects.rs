//! Objects of one tile in pixels of its image: only those that the tile's core owns.

use crate::rings::{self, PixelPolygon};
use pleach_pathology::objects::PixelObjects;
use pleach_regions::{DataRegion, ElementType, PixelRectangle, WrongElement};
use pleach_workflow::SlideTile;

/// Segmented object.
#[derive(Clone, Debug, PartialEq)]
pub struct ExportedObject {
    /// Pixels in raster order: the x and y of the first pixel of a run in the image, and its length.
    pub runs: Vec<([u32; 2], u32)>,
    /// Number of pixels.
    pub area_px: u64,
    /// Mean of the pixels' middles, pixels. The middle of the first pixel is 0.5.
    pub centroid_px: [f64; 2],
    /// Left, top, right and bottom edge, pixels.
    pub bounds_px: [u32; 4],
    /// Outlines. Empty unless they are requested.
    pub polygons: Vec<PixelPolygon>,
}

impl ExportedObject {
    /// Creates an object from its pixels, which are not empty. Traces its outlines on request.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "sums of coordinates are far below 2^53")]
    pub fn new(runs: Vec<([u32; 2], u32)>, with_polygons: bool) -> Self {
        let (mut area, mut sums, mut bounds) = (0_u64, [0_u64; 2], [u32::MAX, u32::MAX, 0, 0]);
        for &([x, y], length) in &runs {
            let count = u64::from(length);
            area += count;
            // Twice the sum of the middles.
            sums[0] += count * (2 * u64::from(x) + count);
            sums[1] += count * (2 * u64::from(y) + 1);
            bounds = [bounds[0].min(x), bounds[1].min(y), bounds[2].max(x + length), bounds[3].max(y + 1)];
        }
        let centroid_px = sums.map(|sum| sum as f64 / (2 * area) as f64);
        let polygons = if with_polygons { rings::polygons(&runs) } else { Vec::new() };
        Self { runs, area_px: area, centroid_px, bounds_px: bounds, polygons }
    }
}

/// Returns the objects of a mask or label map that belong to a tile, in raster order of their first pixels. Without `slide`, the
/// region is the whole image.
///
/// An object belongs to the tile whose core contains its centroid, as in the responses of studies.
///
/// # Errors
/// [`WrongElement`] for regions other than masks and label maps.
pub fn owned_objects(
    region: &DataRegion,
    slide: Option<&SlideTile>,
    with_polygons: bool,
) -> Result<Vec<ExportedObject>, WrongElement> {
    let (objects, width_px, height_px) = match region {
        DataRegion::Labels(map) => {
            let (width, height) = (map.width_px(), map.height_px());
            (PixelObjects::of_labels(map.labels(), width as usize), width, height)
        }
        other => {
            let mask = other.raster(ElementType::Mask)?;
            let (width, height) = (mask.width_px(), mask.height_px());
            (PixelObjects::of_mask(mask.data(), width as usize), width, height)
        }
    };
    let whole = PixelRectangle { x_px: 0, y_px: 0, width_px, height_px };
    let core = slide.map_or(whole, |tile| {
        let ([x, y, width_px, height_px], [left, top, ..]) = (tile.core, tile.window);
        PixelRectangle { x_px: x - left, y_px: y - top, width_px, height_px }
    });
    let [left, top, ..] = slide.map_or([0; 4], |tile| tile.window);
    let owned = objects.within(core).into_iter().enumerate().filter(|(_, owned)| *owned);
    let exported = owned.map(|(object, _)| {
        let runs = objects.pixels(object).map(|([x, y], length)| ([x + left, y + top], length)).collect();
        ExportedObject::new(runs, with_polygons)
    });
    Ok(exported.collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use pleach_regions::Raster;

    #[test]
    fn object_is_measured_in_pixels_of_the_image() {
        let object = ExportedObject::new(vec![([4, 7], 3), ([5, 8], 1)], true);
        assert_eq!((object.area_px, object.bounds_px), (4, [4, 7, 7, 9]));
        assert_eq!(object.centroid_px, [5.5, 7.75]);
        assert_eq!(object.polygons.len(), 1);
    }

    #[test]
    fn core_owns_objects_by_their_centroid() {
        // Two tiles of one image 8 px wide, with a halo of 2 px. The object at x 3 to 5 has its centroid in the second core.
        let mask = |from: usize| {
            let image = [0, 1, 0, 1, 1, 1, 0, 0];
            let data = image[from..from + 6].iter().map(|pixel| pixel * 255).collect();
            DataRegion::Mask(Raster::new(6, 1, 1, data).unwrap())
        };
        let tile = |core: u32, window: u32| SlideTile {
            magnification: None,
            core: [core, 0, 4, 1],
            window: [window, 0, 6, 1],
        };
        let first = owned_objects(&mask(0), Some(&tile(0, 0)), false).unwrap();
        let second = owned_objects(&mask(2), Some(&tile(4, 2)), false).unwrap();
        assert_eq!(first.iter().map(|object| object.bounds_px[0]).collect::<Vec<_>>(), [1]);
        assert_eq!(second.iter().map(|object| object.bounds_px[0]).collect::<Vec<_>>(), [3]);
        let table = DataRegion::Gray8(Raster::filled(1, 1, 1, 0).unwrap());
        assert!(owned_objects(&table, None, false).is_err());
    }
}
