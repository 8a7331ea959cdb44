//! Text and JSON files of a study's results.

use std::fs;
use std::path::Path;

/// A JSON file.
pub(crate) fn json(path: &Path) -> serde_json::Value {
    serde_json::from_str(&text(path)).expect("a JSON document")
}

/// A text file.
pub(crate) fn text(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}
