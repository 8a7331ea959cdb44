//! Studies within a memory budget have the same results. Budgets below the minimum are refused. Spill tiers hold regions
//! beyond the budget.

use crate::pleach::pleach;
use crate::results::json;
use crate::study::Study;
use crate::{findings, run};
use std::fs;

/// The minimum memory in MB that a refusal names.
fn least_megabytes(said: &str) -> u64 {
    let number = said.split(" needs ").nth(1).and_then(|rest| rest.split(' ').next());
    number.and_then(|number| number.parse().ok()).unwrap_or_else(|| panic!("no number in {said}"))
}

#[test]
fn results_do_not_depend_on_memory_and_the_budget_is_kept() {
    let study = Study::of_tissue(512);
    // Without normalization, whose color table is larger than such a tile.
    study.edit(&[("trajectories = 2", "trajectories = 1"), ("normalize = true", "normalize = false")]);
    let refused = pleach(study.folder(), &["run", "study.toml", "--out", "none", "--memory", "1MB"]);
    assert_eq!((refused.code, refused.stdout.as_str()), (2, ""), "{refused:?}");
    assert!(!study.path("none").exists(), "nothing was begun");
    let said = &refused.stderr;
    assert!(said.starts_with("error: --memory 1.00 MB: the segmentation of "), "{said}");
    let least = least_megabytes(said);
    assert!(said.ends_with(&format!(" needs {least} MB at once; {least}MB or more is allowed\n")), "{said}");
    // The scratch memory of the most demanding task alone is at least 8 bytes per pixel.
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
fn active_paths_never_change_results() {
    // `actors/tests/nodes/engine.rs` tests that active paths bound the concurrent tasks, with operations that wait for each other.
    let study = Study::of_tissue(256);
    study.edit(&[("trajectories = 2", "trajectories = 1")]);
    let free = findings(&study, "free", &["--workers", "4"]);
    assert_eq!(findings(&study, "one", &["--workers", "4", "--active-paths", "1"]), free);
    run(&study, "two", &["--workers", "4", "--active-paths", "2", "--strategy", "none"]);
    let refused = pleach(study.folder(), &["run", "study.toml", "--out", "x", "--active-paths", "0"]);
    assert!(refused.stderr.contains("a whole number of at least 1 is allowed"), "{refused:?}");
}

#[test]
fn regions_beyond_memory_are_spilled() {
    let study = Study::of_tissue(512);
    study.edit(&[("normalize = true", "normalize = false")]);
    let plenty = findings(&study, "plenty", &["--memory", "4GB", "--workers", "2"]);
    let all = json(&study.path("plenty/run.json"))["peak_bytes_admitted"].as_u64().expect("bytes");
    let refused = pleach(study.folder(), &["run", "study.toml", "--out", "none", "--memory", "1MB"]);
    let quarter = all / 4;
    assert!(quarter >= least_megabytes(&refused.stderr) * 1_000_000, "{all} bytes: {}", refused.stderr);
    let memory = quarter.to_string();
    // Another file system, as a shared folder has.
    let elsewhere = tempfile::tempdir_in("/dev/shm").expect("memory as a disk");
    let elsewhere = elsewhere.path().to_str().expect("UTF-8");
    fs::create_dir(study.path("ssd")).expect("a folder");
    fs::create_dir(study.path("first")).expect("a folder");
    // The first of two tiers is too small for all spilled regions.
    let list = format!(
        "[[tier]]\nkind = \"ssd\"\npath = \"first\"\ncapacity = \"8MB\"\n[[tier]]\nkind = \"lustre\"\npath = \"{elsewhere}\"\n"
    );
    study.write("tiers.toml", list + "capacity = \"1GB\"\n");
    for tiers in [["--ssd", "ssd"], ["--lustre", elsewhere], ["--tiers", "tiers.toml"]] {
        let out = tiers[0].trim_start_matches('-');
        let args = ["--memory", &memory, "--workers", "2", tiers[0], tiers[1]];
        assert_eq!(findings(&study, out, &args), plenty, "{tiers:?}");
        let run = json(&study.path(out).join("run.json"));
        assert!(run["peak_bytes_admitted"].as_u64().expect("bytes") <= quarter, "{run}");
        let storage = &run["storage"];
        for moved in ["demoted", "promoted"] {
            assert!(storage[moved]["regions"].as_u64().expect("a number") > 0, "{tiers:?}: {storage}");
        }
        assert_eq!((&storage["lost"], &storage["refused"]), (&0.into(), &0.into()), "{tiers:?}");
        let tiers = storage["tiers"].as_array().expect("tiers");
        assert!(
            tiers.iter().all(|tier| tier["held_bytes"].as_u64() < Some(4 << 20)),
            "something is left: {storage}"
        );
    }
    let listed = pleach(study.folder(), &["storage", "ls", "--ssd", "ssd/regions", "--json"]).done();
    let listed: serde_json::Value = serde_json::from_str(&listed).expect("JSON");
    assert_eq!(listed[0]["regions"], serde_json::json!([]));
}

#[test]
fn tiers_that_cannot_be_used_are_refused_before_anything_begins() {
    let study = Study::of_tissue(64);
    study.write("file", "");
    let refused = |args: &[&str], said: &str| {
        let answer = pleach(study.folder(), &[&["run", "study.toml", "--out", "out"], args].concat());
        assert_eq!(answer.code, 2, "{answer:?}");
        assert!(answer.stderr.contains(said), "{answer:?}");
        assert!(!study.path("out").exists(), "something was begun");
    };
    refused(&["--ssd", "nowhere"], "--ssd nowhere: not a folder; an existing folder is needed");
    refused(&["--ssd", "file"], "--ssd file: not a folder; an existing folder is needed");
    refused(&["--lustre", "nowhere"], "nowhere");
    refused(&["--lustre", "file"], "file: not a folder");
    refused(&["--tiers", "nowhere.toml"], "nowhere.toml: failed to read");
    study.write("tiers.toml", "[[tier]]\nkind = \"ssd\"\npath = \".\"\ncapacity = \"0\"\n");
    refused(&["--tiers", "tiers.toml"], "tiers.toml: tier 1: capacity");
}
