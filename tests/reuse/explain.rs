//! Provenance records of studies in one process: their counts equal `run.json`, and `explain` answers from them, whatever the
//! state of the folder.

use crate::interrupted::{end, start, wait_for};
use crate::pleach::pleach;
use crate::results::text;
use crate::runs::{number, responses, run};
use crate::study::Study;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;

const METHOD: &str = "[method]\nkind = \"moat\"\ntrajectories = 2\nlevels = 20\n";

/// The file of records in a folder of results.
const RECORDS: &str = "provenance.bin";

/// Tasks of a run on a tile: 1 of normalization, 7 of segmentation, 1 of the comparison.
const TASKS_A_RUN: u64 = 9;

fn explain(study: &Study, options: &[&str]) -> Value {
    let command = [&["explain"], options, &["--json"]].concat();
    serde_json::from_str(&pleach(study.folder(), &command).done()).expect("a JSON document")
}

/// Explained tasks of all evaluations of a folder, with 0.
fn tasks(study: &Study, out: &str, evaluations: usize) -> Vec<Value> {
    let mut tasks = Vec::new();
    for evaluation in 0..=evaluations {
        let answer = explain(study, &[out, "--evaluation", &evaluation.to_string()]);
        for run in answer["runs"].as_array().expect("runs") {
            assert_eq!(run["evaluation"], evaluation);
            tasks.extend(run["tasks"].as_array().expect("tasks").iter().cloned());
        }
    }
    tasks
}

/// Number of tasks by source.
fn sources(tasks: &[Value]) -> BTreeMap<&str, u64> {
    let mut sources = BTreeMap::new();
    for task in tasks {
        *sources.entry(task["source"].as_str().expect("a source")).or_insert(0) += 1;
    }
    sources
}

/// Compares totals of a folder with its `run.json`.
fn check_totals(totals: &Value, record: &Value) {
    assert_eq!(totals["is_complete"], true, "{totals}");
    assert_eq!(totals["tasks_executed"], record["tasks_executed"], "{totals} {record}");
    for level in ["dataflow", "value", "cache", "earlier", "peer"] {
        let of = |document: &Value| document["tasks_reused"][level].as_u64().unwrap_or(0);
        assert_eq!(of(totals), of(record), "{level}: {totals} {record}");
    }
    let by_task = totals["tasks"].as_array().expect("tasks");
    let executed: u64 = by_task.iter().map(|task| number(task, "/executed")).sum();
    assert_eq!(executed, number(record, "/tasks_executed"));
    // Missing if no task was executed or reused.
    let by_worker = totals["workers"].as_array().into_iter().flatten();
    let executed: u64 = by_worker.map(|worker| number(worker, "/executed")).sum();
    assert_eq!(executed, number(record, "/tasks_executed"));
}

#[test]
fn records_agree_with_the_run_under_every_strategy() {
    let study = Study::of_tissue(128);
    let mut expected = None;
    for (out, options) in [
        ("value", &["--workers", "2"][..]),
        ("dataflow", &["--reuse", "dataflow", "--workers", "2"]),
        ("tree", &["--reuse", "tree", "--strategy", "rtma", "--max-bucket-size", "8"]),
        ("stage", &["--strategy", "stage", "--reuse", "tree"]),
        ("none", &["--strategy", "none", "--reuse", "tree"]),
    ] {
        let record = run(&study, out, options);
        check_totals(&explain(&study, &[out]), &record);
        let tasks = tasks(&study, out, 32);
        assert_eq!(tasks.len() as u64, 33 * 2 * TASKS_A_RUN);
        let sources = sources(&tasks);
        // Each executed task is that of exactly one evaluation, and no task is without a record.
        assert_eq!(sources["run"], number(&record, "/tasks_executed"), "{out}: {sources:?}");
        assert!(!sources.contains_key("unrecorded"), "{out}: {sources:?}");
        for task in &tasks {
            let is_executed =
                ["run", "stage", "bucket"].contains(&task["source"].as_str().unwrap_or_default());
            assert_eq!(task.get("seconds").is_some(), is_executed, "{task}");
            assert_eq!(task["worker"], "local", "{task}");
            assert!(task.get("repeated").is_none(), "{task}");
            // Evaluation 0 has values like any other, so that it may come later in the plan.
            assert!(task["source"] != "run" || task.get("evaluation").is_none(), "{task}");
        }
        if out == "value" {
            let found = tasks.iter().filter(|task| task["source"] == "value" || task["source"] == "dataflow");
            assert!(found.clone().count() > 0 && found.clone().all(|task| task["evaluation"].is_u64()));
        }
        let first = expected.get_or_insert_with(|| responses(&study, out));
        assert_eq!(&responses(&study, out), first, "{out}");
    }
}

