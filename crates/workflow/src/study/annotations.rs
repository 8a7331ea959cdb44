//! Annotations of reference files: counts within and outside their tile, and the allowed share outside.
//!
//! `pleach-pathology` reads the files and classifies single annotations.

use super::StudyError;
use super::slides::number;
use super::wording::NUMBER;
use crate::toml_fields::Section;
use serde::{Deserialize, Serialize};

/// Key of `[input]` for the allowed share outside.
pub(crate) const KEY: &str = "annotations_outside";

/// Default share of the annotations of a file that may be outside its tile. A tile cut from an annotated area has
/// annotations across its border, which reach into it and do not count here. Those without a pixel in the tile are
/// a few strays, or an error of position or scale: a shift by a fifth of a tile leaves about a fifth of them
/// outside.
const DEFAULT_SHARE: f64 = 0.05;

/// Annotation counts (outlines of objects) of one reference file. Each annotation counts in one field besides
/// `objects`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Annotations {
    /// Index of the tile, from 0.
    pub tile: usize,
    /// All annotations of the file.
    pub objects: usize,
    /// Annotations without a pixel in the tile.
    pub outside: usize,
    /// Annotations with pixels in the tile that reach beyond it. Their parts outside are cut off.
    pub partly_outside: usize,
    /// Unusable annotations within the tile: they cover no pixel's center, or later ones cover all of their pixels.
    pub unusable: usize,
}

impl Annotations {
    /// Returns whether a share of more than `allowed` is outside the tile.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "far fewer annotations than 2^53")]
    pub fn exceed(&self, allowed: f64) -> bool {
        self.outside as f64 > allowed * self.objects as f64
    }

    /// Returns whether all annotations are used completely.
    #[must_use]
    pub fn are_whole(&self) -> bool {
        self.outside + self.partly_outside + self.unusable == 0
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
