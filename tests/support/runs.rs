//! Runs studies and reads their results.

use crate::pleach::pleach;
use crate::results::{json, text};
use crate::study::Study;
use serde_json::Value;

/// Runs the study into `out`. Returns `run.json`.
pub(crate) fn run(study: &Study, out: &str, options: &[&str]) -> Value {
    let command = [&["run", "study.toml", "--out", out, "--quiet"], options].concat();
    pleach(study.folder(), &command).done();
    json(&study.path(out).join("run.json"))
}

/// `responses.csv` in `out`.
pub(crate) fn responses(study: &Study, out: &str) -> String {
    text(&study.path(out).join("responses.csv"))
}

/// A number in `run.json`.
pub(crate) fn number(record: &Value, pointer: &str) -> u64 {
    record.pointer(pointer).and_then(Value::as_u64).unwrap_or_else(|| panic!("{pointer} in {record}"))
}
