//! Task cache across studies: results are reused and explained, and corrupt entries are never used.

use crate::pleach::pleach;
use crate::results::{json, text};
use crate::runs;
use crate::runs::{number, responses};
use crate::study::Study;
use serde_json::Value;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

/// Runs the study into `out` with the folder `kept` as cache. Returns `run.json`.
fn run(study: &Study, out: &str, options: &[&str]) -> Value {
    runs::run(study, out, &[&["--cache", "kept"], options].concat())
}

/// Executed and reused tasks together, a number that does not depend on the content of a cache.
fn all_tasks(record: &Value) -> u64 {
    let levels = record["tasks_reused"].as_object().expect("by level").values();
    number(record, "/tasks_executed") + levels.filter_map(Value::as_u64).sum::<u64>()
}

/// Segment files of the cache.
fn segments(study: &Study) -> Vec<PathBuf> {
    let files = fs::read_dir(study.path("kept")).expect("a cache").filter_map(Result::ok);
    let mut segments: Vec<PathBuf> = files.map(|file| file.path()).collect();
    segments.retain(|path| path.extension().is_some_and(|extension| extension == "segment"));
    segments.sort();
    segments
}

#[test]
fn a_study_runs_once() {
    let study = Study::of_tissue(128);
    pleach(study.folder(), &["run", "study.toml", "--out", "plain", "--quiet"]).done();
    // One worker: of two equal tasks that start at once, one could find the other's fresh result in the cache.
    let first = run(&study, "first", &["--workers", "1"]);
    assert_eq!(number(&first, "/tasks_reused/cache"), 0);
    let again = run(&study, "again", &["--workers", "2"]);
    assert_eq!(number(&again, "/tasks_executed"), 0);
    assert!(number(&again, "/tasks_reused/cache") > 0);
    assert_eq!(all_tasks(&again), all_tasks(&first));
    for out in ["first", "again"] {
        for name in ["samples.csv", "responses.csv", "failed.csv", "indices.csv", "indices.json"] {
            let of = |out: &str| text(&study.path(out).join(name));
            assert_eq!(of(out), of("plain"), "{name} of {out}");
        }
    }
    // Neither the strategy nor the folder of the tiles changes the keys.
    fs::rename(study.path("tiles"), study.path("moved")).expect("moved");
    study.edit(&[("tiles/*.png", "moved/*.png")]);
    let moved = run(&study, "moved-away", &["--strategy", "rtma"]);
    assert_eq!(number(&moved, "/tasks_executed"), 0);
    assert_eq!(responses(&study, "moved-away"), responses(&study, "plain"));
}

#[test]
fn extended_study_runs_only_new_tasks() {
    let study = Study::of_tissue(128);
    study.edit(&[("trajectories = 2", "trajectories = 1")]);
    run(&study, "small", &[]);
    study.edit(&[]);
    let alone = {
        pleach(study.folder(), &["run", "study.toml", "--out", "alone", "--quiet"]).done();
        json(&study.path("alone/run.json"))
    };
    let more = run(&study, "more", &[]);
    assert_eq!(responses(&study, "more"), responses(&study, "alone"));
    let (executed, all) = (number(&more, "/tasks_executed"), number(&alone, "/tasks_executed"));
    assert!(0 < executed && executed < all, "{executed} of {all}");
    assert!(number(&more, "/tasks_reused/cache") > 0);

    // Another metric needs the same tasks. Other tiles need entirely new tasks.
    study.edit(&[("\"dice\"", "\"jaccard\"")]);
    assert_eq!(number(&run(&study, "metric", &[]), "/tasks_executed"), 0);
    fs::remove_dir_all(study.path("tiles")).expect("removed");
    pleach(study.folder(), &["tissue", "--out", "tiles", "--size", "96", "--count", "1", "--seed", "8"])
        .done();
    study.edit(&[]);
    assert_eq!(number(&run(&study, "tiles-changed", &[]), "/tasks_reused/cache"), 0);
}

