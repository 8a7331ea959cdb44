//! Composes pictures from regions: the window, its pixels, and the outlines in it.

use super::window;
use super::{GalleryError, Jpeg, ShownEvaluation, TilePictures};
use pleach_pathology::image_io;
use pleach_pathology::outline::{self, Loop};
use pleach_regions::{DataRegion, ElementType, Raster};
use std::sync::Arc;

/// Maximum side of the overview of a tile.
const OVERVIEW_PX: u32 = 480;
/// JPEG quality: artifacts are invisible at the size shown, and the file is a tenth of a PNG.
const QUALITY: u8 = 85;
/// Rim around the window. Outlines are traced including the rim, so that objects cut by the window's border
/// have no outline along it. Wider than any line drawn.
const RIM_PX: u32 = 4;

/// Returns the pictures of a tile. The window is where the mask of evaluation `focus` differs most from the
/// reference. If both are equal, the window holds most of the reference.
pub(super) fn pictures(
    name: &str,
    image: &DataRegion,
    reference: &DataRegion,
    focus: usize,
    masks: Vec<(ShownEvaluation, Arc<DataRegion>)>,
) -> Result<TilePictures, GalleryError> {
    let (image, reference) = (image.raster(ElementType::Bgr8)?, mask(reference)?);
    let (width, height) = (image.width_px(), image.height_px());
    let same_size = |mask: &Raster| (mask.width_px(), mask.height_px()) == (width, height);
    if !same_size(reference) {
        return Err(GalleryError::SizesDiffer);
    }
    let farthest = masks.iter().find(|(shown, _)| shown.evaluation == focus);
    let farthest = farthest.map_or(Ok(reference), |(_, region)| mask(region))?;
    if !same_size(farthest) {
        return Err(GalleryError::SizesDiffer);
    }
    let (one, other) = (reference.data(), farthest.data());
    // Equal masks have no difference to show, so the window follows the objects.
    let window = if one == other {
        window::with_most_differences(width, height, |pixel| one[pixel] != 0)
    } else {
        window::with_most_differences(width, height, |pixel| (one[pixel] == 0) != (other[pixel] == 0))
    };
    let outlines = |mask: &Raster| -> Result<Vec<Loop>, GalleryError> {
        let wide = window.with_rim(RIM_PX, width, height);
        let part = wide.of(mask)?;
        let (left, top) = ((window.left - wide.left) as i32, (window.top - wide.top) as i32);
        let loops = outline::trace(part.data(), part.width_px() as usize).into_iter();
        Ok(loops.map(|corners| corners.into_iter().map(|[x, y]| [x - left, y - top]).collect()).collect())
    };
    let mut shown = Vec::new();
    for (evaluation, region) in masks {
        let mask = mask(&region)?;
        if !same_size(mask) {
            return Err(GalleryError::SizesDiffer);
        }
        shown.push(ShownEvaluation { outlines: outlines(mask)?, ..evaluation });
    }
    let overview = (!window.covers_tile(width, height)).then(|| jpeg(&window::small(image, OVERVIEW_PX)?));
    Ok(TilePictures {
        tile: name.to_owned(),
        tile_px: [width, height],
        overview: overview.transpose()?,
        window,
        detail: jpeg(&window.of(image)?)?,
        reference: outlines(reference)?,
        shown,
        focus,
    })
}

fn jpeg(image: &Raster) -> Result<Jpeg, GalleryError> {
    let bytes = image_io::jpeg_bytes(image, QUALITY)?;
    Ok(Jpeg { bytes, width: image.width_px(), height: image.height_px() })
}

fn mask(region: &DataRegion) -> Result<&Raster, GalleryError> {
    region.raster(ElementType::Mask).map_err(|wrong| GalleryError::NotAMask(wrong.found))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gallery::window::Window;
    use pleach_results::analysis::extremes::Role;

    #[test]
    fn window_covers_the_differences_of_the_focus() {
        let image = DataRegion::Bgr8(Raster::filled(1000, 500, 3, 200).unwrap());
        let mut reference = vec![0; 500_000];
        reference[..1000].fill(255);
        let mut other = reference.clone();
        // A square of 10 px, near the bottom right.
        for y in 400..410 {
            other[y * 1000 + 900..y * 1000 + 910].fill(255);
        }
        let [reference, other] =
            [reference, other].map(|data| DataRegion::Mask(Raster::new(1000, 500, 1, data).unwrap()));
        let shown = ShownEvaluation {
            evaluation: 1,
            roles: vec![(0, Role::Worst)],
            responses: Vec::new(),
            moved: Vec::new(),
            outlines: Vec::new(),
        };
        let masks = vec![(shown, Arc::new(other))];
        let made = pictures("tile", &image, &reference, 1, masks).unwrap();
        // The square is centered as far as the tile's edge allows.
        assert_eq!(made.window, Window { left: 744, top: 244, width: 256, height: 256 });
        assert_eq!(made.shown[0].outlines, [[[166, 156], [166, 166], [156, 166], [156, 156]]]);
        assert!(made.reference.is_empty());
        let overview = made.overview.unwrap();
        assert_eq!((overview.width, overview.height, made.detail.width), (480, 240, 256));
        // Without a difference, the window is at the reference.
        let same = pictures("tile", &image, &reference, 1, Vec::new()).unwrap();
        assert_eq!(same.window, Window { left: 0, top: 0, width: 256, height: 256 });
        let empty = DataRegion::Mask(Raster::filled(1000, 500, 1, 0).unwrap());
        let nowhere = pictures("tile", &image, &empty, 1, Vec::new()).unwrap();
        assert_eq!(nowhere.window, Window { left: 372, top: 122, width: 256, height: 256 });
    }
}