#[test]
fn records_follow_phases_rounds_and_the_task_cache() {
    let study = Study::of_tissue(128);
    let until = "until = { ci_width = 1e-9, max_evaluations = 64 }\n";
    study.edit(&[(METHOD, &format!("{METHOD}{until}"))]);
    let record = run(&study, "rounds", &["--workers", "2"]);
    assert_eq!(number(&record, "/evaluations"), 64, "{record}");
    check_totals(&explain(&study, &["rounds"]), &record);
    let of_rounds = tasks(&study, "rounds", 64);
    assert!(!sources(&of_rounds).contains_key("unrecorded"), "{:?}", sources(&of_rounds));
    study.edit(&[("trajectories = 2", "trajectories = 1")]);
    // Again from the cache: no task is executed, and each one has a source.
    run(&study, "first", &["--cache", "kept"]);
    let record = run(&study, "again", &["--cache", "kept"]);
    check_totals(&explain(&study, &["again"]), &record);
    let of_cache = tasks(&study, "again", 16);
    assert_eq!(sources(&of_cache), BTreeMap::from([("cache", of_cache.len() as u64)]));

    let phases = "[[phase]]\nkind = \"moat\"\ntrajectories = 2\nsurvivors = { most_influential = 4 }\n\
                  [[phase]]\nkind = \"vbd\"\nsamples = 4\n";
    study.edit(&[(METHOD, phases)]);
    let record = run(&study, "phases", &["--workers", "2"]);
    check_totals(&explain(&study, &["phases"]), &record);
    let both = explain(&study, &["phases", "--evaluation", "3", "--tile", "tissue_02"]);
    let folders: Vec<&str> =
        both["runs"].as_array().expect("runs").iter().filter_map(|run| run["phase"].as_str()).collect();
    assert_eq!(folders, ["phase-1-moat", "phase-2-vbd"]);
    let second = explain(&study, &["phases", "--evaluation", "3", "--phase", "2"]);
    assert_eq!(second["runs"].as_array().expect("runs").len(), 2);
    let said = pleach(study.folder(), &["explain", "phases/phase-1-moat", "--evaluation", "3"]).done();
    assert!(said.contains("evaluation 3 on tissue_01") && said.contains("executed on local in "), "{said}");
    let earlier = explain(&study, &["phases"])["tasks_reused"]["earlier"].as_u64();
    assert!(earlier > Some(0), "{earlier:?}");
}

#[test]
fn killed_and_resumed_study_is_explained_with_a_note() {
    let study = Study::of_tissue(128);
    study.edit(&[("trajectories = 2", "trajectories = 30")]);
    let mut child = start(&study, "out");
    // More than the plan's table: blocks of events are on disk.
    let ended = wait_for(&study, &mut child, "out/journal", 20_000);
    assert_eq!(ended, None, "it ended first");
    end(child, "KILL");
    let before = explain(&study, &["out"]);
    assert_eq!(before["is_complete"], false);
    assert!(
        before["notes"][0].as_str().is_some_and(|note| note.contains("an execution has no end")),
        "{before}"
    );
    pleach(study.folder(), &["run", "study.toml", "--out", "out", "--quiet", "--resume"]).done();
    let tasks = tasks(&study, "out", 40);
    let sources = sources(&tasks);
    assert!(sources["run"] > 0, "{sources:?}");
    let after = explain(&study, &["out"]);
    // The first process was killed, so that some of its records are lost for good.
    assert_eq!(after["is_complete"], false);
    assert!(number(&after, "/tasks_executed") > number(&before, "/tasks_executed"));
    pleach(study.folder(), &["run", "study.toml", "--out", "whole", "--quiet"]).done();
    assert_eq!(responses(&study, "out"), responses(&study, "whole"));
}

