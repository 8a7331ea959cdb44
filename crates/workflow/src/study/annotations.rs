//! Annotations of reference files: the selection by class, counts within and outside their tile, and the allowed share
//! outside.
//!
//! `pleach-pathology` reads the files and classifies single annotations.

use super::StudyError;
use super::slides::number;
use super::wording::{NUMBER, SECTION, TEXTS};
use crate::toml_fields::Section;
use crate::value::Real;
use serde::{Deserialize, Serialize};
use toml::Value;

/// Key of `[input]` for the allowed share outside.
pub(crate) const KEY: &str = "annotations_outside";

/// Section of `[input]` that selects annotations.
pub(crate) const RULES: &str = "annotations";

/// Default share of the annotations of a file that may be outside its tile. A tile cut from an annotated area has
/// annotations across its border, which reach into it and do not count here. Those without a pixel in the tile are
/// a few strays, or an error of position or scale: a shift by a fifth of a tile leaves about a fifth of them
/// outside.
const DEFAULT_SHARE: f64 = 0.05;

/// Maximum micrometers per pixel: far beyond any overview of a slide.
const MAX_MPP: f64 = 1_000.0;

/// Selection of annotations by class, and the unit of their positions, from `[input.annotations]`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct AnnotationRules {
    /// Classes of the annotations that are the reference's objects. Empty for all classes.
    // No field is left out: workers receive the rules in a format of positions.
    #[serde(default)]
    pub classes: Vec<String>,
    /// Classes or names of the annotations that are regions of interest. Pixels and objects outside all of them do not
    /// count. Empty if everything counts.
    #[serde(default)]
    pub regions: Vec<String>,
    /// Unit of positions. `None` if the study does not state it: pixels, unless they look like micrometers.
    #[serde(default)]
    pub unit: Option<AnnotationUnit>,
    /// Micrometers per pixel of the images, in place of those that slides state. Only for micrometers.
    #[serde(default)]
    pub mpp: Option<Real>,
}

/// Unit of the positions in files of annotations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AnnotationUnit {
    /// Pixels of the tile, or of the slide at full resolution.
    Px,
    /// Micrometers.
    Um,
}

impl AnnotationRules {
    /// Returns whether all annotations are objects, everything counts, and positions are pixels.
    #[must_use]
    pub fn is_default(&self) -> bool {
        self.classes.is_empty() && self.regions.is_empty() && !self.is_in_microns()
    }

    /// Returns whether positions are micrometers.
    #[must_use]
    pub fn is_in_microns(&self) -> bool {
        self.unit == Some(AnnotationUnit::Um)
    }

    /// Returns the length of a pixel of the image in the unit of positions: 1, or its micrometers. `stated` are those that the image
    /// states. `None` if neither the image nor the study states them.
    #[must_use]
    pub fn positions_a_px(&self, stated: Option<f64>) -> Option<f64> {
        if self.is_in_microns() { self.mpp.map(Real::get).or(stated) } else { Some(1.0) }
    }
}

/// Part of a file of annotations that a task reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum AnnotationPart {
    /// The objects of the reference.
    Objects,
    /// The pixels that count: those of the tile's core within a region of interest.
    Counted,
}

/// Annotation counts (outlines of objects) of one reference file. Each annotation counts in one field besides
/// `objects`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Annotations {
    /// Index of the tile, from 0.
    pub tile: usize,
    /// Annotations of the file that are objects of the reference: all with an outline, without regions of interest and
    /// without those of other classes.
    pub objects: usize,
    /// Annotations without a pixel in the tile.
    pub outside: usize,
    /// Annotations with pixels in the tile that reach beyond it. Their parts outside are cut off.
    pub partly_outside: usize,
    /// Unusable annotations within the tile: they cover no pixel's center, or later ones cover all of their pixels.
    pub unusable: usize,
    /// Annotations of classes that the study does not select. Not among `objects`, nor are the next two.
    #[serde(default)]
    pub other_classes: usize,
    /// Points, lines and annotations without a geometry.
    #[serde(default)]
    pub without_area: usize,
    /// Regions of interest with a pixel in the tile.
    #[serde(default)]
    pub regions: usize,
    /// Objects and regions whose outline crosses itself. The even-odd rule defines their inside.
    #[serde(default)]
    pub self_crossing: usize,
    /// Objects and regions with a hole that is not within the outline. Only the common part is cut out.
    #[serde(default)]
    pub stray_holes: usize,
    /// Objects on a slide whose center is in no tile of the study.
    #[serde(default)]
    pub beyond_tiles: usize,
}

