//! Sizes in manifests: a number of bytes, or a text with a unit.

use pleach_regions::memory_size::MemorySize;
use serde::Deserialize;
use std::fmt;

/// A size as written.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub(super) enum MemoryText {
    Bytes(u64),
    Text(String),
}

impl MemoryText {
    /// Returns the bytes. `None` for a text that is no [`MemorySize`].
    pub(super) fn bytes(&self) -> Option<u64> {
        match self {
            Self::Bytes(bytes) => Some(*bytes),
            Self::Text(text) => text.parse().ok().map(MemorySize::bytes),
        }
    }
}

impl fmt::Display for MemoryText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bytes(bytes) => write!(f, "{bytes}"),
            Self::Text(text) => write!(f, "\"{text}\""),
        }
    }
}
