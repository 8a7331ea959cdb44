//! The sensitivity indices of a study, as `indices.json` and reports write them.
//!
//! Every number is finite; one that cannot be known is absent (`null`), never NaN.

use crate::moat::MoatIndices;
use serde::{Deserialize, Serialize};

/// Indices of one response, by method. In JSON `"method"` tells which.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "method", rename_all = "lowercase")]
#[non_exhaustive]
pub enum Indices {
    /// Morris one-at-a-time.
    Moat(MoatIndices),
}