#[test]
fn predictions_name_the_overhead_that_makes_buckets_large() {
    let study = Study::of_tissue(64);
    let buckets = |overhead: &str| {
        let answer = explain(&study, &["study.toml", "--evaluation", "1", "--overhead", overhead]);
        assert_eq!(answer["bucket_overhead_seconds"].as_f64(), overhead.parse().ok(), "{answer}");
        answer["buckets"].as_u64().expect("a number")
    };
    let (without, with) = (buckets("0"), buckets("60"));
    assert!(with < without, "{with} of {without} buckets");
    let text = |overhead: &str| {
        let args = ["explain", "study.toml", "--evaluation", "1", "--overhead", overhead];
        pleach(study.folder(), &args).done()
    };
    assert!(text("60").starts_with(&format!("{with} buckets, sized for an overhead of 60.0 s each\n")));
    assert!(text("0").starts_with("evaluation 1 on "));
}

#[test]
fn wrong_targets_and_damaged_records_are_refused_with_the_reason() {
    let study = Study::of_tissue(64);
    run(&study, "out", &[]);
    let file = study.path("out").join(RECORDS);
    let whole = fs::read(&file).expect("records");
    let check = |arguments: &[&str], said: &str| {
        let answer = pleach(study.folder(), &[&["explain"], arguments].concat());
        assert_eq!(answer.code, 2, "{arguments:?}: {answer:?}");
        assert!(answer.stderr.contains(said), "{arguments:?}: {answer:?}");
        assert!(answer.stdout.is_empty() && answer.stderr.lines().count() == 1, "{answer:?}");
    };
    check(&["out", "--evaluation", "33"], "--evaluation 33: 0 to 32 is allowed in this study");
    check(&["out", "--evaluation", "1", "--tile", "x"], "--tile x: one of tissue_01, tissue_02 is allowed");
    check(&["out", "--evaluation", "1", "--phase", "1"], "--phase 1: no phase is allowed in this study");
    check(&["out", "--tile", "tissue_01"], "--tile: allowed with --evaluation only");
    check(
        &["out", "--cache", "kept"],
        "--cache: allowed for a study file only, and out is a folder of results",
    );
    check(&["tiles", "--evaluation", "1"], "tiles: has no provenance.bin");
    check(&["12", "--evaluation", "1"], "--manager and --certs are required to explain study 12");
    check(&["none.toml", "--evaluation", "1"], "none.toml: ");
    check(&["study.toml"], "--evaluation: required for a study file; 0 to 32 is allowed");
    check(&["study.toml", "--evaluation", "1", "--phase", "1"], "--phase: allowed for a folder of results");
    fs::write(&file, b"pleach provenance 9\n").expect("written");
    check(&["out", "--evaluation", "1"], "provenance.bin: format 9 is not allowed; 1");
    fs::write(&file, &whole[..40]).expect("written");
    check(&["out", "--evaluation", "1"], "provenance.bin: corrupt: none of its 40 bytes is an intact record");
    fs::remove_file(&file).expect("removed");
    check(
        &["out", "--evaluation", "1"],
        "out: has no provenance.bin, which pleach run and pleach results write",
    );

    // A damaged end costs records, and the answer has a note.
    fs::write(&file, &whole[..whole.len() - 30]).expect("written");
    let answer = pleach(study.folder(), &["explain", "out", "--evaluation", "32", "--json"]);
    assert_eq!(answer.code, 0, "{answer:?}");
    let explained: Value = serde_json::from_str(&answer.stdout).expect("JSON");
    assert_eq!(explained["is_complete"], false, "{explained}");
    assert!(
        explained["notes"][0].as_str().is_some_and(|note| note.contains("corrupt or incomplete")),
        "{explained}"
    );
    assert_eq!(text(&study.path("out/responses.csv")).lines().count(), 1 + 32 * 2);
}
