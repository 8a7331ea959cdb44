//! Tiles of regions of interest: one for each, with its bounding box as the core.

use super::Part;
use crate::error::SlideTilesProblem;
use crate::references::{annotations_of_slide, view_of_slide};
use pleach_slides::Scale;
use pleach_workflow::{ReferenceSource, SlideTile, Slides, Study};

/// Returns the parts of a slide, in order of their rows. Regions beyond the slide have none. `number` is that of the slide among
/// those of the study.
///
/// # Errors
/// [`SlideTilesProblem`] if the annotations cannot be read, a region is larger than a tile may be, or two boxes overlap, so that
/// both tiles would count an object.
pub(super) fn parts(
    study: &Study,
    slides: &Slides,
    number: usize,
    scale: &Scale,
) -> Result<Vec<Part>, SlideTilesProblem> {
    let ReferenceSource::Masks(files) = &study.reference else { return Ok(Vec::new()) };
    let (file, slide) = (&files[number], &slides.files[number].path);
    let set = annotations_of_slide(file, slide, &study.annotation_rules)?;
    let view = view_of_slide(slide, slides.magnification, &study.annotation_rules)?;
    let size = [scale.width_px, scale.height_px];
    let mut parts = Vec::with_capacity(set.regions.len());
    for bounds in (0..set.regions.len()).filter_map(|region| set.regions.bounds(region)) {
        let Some(core) = covered(bounds.map(|corner| corner.map(|at| at / view.positions_a_px)), size) else {
            continue;
        };
        if core[2].max(core[3]) > SlideTile::MAX_SIDE_PX {
            let (path, max) = (slide.clone(), SlideTile::MAX_SIDE_PX);
            return Err(SlideTilesProblem::RegionTooLarge { path, core, max });
        }
        parts.push(Part { core, window: widened(core, slides.halo_px, size) });
    }
    parts.sort_by_key(|part| (part.core[1], part.core[0]));
    for (index, part) in parts.iter().enumerate() {
        // Those that begin below its end do not overlap it.
        let end = part.core[1] + part.core[3];
        let mut others = parts[index + 1..].iter().take_while(|other| other.core[1] < end);
        if let Some(other) = others.find(|other| overlap(&part.core, &other.core)) {
            let corners = [part.core, other.core].map(|[x, y, ..]| [x, y]);
            return Err(SlideTilesProblem::RegionsOverlap { path: slide.clone(), corners });
        }
    }
    Ok(parts)
}

/// Returns the pixels of an image that a box touches. `None` if it touches none.
fn covered([low, high]: [[f64; 2]; 2], size: [u32; 2]) -> Option<[u32; 4]> {
    // The casts saturate, and no side exceeds 32 bits.
    let start = [0, 1].map(|axis| low[axis].floor().max(0.0) as u32);
    let end = [0, 1].map(|axis| (high[axis].ceil().max(0.0) as u32).min(size[axis]));
    let is_some = (0..2).all(|axis| start[axis] < end[axis]);
    is_some.then(|| [start[0], start[1], end[0] - start[0], end[1] - start[1]])
}

/// Returns a core with its halo, within the image.
fn widened([x, y, width, height]: [u32; 4], halo_px: u32, size: [u32; 2]) -> [u32; 4] {
    let start = [x, y].map(|at| at.saturating_sub(halo_px));
    let end = [x + width, y + height].map(|at| at.saturating_add(halo_px));
    [start[0], start[1], end[0].min(size[0]) - start[0], end[1].min(size[1]) - start[1]]
}

fn overlap(a: &[u32; 4], b: &[u32; 4]) -> bool {
    (0..2).all(|axis| a[axis] < b[axis] + b[axis + 2] && b[axis] < a[axis] + a[axis + 2])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boxes_cover_the_touched_pixels_of_the_image() {
        let covered = |low, high| covered([low, high], [100, 50]);
        assert_eq!(covered([10.2, 5.0], [20.0, 7.1]), Some([10, 5, 10, 3]));
        assert_eq!(covered([-4.0, 40.0], [3.0, 90.0]), Some([0, 40, 3, 10]));
        assert_eq!(covered([100.0, 0.0], [120.0, 9.0]), None);
        assert_eq!(covered([-9.0, 0.0], [-1.0, 9.0]), None);
        assert_eq!(widened([10, 5, 10, 3], 8, [100, 50]), [2, 0, 26, 16]);
        assert_eq!(widened([90, 40, 10, 10], u32::MAX, [100, 50]), [0, 0, 100, 50]);
    }

    #[test]
    fn boxes_that_share_an_edge_do_not_overlap() {
        let core = [10, 10, 20, 20];
        assert!(!overlap(&core, &[30, 10, 5, 5]) && !overlap(&core, &[10, 30, 5, 5]));
        assert!(overlap(&core, &[29, 29, 5, 5]) && overlap(&core, &[0, 0, 50, 50]));
    }
}
