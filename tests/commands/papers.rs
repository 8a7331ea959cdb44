//! `benches/papers/run`: the frame of the papers' figures, and the chapter that it writes.

use crate::pleach::{Answer, answer};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/papers")
}

/// Runs the figures of a label without the test data.
fn run(results: &Path, args: &[&str]) -> Answer {
    let mut command = Command::new(folder().join("run"));
    command
        .arg("--pleach")
        .arg(assert_cmd::cargo::cargo_bin!("pleach"))
        .arg("--results")
        .arg(results)
        .args(args);
    answer(command.env("PLEACH_TEST_DATA", results.join("no-data")))
}

/// Steps, Welch's test, pictures, documents, an entry for every published figure, and the modules' own tests. Designs, models and runs of the figures:
/// `test_studies.py`.
#[test]
fn the_frame_passes_its_own_tests() {
    let mut command = Command::new("python3");
    let tested =
        answer(command.args(["-m", "unittest", "test_papers", "test_studies"]).current_dir(folder()));
    assert_eq!(tested.code, 0, "{}", tested.stderr);
    assert!(tested.stderr.trim_end().ends_with("OK"), "{}", tested.stderr);
}

/// A worked example of paper 002 through the binary, twice: the second run takes the kept steps.
#[test]
fn a_figure_is_measured_once_and_documented() {
    let results = tempfile::tempdir().expect("a folder");
    let document = results.path().join("docs/papers.md");
    let args = ["--only", "002 Fig. 7", "--document", document.to_str().expect("UTF-8")];
    let first = run(results.path(), &args).done();
    assert!(first.contains("pleach cluster fig-7-left --method none:"), "{first}");
    let text = fs::read_to_string(&document).expect("a document");
    assert!(text.contains("| left: HDV of t1 to t4, from the matrix of Table 1 | 1.03 | 1.033 |"), "{text}");
    assert!(text.contains("| right: HIFV of t1 to t4 | 0.17 | 0.167 |"), "{text}");
    let row = "| [002 Table 1](#002-fig-7--002-fig-6--002-table-1-metrics-of-two-workflows) | Metrics of two workflows |  |  | yes |  |";
    assert!(text.contains(row), "{text}");
    // Figures that were not asked for have sections too.
    assert!(text.contains("*Missing.* Not run yet:"), "{text}");
    assert!(text.contains("The test data (`PLEACH_TEST_DATA`) is absent"), "{text}");
    let second = run(results.path(), &args).done();
    assert!(!second.contains("pleach cluster"), "{second}");
    assert_eq!(fs::read_to_string(&document).expect("a document"), text);
}

/// Plans of a figure of the thesis, by `pleach plan`.
#[test]
fn buckets_of_equal_tasks_are_planned_by_the_binary() {
    let results = tempfile::tempdir().expect("a folder");
    let document = results.path().join("papers.md");
    let args = ["--only", "000 Fig. 4.6", "--document", document.to_str().expect("UTF-8")];
    run(results.path(), &args).done();
    let text = fs::read_to_string(&document).expect("a document");
    assert!(text.contains("| tasks, bucket 1 and bucket 2 | equal | 9 and 9 |  |"), "{text}");
    assert!(text.contains("| bucket 2 / bucket 1 | 1.25 | 1.26 |"), "{text}");
}

/// The chapter in the repository has the figures that are registered today.
#[test]
fn the_chapter_has_every_registered_figure() {
    let listed = run(Path::new("unused"), &["--list"]).done();
    let chapter = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/papers.md");
    let chapter = fs::read_to_string(chapter).expect("a chapter");
    let names =
        listed.lines().filter_map(|line| line.split('\t').next()).flat_map(|names| names.split(" = "));
    let missing: Vec<&str> = names.filter(|name| !chapter.contains(&format!("| [{name}](#"))).collect();
    assert!(missing.is_empty(), "not in docs/papers.md, written by benches/papers/run: {missing:?}");
}
