//! Sensitivity indices of a study, as `indices.json` and reports write them.
//!
//! Every number is finite. An undefined number is absent (`null`), never NaN.

use crate::methods::correlation::Correlations;
use crate::methods::delta::DeltaIndices;
use crate::methods::fast::FastIndices;
use crate::methods::moat::MoatIndices;
use crate::methods::pawn::PawnIndices;
use crate::methods::rbd_fast::RbdFastIndices;
use crate::methods::regression::Regression;
use crate::methods::vbd::VbdIndices;
use serde::{Deserialize, Serialize};

/// Indices of one response, by method. The JSON key `"method"` names the method.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "method", rename_all = "lowercase")]
#[non_exhaustive]
pub enum Indices {
    /// Morris one-at-a-time.
    Moat(MoatIndices),
    /// Pearson's correlation.
    Pearson(Correlations),
    /// Spearman's rank correlation.
    Spearman(Correlations),
    /// Partial correlation.
    Pcc(Correlations),
    /// Partial rank correlation.
    Prcc(Correlations),
    /// Standardized regression.
    Src(Regression),
    /// Standardized regression of ranks.
    Srrc(Regression),
    /// Variance-based decomposition.
    Vbd(VbdIndices),
    /// PAWN.
    Pawn(PawnIndices),
    /// Borgonovo's delta.
    Delta(DeltaIndices),
    /// Extended Fourier amplitude sensitivity test.
    Efast(FastIndices),
    /// Random balance design and Fourier amplitude sensitivity test.
    #[serde(rename = "rbd-fast")]
    RbdFast(RbdFastIndices),
}

impl Indices {
    /// Name of the response.
    #[must_use]
    pub fn response(&self) -> &str {
        match self {
            Self::Moat(found) => &found.response,
            Self::Pearson(found) | Self::Spearman(found) | Self::Pcc(found) | Self::Prcc(found) => {
                &found.response
            }
            Self::Src(found) | Self::Srrc(found) => &found.response,
            Self::Vbd(found) => &found.response,
            Self::Pawn(found) => &found.response,
            Self::Delta(found) => &found.response,
            Self::Efast(found) => &found.response,
            Self::RbdFast(found) => &found.response,
        }
    }

    /// Returns whether the response does not vary, so that indices allow no conclusion. With MOAT, whether it
    /// varies along no trajectory.
    #[must_use]
    pub fn no_variation(&self) -> bool {
        match self {
            Self::Moat(found) => found.parameters.iter().all(|parameter| parameter.mu_star == 0.0),
            Self::Pearson(found) | Self::Spearman(found) | Self::Pcc(found) | Self::Prcc(found) => {
                found.no_variation
            }
            Self::Src(found) | Self::Srrc(found) => found.no_variation,
            Self::Vbd(found) => found.no_variation,
            Self::Pawn(found) => found.no_variation,
            Self::Delta(found) => found.no_variation,
            Self::Efast(found) => found.no_variation,
            Self::RbdFast(found) => found.no_variation,
        }
    }
}
