//! Tests in a process of their own, in a file system of their own. A test starts itself as its child.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Names the folder that a child works in.
const FOLDER: &str = "PLEACH_STORAGE_TEST_FOLDER";

/// The folder to work in, where this process is a child.
pub(crate) fn folder_of_child() -> Option<PathBuf> {
    std::env::var_os(FOLDER).map(PathBuf::from)
}

/// This program again, for one test, around which other programs may be.
pub(crate) fn child(test: &str, folder: &Path, around: &[&str]) -> Command {
    let program = std::env::current_exe().unwrap();
    let words = around.iter().map(|word| (*word).into()).chain([program.into_os_string()]);
    let words: Vec<std::ffi::OsString> =
        words.chain(["--exact", test, "--nocapture"].map(Into::into)).collect();
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]).env(FOLDER, folder).stdin(Stdio::null()).stderr(Stdio::inherit());
    command
}

/// Runs a test on a new file system of `size`, mounted in a namespace that ends with it. Returns at once after saying so
/// where that is not permitted.
#[expect(clippy::print_stdout, reason = "a test that does not run says so")]
pub(crate) fn on_new_file_system(test: &str, size: &str) {
    let place = tempfile::tempdir().unwrap();
    let script = format!(
        "mount -t tmpfs -o size={size} none \"${FOLDER}\" || exit 77; \"$@\" && test -e \"${FOLDER}/done\""
    );
    // Root needs no namespace of users, and may be allowed none; others cannot mount without.
    for flags in ["-m", "-rm"] {
        let mut command = child(test, place.path(), &["unshare", flags, "sh", "-c", &script, "sh"]);
        let ended = command.stderr(Stdio::piped()).output().unwrap();
        if ended.status.success() {
            assert_eq!(
                std::fs::read_dir(place.path()).unwrap().count(),
                0,
                "it was mounted where others see it"
            );
            return;
        }
        let said = String::from_utf8_lossy(&ended.stdout);
        let complained = String::from_utf8_lossy(&ended.stderr);
        assert!(!said.contains("running 1 test"), "{said}{complained}");
    }
    println!("SKIPPED {test}: no file system can be mounted here, not even in a namespace");
}

/// Tells the parent that the test has come to its end.
pub(crate) fn done(folder: &Path) {
    std::fs::write(folder.join("done"), "").unwrap();
}
