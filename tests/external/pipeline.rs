//! A new pipeline, its edits, and the example beside a plain Python loop.

use crate::pleach::pleach;
use crate::results::{json, text};
use crate::{copy, environment};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

/// Runs of each operation, by name.
fn runs(folder: &Path, out: &str) -> BTreeMap<String, u64> {
    let record = json(&folder.join(out).join("run.json"));
    let operations = record["operations"].as_array().expect("a list").clone();
    let run =
        |of: &Value| (of["name"].as_str().expect("a name").to_owned(), of["runs"].as_u64().expect("a count"));
    operations.iter().map(run).filter(|(name, _)| name.starts_with("python:")).collect()
}

#[test]
fn new_pipeline_runs_and_only_readers_of_an_edited_module_run_again() {
    let Some(python) = environment("new_pipeline_runs_and_only_readers_of_an_edited_module_run_again") else {
        return;
    };
    let python = python.to_str().expect("UTF-8");
    let parent = tempfile::tempdir().expect("a folder");
    pleach(parent.path(), &["workflow", "new", "my-pipeline", "--python"]).done();
    let folder = parent.path().join("my-pipeline");
    pleach(&folder, &["tissue", "--out", "tiles", "--size", "96", "--count", "2"]).done();
    let tests = Command::new(Path::new(python).join("bin/python"))
        .args(["-m", "unittest", "discover", "tests"])
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .current_dir(&folder)
        .output();
    assert!(tests.as_ref().is_ok_and(|tests| tests.status.success()), "{tests:?}");
    pleach(&folder, &["workflow", "check", "workflow.json", "--python", python]).done();
    let run = |out: &str| {
        let cache = ["--cache", "cache", "--quiet", "--workers", "2"];
        pleach(&folder, &[&["run", "study.toml", "--python", python, "--out", out], &cache[..]].concat())
            .done();
        runs(&folder, out)
    };
    let first = run("first");
    assert_eq!(first.len(), 4);
    assert!(first.values().all(|runs| *runs > 0), "{first:?}");
    assert!(run("again").values().all(|runs| *runs == 0), "nothing has changed");

    // A comment: the identity changes, and no result does.
    let module = folder.join("measure.py");
    fs::write(&module, text(&module) + "# edited\n").expect("edited");
    let explained = pleach(
        &folder,
        &[
            "explain",
            "study.toml",
            "--evaluation",
            "2",
            "--tile",
            "tissue_01",
            "--cache",
            "cache",
            "--python",
            python,
        ],
    );
    let explained = explained.done();
    assert!(explained.contains("nearest: measure.py changed"), "{explained}");
    assert!(!explained.contains('@'), "digests are not for users: {explained}");
    let edited = run("edited");
    for (operation, runs) in &edited {
        let of_module = operation.starts_with("python:measure.");
        assert_eq!(*runs, if of_module { first[operation] } else { 0 }, "{operation}");
    }
    let responses = |out: &str| text(&folder.join(out).join("responses.csv"));
    assert_eq!(responses("edited"), responses("first"));
    assert!(run("edited-again").values().all(|runs| *runs == 0), "nothing has changed since");
}

#[test]
fn example_gives_the_bits_of_a_plain_loop() {
    let Some(python) = environment("example_gives_the_bits_of_a_plain_loop") else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    copy(&root.join("examples/python-nuclei"), folder.path());
    pleach(folder.path(), &["tissue", "--out", "tiles", "--size", "128", "--count", "2"]).done();
    let study = text(&folder.path().join("study.toml"));
    let trajectories =
        study.lines().find(|line| line.starts_with("trajectories")).expect("a MOAT study").to_owned();
    fs::write(folder.path().join("study.toml"), study.replace(&trajectories, "trajectories = 2"))
        .expect("written");
    let of_python = ["--python", python.to_str().expect("UTF-8"), "--quiet"];
    pleach(folder.path(), &[&["run", "study.toml", "--out", "results"], &of_python[..]].concat()).done();
    let tiles = ["tissue_01", "tissue_02"].map(|tile| folder.path().join(format!("tiles/{tile}.png")));
    let plain = Command::new(python.join("bin/python"))
        .arg(root.join("tests/external/loop.py"))
        .args(["--example", ".", "--sets", "results/samples.csv", "--out", "plain.csv"])
        .args(tiles)
        .current_dir(folder.path())
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .output()
        .expect("Python starts");
    assert!(plain.status.success(), "{}", String::from_utf8_lossy(&plain.stderr));
    let responses = text(&folder.path().join("results/responses.csv"));
    assert!(responses.lines().count() > 60, "{responses}");
    assert_eq!(responses, text(&folder.path().join("plain.csv")));
    let executed = runs(folder.path(), "results");
    assert_eq!(executed["python:nuclei.deconvolve"], 2, "once for each tile: {executed:?}");
}
