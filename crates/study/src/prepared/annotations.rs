//! Annotations outside their tiles: rejected if there are many, reported if there are few. Tiles without a region of
//! interest are left out.

use super::AnnotationsError;
use pleach_planner::PlanTile;
use pleach_workflow::{Annotations, ReferenceSource, Study};
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// Maximum number of reference files that are reported one by one. The report lists all.
const MAX_NOTES: usize = 5;

/// Rejects a study if a reference file has too many annotations outside its tile.
///
/// # Errors
/// [`AnnotationsError`] names the first such file, its counts and the setting that allows them.
pub(super) fn check(file: &Path, study: &Study) -> Result<(), Box<AnnotationsError>> {
    let allowed = study.annotations_outside;
    let mut exceeding = study.annotations.iter().filter(|found| found.exceed(allowed));
    let (Some(first), ReferenceSource::Masks(masks)) = (exceeding.next(), &study.reference) else {
        return Ok(());
    };
    Err(Box::new(AnnotationsError {
        file: file.to_owned(),
        reference: masks[first.tile].clone(),
        of: image_of(study),
        tile: study.tiles[first.tile].path.clone(),
        outside: first.outside,
        objects: first.objects,
        others: exceeding.count(),
        allowed,
        allowing: allowing(study),
    }))
}

/// Returns the smallest share, rounded up to 2 digits, that allows all files of the study.
fn allowing(study: &Study) -> f64 {
    let shares = study.annotations.iter().map(|of| of.outside as f64 / of.objects.max(1) as f64);
    (shares.fold(0.0, f64::max) * 100.0).ceil() / 100.0
}

/// Returns the kind of image that reference files are of.
fn image_of(study: &Study) -> &'static str {
    if study.slides.is_some() { "slide" } else { "tile" }
}

/// Leaves out the tiles without `true` in `is_kept`. Counts of files without a remaining tile are left out too.
pub(super) fn leave_out(study: &mut Study, tiles: &mut Vec<PlanTile>, is_kept: &[bool]) {
    if !is_kept.contains(&false) {
        return;
    }
    let ReferenceSource::Masks(masks) = &study.reference else { return };
    let files: Vec<PathBuf> = study.annotations.iter().map(|of| masks[of.tile].clone()).collect();
    study.keep_tiles(is_kept);
    let mut keep = is_kept.iter();
    tiles.retain(|_| keep.next() == Some(&true));
    let mut keep = is_kept.iter();
    study.tile_weights.retain(|_| keep.next() == Some(&true));
    study.tiles_without_regions = is_kept.len() - tiles.len();
    let ReferenceSource::Masks(masks) = &study.reference else { return };
    let of_files = std::mem::take(&mut study.annotations).into_iter().zip(files);
    // The first remaining tile of the file.
    let remaining = |(of, file): (Annotations, PathBuf)| {
        let tile = masks.iter().position(|mask| *mask == file)?;
        Some(Annotations { tile, ..of })
    };
    study.annotations = of_files.filter_map(remaining).collect();
}

/// Returns lines for the terminal about annotations that are not completely used. Above `MAX_NOTES` files,
/// one line summarizes the rest.
pub fn notes(study: &Study) -> Vec<String> {
    let ReferenceSource::Masks(masks) = &study.reference else { return Vec::new() };
    let of_note: Vec<&Annotations> = study.annotations.iter().filter(|found| !found.are_whole()).collect();
    let mut lines: Vec<String> = of_note
        .iter()
        .take(MAX_NOTES)
        .map(|found| {
            format!("reference {}: {}", masks[found.tile].display(), counted(found, image_of(study)))
        })
        .collect();
    if of_note.len() > MAX_NOTES {
        let others = of_note.len() - MAX_NOTES;
        lines.push(format!(
            "{others} more references; all {} together: {}",
            of_note.len(),
            counted(&sum(&of_note), image_of(study))
        ));
    }
    if study.tiles_without_regions > 0 {
        lines.push(format!(
            "{} of {} tiles left out: no region of interest has a pixel in them",
            study.tiles_without_regions,
            study.tiles_without_regions + study.tiles.len()
        ));
    }
    lines
}

/// Adds up the annotations of several files.
fn sum<'a>(of: impl IntoIterator<Item = &'a &'a Annotations>) -> Annotations {
    of.into_iter().fold(Annotations::default(), |sum, of| Annotations {
        tile: 0,
        objects: sum.objects + of.objects,
        outside: sum.outside + of.outside,
        partly_outside: sum.partly_outside + of.partly_outside,
        unusable: sum.unusable + of.unusable,
        other_classes: sum.other_classes + of.other_classes,
        without_area: sum.without_area + of.without_area,
        regions: sum.regions + of.regions,
        self_crossing: sum.self_crossing + of.self_crossing,
        stray_holes: sum.stray_holes + of.stray_holes,
        beyond_tiles: sum.beyond_tiles + of.beyond_tiles,
    })
}

fn counted(found: &Annotations, image: &str) -> String {
    let Annotations { objects, outside, .. } = *found;
    let mut text = format!("of {objects} annotations {outside} outside the {image} (not counted)");
    for (number, words) in [
        (found.partly_outside, "partly outside (cut off)"),
        (found.unusable, "without a pixel of their own"),
        (found.beyond_tiles, "on no tile of the study (not counted)"),
        (found.self_crossing, "with an outline that crosses itself (inside by the even-odd rule)"),
        (found.stray_holes, "with a hole beyond the outline (cut off)"),
    ] {
        if number > 0 {
            // Writing to a string cannot fail.
            let _ = write!(text, ", {number} {words}");
        }
    }
    for (number, words) in
        [(found.other_classes, "of other classes"), (found.without_area, "without an area (points, lines)")]
    {
        if number > 0 {
            let _ = write!(text, "; {number} more {words}");
        }
    }
    text
}
