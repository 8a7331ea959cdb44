//! Runs a test in a child process, and on a file system of its own. The child is this program with the name of the test.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Environment variable with the working folder of a child.
const FOLDER: &str = "PLEACH_STORAGE_TEST_FOLDER";

/// Returns the working folder of a child. `None` in the parent.
pub(crate) fn folder_of_child() -> Option<PathBuf> {
    std::env::var_os(FOLDER).map(PathBuf::from)
}

/// Returns the command that runs one test of this program in a child. The words in `around` precede the program.
pub(crate) fn child(test: &str, folder: &Path, around: &[&str]) -> Command {
    let program = std::env::current_exe().unwrap();
    let words = around.iter().map(|word| (*word).into()).chain([program.into_os_string()]);
    let words: Vec<std::ffi::OsString> =
        words.chain(["--exact", test, "--nocapture"].map(Into::into)).collect();
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]).env(FOLDER, folder).stdin(Stdio::null()).stderr(Stdio::inherit());
    command
}

/// Runs a test on a new file system of `size`, mounted in a namespace of the child. If the system permits no mount, prints
/// that the test is skipped and returns.
#[expect(clippy::print_stdout, reason = "a skipped test is loud")]
pub(crate) fn on_new_file_system(test: &str, size: &str) {
    let place = tempfile::tempdir().unwrap();
    let script = format!(
        "mount -t tmpfs -o size={size} none \"${FOLDER}\" || exit 77; \"$@\" && test -e \"${FOLDER}/done\""
    );
    // Root needs no user namespace and may not be allowed one. Other users cannot mount without one.
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

/// Marks the test as completed for the parent.
pub(crate) fn done(folder: &Path) {
    std::fs::write(folder.join("done"), "").unwrap();
}
