//! The Python package `python/`: its tests, against this binary.

use crate::environment;
use std::path::Path;
use std::process::Command;

#[test]
fn tests_of_the_python_package_pass() {
    let Some(python) = environment("tests_of_the_python_package_pass") else { return };
    let package = Path::new(env!("CARGO_MANIFEST_DIR")).join("python");
    let output = Command::new(python.join("bin/python"))
        .args(["-m", "unittest", "discover", "-v", "-s", "tests"])
        .current_dir(&package)
        .env("PYTHONPATH", package.join("src"))
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("PLEACH", assert_cmd::cargo::cargo_bin!("pleach"))
        .output()
        .expect("Python starts");
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}");
    // The environment has SALib and pandas, so that no test has a reason to skip.
    assert!(!text.contains("skipped"), "{text}");
    assert!(text.contains("ok"), "{text}");
}