#[test]
fn corrupt_cache_entries_are_recomputed_and_reported() {
    let study = Study::of_tissue(128);
    run(&study, "first", &[]);
    let whole = segments(&study);
    assert!(!whole.is_empty());
    for path in whole {
        let mut bytes = fs::read(&path).expect("read");
        // Flips a bit in many entries and truncates the end.
        bytes.iter_mut().skip(64).step_by(300).for_each(|byte| *byte ^= 0x40);
        fs::write(path, &bytes[..bytes.len() - 5]).expect("written");
    }
    let record = run(&study, "damaged", &[]);
    assert_eq!(responses(&study, "damaged"), responses(&study, "first"));
    assert!(number(&record, "/tasks_executed") > 0, "something had to be computed again");
    let reports = record["cache"]["warnings"].as_array().expect("a list");
    assert!(number(&record, "/cache/corrupt") > 0 && !reports.is_empty(), "{record}");
    let again = run(&study, "again", &[]);
    assert_eq!(number(&again, "/tasks_executed"), 0, "what was computed again is kept again");

    let shown = {
        segments(&study).iter().for_each(|path| {
            let bytes = fs::read(path).expect("read");
            fs::write(path, &bytes[..bytes.len() - 3]).expect("written");
        });
        pleach(study.folder(), &["run", "study.toml", "--out", "shown", "--cache", "kept"]).done()
    };
    assert!(shown.contains("--cache: ") && shown.contains("bytes of incomplete records dropped"), "{shown}");
}

#[test]
fn two_studies_share_a_cache_while_they_run() {
    let study = Study::of_tissue(128);
    pleach(study.folder(), &["run", "study.toml", "--out", "plain", "--quiet"]).done();
    let start = |out: &str| {
        Command::new(assert_cmd::cargo::cargo_bin!("pleach"))
            .current_dir(study.folder())
            .args(["run", "study.toml", "--out", out, "--quiet", "--workers", "1", "--cache", "kept"])
            .spawn()
            .expect("pleach starts")
    };
    let children = ["a", "b", "c"].map(start);
    for mut child in children {
        assert!(child.wait().expect("it ends").success());
    }
    for out in ["a", "b", "c"] {
        assert_eq!(responses(&study, out), responses(&study, "plain"));
    }
    let after = run(&study, "after", &[]);
    assert_eq!((number(&after, "/tasks_executed"), number(&after, "/cache/corrupt")), (0, 0));
}

#[test]
fn a_killed_study_leaves_a_cache_that_can_be_used() {
    let study = Study::of_tissue(256);
    let mut child = Command::new(assert_cmd::cargo::cargo_bin!("pleach"))
        .current_dir(study.folder())
        .args(["run", "study.toml", "--out", "killed", "--quiet", "--cache", "kept"])
        .spawn()
        .expect("pleach starts");
    let begun = std::time::Instant::now();
    let journal = study.path("killed/journal");
    while !fs::metadata(&journal).is_ok_and(|file| file.len() > 2000)
        && child.try_wait().expect("a child").is_none()
    {
        assert!(begun.elapsed().as_secs() < 60, "nothing happens");
        std::thread::yield_now();
    }
    child.kill().expect("killed");
    child.wait().expect("it ended");
    let resumed = run(&study, "killed", &["--resume"]);
    let whole = run(&study, "whole", &[]);
    assert_eq!(responses(&study, "killed"), responses(&study, "whole"));
    assert_eq!(all_tasks(&resumed), all_tasks(&whole));
}

#[test]
fn measured_operation_costs_are_used_by_the_next_plan() {
    let study = Study::of_tissue(64);
    let predicted = |options: &[&str]| {
        let command = [&["plan", "study.toml", "--workers", "1", "--json"], options].concat();
        let plan: Value = serde_json::from_str(&pleach(study.folder(), &command).done()).expect("JSON");
        plan["plans"][0]["predicted_makespan_seconds"].as_f64().expect("seconds")
    };
    let declared = predicted(&[]);
    run(&study, "first", &["--workers", "1"]);
    let known = study.path("kept/costs");
    let kept = text(&known);
    assert!(kept.contains("nuclei.separate\t1\t"), "{kept}");
    let learned = predicted(&["--cache", "kept"]);
    assert_ne!(learned, declared);
    // A study that executes no task changes no measured cost.
    run(&study, "again", &["--workers", "1"]);
    assert_eq!(text(&known), kept);
    // Doubles the measured time of every operation.
    let mut head = kept.lines();
    let (_, doubled) = (head.next(), head.map(twice).collect::<Vec<_>>().join("\n"));
    fs::write(&known, format!("pleach-costs-1 {}\n{doubled}", blake3::hash(doubled.as_bytes()).to_hex()))
        .expect("to write");
    let twice = predicted(&["--cache", "kept"]);
    assert!((twice / learned - 2.0).abs() < 1e-9, "{twice} and {learned}");
    // With a corrupt file, plans use the declared costs.
    fs::write(&known, &kept[..kept.len() - 1]).expect("to write");
    assert_eq!(predicted(&["--cache", "kept"]), declared);
    let answer = pleach(study.folder(), &["plan", "study.toml", "--cache", "none"]);
    assert_eq!((answer.code, answer.stdout.as_str()), (2, ""), "{answer:?}");
    assert!(answer.stderr.contains("--cache none: "), "{answer:?}");
}

