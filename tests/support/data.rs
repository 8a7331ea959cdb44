//! The development data outside the repository.

use std::path::{Path, PathBuf};

/// The folder of the test data: `PLEACH_TEST_DATA`, or `shared/data` beside the checkout. Returns `None` and prints a line
/// if it is missing.
#[expect(clippy::print_stderr, reason = "a skipped test is loud")]
pub(crate) fn data(test: &str) -> Option<PathBuf> {
    let default = || {
        // The module is part of several crates, so it searches for the workspace root.
        let mut folders = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors();
        let checkout = folders.find(|folder| folder.join("Cargo.lock").is_file());
        checkout.unwrap_or(Path::new(".")).join("../shared/data")
    };
    let folder = std::env::var_os("PLEACH_TEST_DATA").map_or_else(default, PathBuf::from);
    match folder.canonicalize() {
        Ok(folder) if folder.is_dir() => Some(folder),
        _ => {
            eprintln!("SKIPPED {test}: no test data at {}", folder.display());
            None
        }
    }
}
