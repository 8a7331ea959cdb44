//! Text and JSON result files of a study.

use std::fs;
use std::path::Path;

/// Reads a JSON file.
pub(crate) fn json(path: &Path) -> serde_json::Value {
    serde_json::from_str(&text(path)).expect("a JSON document")
}

/// Reads a text file.
pub(crate) fn text(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}