/// A line of the cost file, with twice the time.
fn twice(line: &str) -> String {
    let (before, ratio) = line.rsplit_once('\t').expect("fields");
    format!("{before}\t{:e}", 2.0 * ratio.parse::<f64>().expect("a number"))
}

#[test]
fn invalid_or_locked_cache_folder_is_refused() {
    let study = Study::of_tissue(64);
    let refused = |options: &[&str], said: &str| {
        let command = [&["run", "study.toml", "--out", "out"], options].concat();
        let answer = pleach(study.folder(), &command);
        assert_eq!((answer.code, answer.stdout.as_str()), (2, ""), "{answer:?}");
        assert!(answer.stderr.contains(said), "{answer:?}");
        assert!(!study.path("out").exists(), "nothing was begun");
    };
    study.write("mine/letter.txt", "Dear diary");
    refused(&["--cache", "mine"], "--cache mine: ");
    assert_eq!(text(&study.path("mine/letter.txt")), "Dear diary");
    refused(&["--cache", "mine/letter.txt"], "--cache mine/letter.txt: ");
    study.write("newer/FORMAT", "pleach cache 99\n");
    refused(&["--cache", "newer"], "pleach cache 99");
    for reuse in ["tree", "dataflow"] {
        refused(
            &["--cache", "new", "--reuse", reuse],
            "--reuse value with naive, sca, rtma, trtma, ranges or hrb is allowed",
        );
    }
    refused(
        &["--cache", "new", "--strategy", "stage"],
        "--reuse value with naive, sca, rtma, trtma, ranges or hrb",
    );
    refused(&["--cache-size", "1GB"], "--cache");
    refused(&["--cache", "new", "--cache-size", "12QB"], "--cache-size");
    refused(&["--cache", "new", "--cache-age", "0"], "a whole number of at least 1 is allowed");
    assert!(!study.path("new").exists());
}

#[test]
fn a_small_cache_keeps_within_its_size() {
    let study = Study::of_tissue(128);
    let record = run(&study, "out", &["--cache-size", "300kB"]);
    let files = fs::read_dir(study.path("kept")).expect("a cache").filter_map(Result::ok);
    let bytes: u64 = files.map(|file| file.metadata().expect("its size").len()).sum();
    assert!(bytes <= 300_000, "{bytes}");
    assert!(number(&record, "/cache/stored") > 0);
    run(&study, "again", &["--cache-size", "300kB"]);
    assert_eq!(responses(&study, "again"), responses(&study, "out"));
}

