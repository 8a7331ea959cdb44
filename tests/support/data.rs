//! The development data, which lies outside the repository.

use std::path::{Path, PathBuf};

/// The folder of the test data (`PLEACH_TEST_DATA`, else `shared/data` beside the checkout), or `None` after saying so.
#[expect(clippy::print_stderr, reason = "a test that does not run says so")]
pub(crate) fn data(test: &str) -> Option<PathBuf> {
    let default = || {
        // Of whichever crate this is a part.
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
