//! Weights of tiles in means over tiles.
//!
//! The preparation of a study determines the weights, because they depend on pixels or on annotations.

use super::StudyError;
use super::wording::TEXT;
use crate::toml_fields::Section;
use serde::{Deserialize, Serialize};

/// Key of `[response]`.
pub(super) const KEY: &str = "weights";

/// Rule for the weight of a tile in means over tiles.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TileWeights {
    /// Every tile has the same weight.
    #[default]
    Equal,
    /// The tissue in the core of a slide's tile, pixels.
    Tissue,
    /// The pixels of the core within regions of interest. Without regions, all of its pixels.
    Annotated,
}

impl TileWeights {
    const ALL: [(&'static str, Self); 3] =
        [("equal", Self::Equal), ("tissue", Self::Tissue), ("annotated", Self::Annotated)];

    /// Returns the name in study files.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, of)| *of == self).map_or("", |(name, _)| name)
    }

    /// Returns whether all tiles have the same weight.
    #[must_use]
    pub fn are_equal(&self) -> bool {
        *self == Self::Equal
    }
}

/// Reads the weights. `has_slides` and `has_annotations` state whether the study has slides, and a folder of references.
pub(super) fn read(
    response: &Section<'_>,
    has_slides: bool,
    has_annotations: bool,
) -> Result<TileWeights, StudyError> {
    let Some(text) = response.text(KEY, TEXT)? else { return Ok(TileWeights::default()) };
    let shown = format!("\"{text}\"");
    let Some((_, weights)) = TileWeights::ALL.iter().find(|(name, _)| *name == text) else {
        return response.not_allowed(KEY, &shown, "\"equal\", \"tissue\", \"annotated\"");
    };
    match weights {
        TileWeights::Tissue if !has_slides => {
            response.not_allowed(KEY, &shown, "\"equal\", \"annotated\" for tiles; \"tissue\" needs slides")
        }
        TileWeights::Annotated if !has_annotations => {
            let allowed = "\"equal\", \"tissue\" with reference = \"defaults\"; \"annotated\" needs a folder of references";
            response.not_allowed(KEY, &shown, allowed)
        }
        weights => Ok(*weights),
    }
}
