//! Operations in Python, from outside: a new pipeline, a workflow with operations of both kinds, faults, and the end of all
//! processes.

#[path = "../support/pleach.rs"]
mod pleach;
#[path = "../support/results.rs"]
mod results;
#[expect(dead_code, reason = "other tests read numbers")]
#[path = "../support/runs.rs"]
mod runs;
#[path = "../support/study.rs"]
mod study;

mod classifier;
mod client;
mod devices;
mod faults;
mod instrument;
mod memory;
mod mixed;
mod networks;
mod path;
mod pipeline;
mod schema;
mod stub;
mod wheel;

use std::path::{Path, PathBuf};
use std::process::Command;

/// Prints the line of a test that does not run.
#[expect(clippy::print_stdout, reason = "a test that does not run prints it")]
fn skipped(test: &str, reason: &str) {
    println!("SKIPPED {test}: {reason}");
}

/// Returns the environment that `scripts/install-python` installs. `None`, with a line that names the test, if it cannot.
fn environment(test: &str) -> Option<PathBuf> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts/install-python");
    let output = Command::new(script).output().expect("the script runs");
    if !output.status.success() {
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        skipped(test, &format!("no Python environment: {}", text.lines().last().unwrap_or_default()));
        return None;
    }
    Some(PathBuf::from(String::from_utf8(output.stdout).expect("UTF-8").trim()))
}

/// Copies the files of a folder, without its folders.
fn copy(from: &Path, to: &Path) {
    for entry in std::fs::read_dir(from).expect("a folder").map(|entry| entry.expect("an entry")) {
        if entry.path().is_file() {
            std::fs::copy(entry.path(), to.join(entry.file_name())).expect("copied");
        }
    }
}
