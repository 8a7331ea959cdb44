//! Sizes in manifests: a number of bytes, or a text with a unit.

use serde::Deserialize;
use std::fmt;

/// A size as written.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub(super) enum MemoryText {
    Bytes(u64),
    Text(String),
}

const UNITS: [(&str, u64); 6] = [
    ("kB", 1000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
];

impl MemoryText {
    /// Returns the bytes. `None` for another text than a whole number with a unit.
    pub(super) fn bytes(&self) -> Option<u64> {
        match self {
            Self::Bytes(bytes) => Some(*bytes),
            Self::Text(text) => UNITS.iter().find_map(|(unit, bytes)| {
                text.strip_suffix(unit)?.trim_end().parse::<u64>().ok()?.checked_mul(*bytes)
            }),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units() {
        let bytes = |text: &str| MemoryText::Text(text.to_owned()).bytes();
        assert_eq!(bytes("200MB"), Some(200_000_000));
        assert_eq!(bytes("2 GiB"), Some(2 << 30));
        assert_eq!(
            (bytes("MB"), bytes("-1MB"), bytes("200"), bytes("99999999999GB")),
            (None, None, None, None)
        );
    }
}