#[test]
fn every_task_is_explained() {
    let study = Study::of_tissue(128);
    let explain = |options: &[&str]| -> Value {
        let command = [&["explain", "study.toml", "--workers=2", "--json"], options].concat();
        serde_json::from_str(&pleach(study.folder(), &command).done()).expect("a JSON document")
    };
    let tasks = |document: &Value| document["runs"][0]["tasks"].as_array().expect("tasks").clone();
    let before = explain(&["--evaluation", "5", "--tile", "tissue_01"]);
    assert_eq!(before["runs"].as_array().expect("runs").len(), 1);
    let names: Vec<Value> = tasks(&before).iter().map(|task| task["task"].clone()).collect();
    assert_eq!(names.len(), 9, "{names:?}");
    // Normalization is shared with the reference run, which comes first.
    assert_eq!(
        (&tasks(&before)[0]["source"], &tasks(&before)[0]["evaluation"]),
        (&"stage".into(), &0.into())
    );

    // A key of 15 values and the digest of the tile replaces the two compared masks.
    let key = &before["runs"][0]["key"];
    assert_eq!((&key["bytes"], &key["instead_of_bytes"]), (&(15 * 8 + 32).into(), &(2 * 128 * 128).into()));
    let attributes = key["attributes"].as_array().expect("names");
    assert!(
        attributes.contains(&"digest of tile".into()) && attributes.contains(&"MorphRecon".into()),
        "{key}"
    );
    assert_eq!(attributes.len(), 16, "{key}");

    run(&study, "out", &["--workers", "2"]);
    let mut levels = std::collections::BTreeMap::new();
    for evaluation in 0..=32 {
        let known = explain(&["--evaluation", &evaluation.to_string(), "--cache", "kept"]);
        for run in known["runs"].as_array().expect("runs") {
            for task in run["tasks"].as_array().expect("tasks") {
                *levels.entry(task["source"].as_str().expect("a level").to_owned()).or_insert(0) += 1;
                assert_eq!(task["in_cache"], true, "{task}");
                assert_eq!(task["source"] == "run", task.get("evaluation").is_none(), "{task}");
            }
        }
    }
    // `explain` counts as many tasks as the run. Tasks that are equal by chance may be found in another order.
    let record = json(&study.path("out/run.json"));
    assert_eq!(levels.values().sum::<u64>(), 33 * 2 * 9);
    assert_eq!(levels["stage"], number(&record, "/tasks_reused/stage") + 2);
    assert!(levels["tree"] > 0 && levels["dataflow"] > 0 && levels["value"] > 0, "{levels:?}");

    // No study had this value. Tasks that depend on it are not cached, and the nearest entry differs in this value.
    study.write("one.csv", "G1\n62\n");
    let new = explain(&[
        "--evaluation",
        "1",
        "--tile",
        "tissue_02",
        "--parameter-sets",
        "one.csv",
        "--cache",
        "kept",
    ]);
    let candidates = tasks(&new).into_iter().find(|task| task["task"] == "t3").expect("t3");
    assert_eq!(candidates["in_cache"], false);
    let differences = candidates["differing_components"].as_array().expect("a list");
    assert!(
        differences.iter().any(|line| line.as_str().is_some_and(|line| line.contains("62"))),
        "{candidates}"
    );

    for (options, said) in [
        (&["--evaluation", "33"][..], "--evaluation 33: 0 to 32 is allowed in this study"),
        (&["--evaluation", "1", "--tile", "none"], "--tile none: one of tissue_01, tissue_02 is allowed"),
        (&["--evaluation", "1", "--cache", "nowhere"], "--cache nowhere: "),
    ] {
        let answer = pleach(study.folder(), &[&["explain", "study.toml"], options].concat());
        assert_eq!(answer.code, 2, "{answer:?}");
        assert!(answer.stderr.contains(said), "{answer:?}");
    }
    assert!(!study.path("nowhere").exists());
}

/// Runs the study with `kept` as a file system of its own, mounted with these options. Returns `None` if the system denies
/// mounts.
fn run_mounted(study: &Study, out: &str, options: &str) -> Option<Value> {
    fs::create_dir_all(study.path("kept")).expect("a folder made");
    let mounted = study.path("mounted");
    fs::remove_file(&mounted).unwrap_or_default();
    let script = "mount -t tmpfs -o \"$0\" tmpfs kept || exit 99; : >mounted; exec \"$@\"";
    let output = Command::new("unshare")
        .args(["--mount", "--map-root-user", "sh", "-c", script, options])
        .arg(assert_cmd::cargo::cargo_bin!("pleach"))
        .args(["run", "study.toml", "--out", out, "--quiet", "--cache", "kept"])
        .current_dir(study.folder())
        .output()
        .ok()?;
    // The marker file shows that the mount succeeded, so the exit code is not that of `unshare` or `mount`.
    if !mounted.exists() {
        return None;
    }
    assert!(output.status.success(), "{output:?}");
    Some(json(&study.path(out).join("run.json")))
}

#[test]
fn unwritable_cache_does_not_stop_a_study() {
    let study = Study::of_tissue(128);
    pleach(study.folder(), &["run", "study.toml", "--out", "plain", "--quiet"]).done();
    for (out, options, said) in [
        ("full", "size=64k", "the cache has stopped storing: No space left on device"),
        ("read-only", "ro", "the cache is read-only: Read-only file system"),
    ] {
        let Some(record) = run_mounted(&study, out, options) else {
            return skipped("unwritable_cache_does_not_stop_a_study");
        };
        assert_eq!(responses(&study, out), responses(&study, "plain"));
        let reports = record["cache"]["warnings"].as_array().expect("a list");
        let starts = |report: &Value| report.as_str().is_some_and(|report| report.starts_with(said));
        assert!(reports.iter().any(starts), "{out}: {reports:?}");
    }
}

#[expect(clippy::print_stderr, reason = "a skipped test is loud")]
fn skipped(test: &str) {
    eprintln!("SKIPPED {test}: nothing can be mounted here");
}
