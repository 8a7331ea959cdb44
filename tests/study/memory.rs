//! Studies within a budget of memory: the same results, and refused where they cannot be executed at all.

use crate::pleach::pleach;
use crate::results::json;
use crate::study::Study;
use crate::{findings, run};

/// The least megabytes that a refusal names.
fn least_megabytes(said: &str) -> u64 {
    let number = said.split(" needs ").nth(1).and_then(|rest| rest.split(' ').next());
    number.and_then(|number| number.parse().ok()).unwrap_or_else(|| panic!("no number in {said}"))
}

#[test]
fn results_do_not_depend_on_memory_and_the_budget_is_kept() {
    let study = Study::of_tissue(512);
    // Without normalization, whose table of colours is larger than such a tile.
    study.edit(&[("trajectories = 2", "trajectories = 1"), ("normalize = true", "normalize = false")]);
    let refused = pleach(study.folder(), &["run", "study.toml", "--out", "none", "--memory", "1MB"]);
    assert_eq!((refused.code, refused.stdout.as_str()), (2, ""), "{refused:?}");
    assert!(!study.path("none").exists(), "nothing was begun");
    let said = &refused.stderr;
    assert!(said.starts_with("error: --memory 1.00 MB: the segmentation of "), "{said}");
    let least = least_megabytes(said);
    assert!(said.ends_with(&format!(" needs {least} MB at once; {least}MB or more is allowed\n")), "{said}");
    // Scratch of the most demanding task alone is 8 bytes a pixel or more.
    assert!((2..20).contains(&least), "{said}");

    let plenty = findings(&study, "plenty", &["--memory", "4GB", "--workers", "4"]);
    for (out, memory) in [("least", least), ("more", least * 3 / 2)] {
        let memory = format!("{memory}MB");
        assert_eq!(findings(&study, out, &["--memory", &memory, "--workers", "4"]), plenty);
        let admitted =
            json(&study.path(out).join("run.json"))["peak_bytes_admitted"].as_u64().expect("bytes");
        assert!(admitted <= memory.trim_end_matches("MB").parse::<u64>().expect("a number") * 1_000_000);
    }
    let admitted = json(&study.path("plenty/run.json"))["peak_bytes_admitted"].as_u64().expect("bytes");
    assert!(admitted > least * 1_000_000, "four workers take more where they may: {admitted}");
}

#[test]
fn paths_can_be_bounded() {
    let study = Study::of_tissue(256);
    study.edit(&[("trajectories = 2", "trajectories = 1")]);
    let free = findings(&study, "free", &["--workers", "4"]);
    assert_eq!(findings(&study, "one", &["--workers", "4", "--active-paths", "1"]), free);
    run(&study, "two", &["--workers", "4", "--active-paths", "2", "--strategy", "none"]);
    let refused = pleach(study.folder(), &["run", "study.toml", "--out", "x", "--active-paths", "0"]);
    assert!(refused.stderr.contains("a whole number of at least 1 is allowed"), "{refused:?}");
}