impl Annotations {
    /// Returns whether a share of more than `allowed` is outside the tile.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "far fewer annotations than 2^53")]
    pub fn exceed(&self, allowed: f64) -> bool {
        self.outside as f64 > allowed * self.objects as f64
    }

    /// Returns whether all annotations are used, completely and as drawn.
    #[must_use]
    pub fn are_whole(&self) -> bool {
        let left_out =
            self.outside + self.unusable + self.other_classes + self.without_area + self.beyond_tiles;
        left_out + self.partly_outside + self.self_crossing + self.stray_holes == 0
    }
}

/// Returns the default share.
pub(super) fn default_share() -> f64 {
    DEFAULT_SHARE
}

/// Reads the maximum share of a file's annotations that may be outside its tile.
pub(super) fn share(input: &Section<'_>) -> Result<f64, StudyError> {
    let given = input.number(KEY, NUMBER)?.unwrap_or(DEFAULT_SHARE);
    if (0.0..=1.0).contains(&given) {
        return Ok(given);
    }
    input.not_allowed(KEY, &number(given), "0 to 1, a share of the annotations of a file")
}

/// Reads the unit of positions, and the size of a pixel for micrometers.
fn unit(section: &Section<'_>) -> Result<(Option<AnnotationUnit>, Option<Real>), StudyError> {
    const UNITS: &str = "\"px\" (pixels) or \"um\" (micrometers)";
    let unit = match section.text("unit", UNITS)? {
        None => None,
        Some("px") => Some(AnnotationUnit::Px),
        Some("um") => Some(AnnotationUnit::Um),
        Some(other) => return section.not_allowed("unit", &format!("\"{other}\""), UNITS),
    };
    let Some(given) = section.number("mpp", NUMBER)? else { return Ok((unit, None)) };
    if unit != Some(AnnotationUnit::Um) {
        return section.not_allowed("mpp", &number(given), "none without unit = \"um\"");
    }
    match Real::try_from(given) {
        Ok(mpp) if given > 0.0 && given <= MAX_MPP => Ok((unit, Some(mpp))),
        _ => section.not_allowed("mpp", &number(given), "micrometers per pixel, above 0 and up to 1000"),
    }
}

/// Reads the selection of annotations.
pub(super) fn rules(input: &Section<'_>) -> Result<AnnotationRules, StudyError> {
    let Some(section) = input.section(RULES, SECTION)? else { return Ok(AnnotationRules::default()) };
    section.allow(&["classes", "regions", "unit", "mpp"])?;
    let read = |key: &str| -> Result<Vec<String>, StudyError> {
        let Some(names) = section.list(key, TEXTS, Value::as_str)? else { return Ok(Vec::new()) };
        if names.is_empty() {
            return section.not_allowed(key, "an empty list", "one or more names, or no such key");
        }
        if names.iter().any(|name| name.is_empty()) {
            return section.not_allowed(key, "an empty name", "names as in the annotation files");
        }
        let mut names: Vec<String> = names.into_iter().map(str::to_owned).collect();
        // Sorted, so that equal selections have equal identities.
        names.sort();
        names.dedup();
        Ok(names)
    };
    let (unit, mpp) = unit(&section)?;
    let rules = AnnotationRules { classes: read("classes")?, regions: read("regions")?, unit, mpp };
    match rules.regions.iter().find(|name| rules.classes.contains(name)) {
        Some(name) => {
            section.not_allowed("regions", &format!("\"{name}\""), "names that are not among classes")
        }
        None => Ok(rules),
    }
}
