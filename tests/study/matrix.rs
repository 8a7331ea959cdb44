//! Every strategy and reuse scope, with 1 and 2 workers, and with minimal and ample memory, gives the same results.

use crate::data::data;
use crate::pleach::pleach;
use crate::results::json;
use crate::study::Study;
use crate::{findings, run};
use serde_json::Value;

/// Strategies with their reuse scopes.
const WAYS: [(&str, &[&str]); 8] = [
    ("none", &["tree"]),
    ("stage", &["tree"]),
    ("naive", &["tree", "dataflow", "value"]),
    ("sca", &["tree", "dataflow", "value"]),
    ("rtma", &["tree", "dataflow", "value"]),
    ("trtma", &["tree", "dataflow", "value"]),
    ("ranges", &["tree", "dataflow", "value"]),
    ("hrb", &["tree", "dataflow", "value"]),
];

/// The minimum memory of a study in MB, from a refusal, plus a tenth: a tile may have more colors than estimated, and so a
/// larger color table for its normalization.
fn least_megabytes(study: &Study, options: &[&str]) -> u64 {
    let command = [&["run", "study.toml", "--out", "none", "--memory", "1MB"], options].concat();
    let refused = pleach(study.folder(), &command);
    assert_eq!(refused.code, 2, "{refused:?}");
    let said = refused.stderr.split(" needs ").nth(1).and_then(|rest| rest.split(' ').next());
    let least: u64 = said.and_then(|said| said.parse().ok()).unwrap_or_else(|| panic!("{}", refused.stderr));
    least * 11 / 10 + 1
}

/// Executed tasks, and tasks reused by dataflow and by value. Executed and reused tasks add up to all tasks without reuse.
fn tasks(run: &Value) -> (u64, u64, u64) {
    let number = |pointer| run.pointer(pointer).and_then(Value::as_u64).expect("a number");
    let executed = number("/tasks_executed");
    let reused: u64 =
        run["tasks_reused"].as_object().expect("by level").values().filter_map(Value::as_u64).sum();
    // Every strategy but `none` shares the normalization of the two tiles between evaluations and reference.
    let reference = if run["strategy"] == "none" { 2 * 9 } else { 2 * 8 };
    assert_eq!(executed + reused, 9 * number("/runs") + reference);
    (executed, number("/tasks_reused/dataflow"), number("/tasks_reused/value"))
}

#[test]
fn plan_options_do_not_change_results() {
    let Some(data) = data("plan_options_do_not_change_results") else { return };
    let folder = data.join("annotated/gbm40");
    let tiles = ["gbm40_03.png", "gbm40_08.png"].map(|name| folder.join(name).display().to_string());
    let study = Study::of_tissue(64);
    study.edit(&[("[\"tiles/*.png\"]", &format!("{tiles:?}")), ("trajectories = 2", "trajectories = 1")]);
    let mut expected = None;
    for (strategy, levels) in WAYS {
        let mut before = u64::MAX;
        for reuse in levels {
            let way = ["--strategy", strategy, "--reuse", reuse];
            let megabytes = least_megabytes(&study, &way);
            let least = format!("{megabytes}MB");
            for (workers, memory) in [("1", &*least), ("2", &*least), ("1", "4GB"), ("2", "4GB")] {
                let out = format!("{strategy}-{reuse}-{workers}-{memory}");
                let options = [&way[..], &["--workers", workers, "--memory", memory]].concat();
                let found = findings(&study, &out, &options);
                assert_eq!(&found, expected.get_or_insert(found.clone()), "{out}");
                let record = json(&study.path(&out).join("run.json"));
                let admitted = record["peak_bytes_admitted"].as_u64().expect("bytes");
                assert!(memory != least || admitted <= megabytes * 1_000_000, "{out}: {admitted} bytes");
                let (executed, by_dataflow, by_value) = tasks(&record);
                // With minimal memory, a plan may fall back to tree reuse.
                let shared = record["reuse"].as_str().unwrap_or("tree");
                assert!(
                    shared == *reuse || strategy == "none" || strategy == "stage" || memory == least,
                    "{out}"
                );
                assert_eq!(by_dataflow > 0, shared != "tree", "{out}");
                assert_eq!(by_value > 0, shared == "value", "{out}");
                if (workers, memory) == ("1", "4GB") {
                    // Each wider scope executes fewer tasks than the one before.
                    assert!(executed < before, "{out}: {executed} tasks, {before} before");
                    before = executed;
                }
            }
        }
    }
}

#[test]
fn strategy_without_sharing_records_no_reuse_scope() {
    let study = Study::of_tissue(64);
    run(&study, "stage", &["--strategy", "stage", "--reuse", "value"]);
    assert_eq!(json(&study.path("stage/run.json"))["reuse"], Value::Null);
    let refused = pleach(study.folder(), &["run", "study.toml", "--out", "x", "--reuse", "everything"]);
    assert_eq!(refused.code, 2);
    assert!(refused.stderr.contains("[possible values: tree, dataflow, value]"), "{refused:?}");
}
