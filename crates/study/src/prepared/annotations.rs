//! Annotations outside their tiles: rejected if there are many, reported if there are few.

use super::AnnotationsError;
use pleach_workflow::{Annotations, ReferenceSource, Study};
use std::fmt::Write;
use std::path::Path;

/// Maximum number of reference files that are reported one by one. The report lists all.
const MAX_NOTES: usize = 5;

/// Rejects a study if a reference file has too many annotations outside its tile.
///
/// # Errors
/// [`AnnotationsError`] names the first such file, its counts and the setting that allows them.
pub(super) fn check(file: &Path, study: &Study) -> Result<(), AnnotationsError> {
    let allowed = study.annotations_outside;
    let mut exceeding = study.annotations.iter().filter(|found| found.exceed(allowed));
    let (Some(first), ReferenceSource::Masks(masks)) = (exceeding.next(), &study.reference) else {
        return Ok(());
    };
    Err(AnnotationsError {
        file: file.to_owned(),
        reference: masks[first.tile].clone(),
        tile: study.tiles[first.tile].path.clone(),
        outside: first.outside,
        objects: first.objects,
        others: exceeding.count(),
        allowed,
        allowing: allowing(study),
    })
}

/// Returns the smallest share, rounded up to 2 digits, that allows all files of the study.
fn allowing(study: &Study) -> f64 {
    let shares = study.annotations.iter().map(|of| of.outside as f64 / of.objects.max(1) as f64);
    (shares.fold(0.0, f64::max) * 100.0).ceil() / 100.0
}

/// Returns lines for the terminal about annotations that are not completely used. Above `MAX_NOTES` files,
/// one line summarizes the rest.
pub fn notes(study: &Study) -> Vec<String> {
    let ReferenceSource::Masks(masks) = &study.reference else { return Vec::new() };
    let of_note: Vec<&Annotations> = study.annotations.iter().filter(|found| !found.are_whole()).collect();
    let mut lines: Vec<String> = of_note
        .iter()
        .take(MAX_NOTES)
        .map(|found| format!("reference {}: {}", masks[found.tile].display(), counted(found)))
        .collect();
    if of_note.len() > MAX_NOTES {
        let others = of_note.len() - MAX_NOTES;
        lines.push(format!(
            "{others} more references; all {} together: {}",
            of_note.len(),
            counted(&sum(&of_note))
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
    })
}

fn counted(found: &Annotations) -> String {
    let Annotations { objects, outside, partly_outside, unusable, .. } = *found;
    let mut text = format!("of {objects} annotations {outside} outside the tile (not counted)");
    // Writing to a string cannot fail.
    if partly_outside > 0 {
        let _ = write!(text, ", {partly_outside} partly outside (cut off)");
    }
    if unusable > 0 {
        let _ = write!(text, ", {unusable} without a pixel of their own");
    }
    text
}
