//! Annotations of reference files: how many lie in their tile, and how many may lie outside it.
//!
//! The files are read by `pleach-pathology`; nothing is decided here about single annotations.

use super::StudyError;
use super::fields::Section;
use super::slides::number;
use serde::{Deserialize, Serialize};

/// Key of `[input]` for the share that may lie outside.
pub(crate) const KEY: &str = "annotations_outside";

/// Share of the annotations of a file that may lie outside its tile where none is given. A tile that is cut from an
/// annotated area has annotations across its border, which reach into it and do not count here. Those with no pixel in the
/// tile are a few strays, or a mistake of place or scale: a shift by a fifth of a tile leaves about a fifth of them outside.
const DEFAULT_SHARE: f64 = 0.05;

/// How the annotations (outlines of objects) of one reference file lie in its tile. An annotation is of one kind only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Annotations {
    /// The tile, by its number from 0.
    pub tile: usize,
    /// All annotations of the file.
    pub objects: usize,
    /// Those with no pixel in the tile.
    pub outside: usize,
    /// Those with pixels in the tile that reach beyond it, and are cut off at its border.
    pub partly_outside: usize,
    /// Those within the tile that cannot be used: they enclose no pixel's center, or later ones cover all of their pixels.
    pub unusable: usize,
}

impl Annotations {
    /// Whether a share of more than `allowed` lies outside the tile.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "far fewer annotations than 2^53")]
    pub fn exceed(&self, allowed: f64) -> bool {
        self.outside as f64 > allowed * self.objects as f64
    }

    /// Whether all of them are used whole.
    #[must_use]
    pub fn are_whole(&self) -> bool {
        self.outside + self.partly_outside + self.unusable == 0
    }
}

/// The default share, for studies that say nothing.
pub(super) fn default_share() -> f64 {
    DEFAULT_SHARE
}

/// The largest share of a file's annotations that may lie outside its tile.
pub(super) fn share(input: &Section<'_>) -> Result<f64, StudyError> {
    let given = input.number(KEY)?.unwrap_or(DEFAULT_SHARE);
    if (0.0..=1.0).contains(&given) {
        return Ok(given);
    }
    input.not_allowed(KEY, &number(given), "0 to 1, a share of the annotations of a file")
}
