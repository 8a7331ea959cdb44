//! The Python package `python/`: its tests, against this binary.

use crate::environment;
use std::path::Path;
use std::process::Command;

/// Tests that take longest, beside the others.
const APART: [&str; 3] = ["test_notebooks", "test_submission", "test_types"];

/// Runs modules of tests of the package. The environment has all that they need, so that none has a reason to skip.
fn pass(test: &str, modules: &[&str]) {
    let Some(python) = environment(test) else { return };
    let package = Path::new(env!("CARGO_MANIFEST_DIR")).join("python");
    let output = Command::new(python.join("bin/python"))
        .args(["-m", "unittest", "-v"])
        .args(modules)
        .current_dir(package.join("tests"))
        .env("PYTHONPATH", package.join("src"))
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("PLEACH", assert_cmd::cargo::cargo_bin!("pleach"))
        .output()
        .expect("Python starts");
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}");
    assert!(!text.contains("skipped"), "{text}");
    for module in modules {
        assert!(
            text.lines().any(|line| line.contains(module) && line.ends_with("... ok")),
            "{module}: {text}"
        );
    }
}

#[test]
fn tests_of_the_python_package_pass() {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("python/tests");
    let names = std::fs::read_dir(tests).expect("a folder").map(|entry| entry.expect("an entry").path());
    let names = names.filter(|path| path.extension().is_some_and(|extension| extension == "py"));
    let modules: Vec<String> =
        names.map(|path| path.file_stem().expect("a name").to_string_lossy().into_owned()).collect();
    assert!(APART.iter().all(|name| modules.iter().any(|module| module == name)), "{modules:?}");
    let modules: Vec<&str> =
        modules.iter().map(String::as_str).filter(|name| !APART.contains(name)).collect();
    assert!(modules.len() >= 5, "{modules:?}");
    pass("tests_of_the_python_package_pass", &modules);
}

#[test]
fn notebooks_are_executed() {
    pass("notebooks_are_executed", &["test_notebooks"]);
}

#[test]
fn python_submits_studies_to_a_manager() {
    pass("python_submits_studies_to_a_manager", &["test_submission"]);
}

#[test]
fn types_of_the_python_package_are_strict() {
    pass("types_of_the_python_package_are_strict", &["test_types"]);
}
