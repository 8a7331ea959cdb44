//! Every strategy, bucket size and number of workers gives the same results, and the recorded task numbers add up.

use crate::data::data;
use crate::masks::mask;
use crate::model::{check_moat, nuclei_ranges};
use crate::pleach::pleach;
use crate::results::{json, text};
use crate::study::Study;
use crate::tables::Row;
use crate::{check_responses, findings, run, segment};
use serde_json::Value;

/// Tasks per run of the reference application with normalization.
const TASKS: u64 = 9;

fn number(document: &Value, pointer: &str) -> u64 {
    document.pointer(pointer).and_then(Value::as_u64).unwrap_or_else(|| panic!("{pointer} in {document}"))
}

/// The sum of a number over the stages of `plan.json`.
fn over_stages(plan: &Value, key: &str) -> u64 {
    plan["per_stage"].as_array().expect("a list").iter().map(|stage| number(stage, &format!("/{key}"))).sum()
}

/// Asserts that `run.json` agrees with `plan.json`, with itself and with the options, for tree reuse. Returns the executed
/// tasks.
fn check_record(study: &Study, out: &str, strategy: &str, workers: &str) -> u64 {
    let (plan, run) = (json(&study.path(out).join("plan.json")), json(&study.path(out).join("run.json")));
    for document in [&plan, &run] {
        assert_eq!((&document["study"], &document["strategy"]), (&"nuclei-moat".into(), &strategy.into()));
        assert_eq!(document["reuse"].as_str(), ["naive", "rtma"].contains(&strategy).then_some("tree"));
        assert_eq!(document["workers"].to_string(), workers);
        assert_eq!((number(document, "/evaluations"), number(document, "/runs")), (32, 64));
    }
    assert_eq!((number(&run, "/failed"), number(&run, "/seed")), (0, 500));
    let executed = number(&run, "/tasks_executed");
    let reference = number(&plan, "/reference_tasks");
    assert_eq!(executed, over_stages(&plan, "tasks") + reference);
    let reused: u64 =
        run["tasks_reused"].as_object().expect("by level").values().filter_map(Value::as_u64).sum();
    assert_eq!(executed + reused, 64 * TASKS + reference);
    let operations = run["operations"].as_array().expect("a list");
    assert_eq!(operations.len() as u64, TASKS);
    assert_eq!(operations.iter().map(|operation| number(operation, "/runs")).sum::<u64>(), executed);
    assert!(operations.iter().all(|operation| operation["seconds"].as_f64().is_some_and(|s| s >= 0.0)));
    assert_eq!(over_stages(&plan, "instances_without_reuse"), 64 * 3);
    assert_eq!(over_stages(&plan, "buckets"), number(&plan, "/buckets"));
    assert!(number(&run, "/peak_bytes_admitted") > 0 && number(&run, "/peak_rss_bytes") > 0);
    assert_eq!(run["tiles"], serde_json::json!(["tissue_01", "tissue_02"]));
    assert_eq!(run["excluded_tiles"], serde_json::json!([]));
    assert_eq!(run["version"], env!("CARGO_PKG_VERSION"));
    executed
}

#[test]
fn reuse_never_changes_a_result() {
    let study = Study::of_tissue(128);
    let none = findings(&study, "none-1", &["--strategy", "none", "--workers", "1"]);
    let replicated = check_record(&study, "none-1", "none", "1");
    assert_eq!(replicated, 64 * TASKS + 2 * TASKS);
    let ways = [
        ("none", "16"),
        ("stage", "16"),
        ("naive", "1"),
        ("naive", "3"),
        ("naive", "16"),
        ("rtma", "1"),
        ("rtma", "3"),
        ("rtma", "16"),
    ];
    let mut executed = std::collections::HashMap::new();
    for (strategy, size) in ways {
        for workers in ["1", "2"] {
            let out = format!("{strategy}-{size}-{workers}");
            let options =
                ["--strategy", strategy, "--reuse=tree", "--max-bucket-size", size, "--workers", workers];
            assert_eq!(findings(&study, &out, &options), none, "{out}");
            let tasks = check_record(&study, &out, strategy, workers);
            assert_eq!(*executed.entry((strategy, size)).or_insert(tasks), tasks, "{out}");
        }
    }
    let executed = |strategy, size| executed[&(strategy, size)];
    assert_eq!(executed("none", "16"), replicated);
    // Each of the two tiles is normalized once, instead of once per run.
    assert_eq!(executed("stage", "16"), replicated - 64);
    for strategy in ["naive", "rtma"] {
        assert_eq!(executed(strategy, "1"), executed("stage", "16"));
        assert!(executed(strategy, "3") < executed(strategy, "1"));
        assert!(executed(strategy, "16") <= executed(strategy, "3"));
    }
    check_moat(&study.path("none-1"), "dice", &nuclei_ranges());
}

#[test]
fn the_order_of_tasks_changes_what_is_executed_and_no_result() {
    let study = Study::of_tissue(64);
    let mut tasks = Vec::new();
    let mut expected = None;
    for (strategy, reuse) in [("trtma", "tree"), ("rtma", "tree"), ("trtma", "value")] {
        for order in ["declared", "best"] {
            let out = format!("{strategy}-{reuse}-{order}");
            let options = ["--strategy", strategy, "--reuse", reuse, "--task-order", order, "--workers", "2"];
            let found = findings(&study, &out, &options);
            assert_eq!(*expected.get_or_insert_with(|| found.clone()), found, "{out}");
            let executed = json(&study.path(&out).join("run.json"))["tasks_executed"].as_u64();
            tasks.push(executed.expect("a number"));
        }
    }
    assert!(tasks[1] < tasks[0] && tasks[3] < tasks[2], "{tasks:?}");
}

#[test]
fn a_plan_is_what_a_run_executes() {
    let study = Study::of_tissue(64);
    for strategy in ["none", "stage", "naive", "rtma"] {
        let options = ["--strategy", strategy, "--max-bucket-size", "5", "--workers", "2"];
        run(&study, strategy, &options);
        let printed =
            pleach(study.folder(), &[&["plan", "study.toml", "--json"], &options[..]].concat()).done();
        let planned: Value = serde_json::from_str(&printed).expect("a JSON document");
        let mut planned = planned["plans"][0].clone();
        let mut executed = json(&study.path(strategy).join("plan.json"));
        // `plan.json` holds no time, so that it is the same every time.
        assert!(
            planned
                .as_object_mut()
                .expect("an object")
                .remove("planning_seconds")
                .expect("there")
                .is_number()
        );
        assert_eq!(executed["study"].take(), "nuclei-moat");
        assert!(executed["study_digest"].take().is_string());
        (planned["study"], planned["study_digest"]) = (Value::Null, Value::Null);
        assert_eq!(planned, executed);
    }
}

#[test]
fn responses_are_those_of_single_runs() {
    let study = Study::of_tissue(128);
    for (switch, options) in [("normalize = true", &["--normalize"][..]), ("normalize = false", &[])] {
        for metric in ["dice", "jaccard", "pixel-difference"] {
            study.edit(&[("normalize = true", switch), ("\"dice\"", &format!("\"{metric}\""))]);
            let out = format!("{metric}-{}", options.len());
            run(&study, &out, &[]);
            check_moat(&study.path(&out), metric, &nuclei_ranges());
            let header = text(&study.path(&out).join("responses.csv"));
            assert!(header.starts_with(&format!("evaluation,tile,{metric},")), "{header}");
        }
        let tiles = ["tiles/tissue_01.png", "tiles/tissue_02.png"];
        let out = format!("jaccard-{}", options.len());
        let reference = |tile: &str| segment(&study, tile, &Row::new(), options);
        check_responses(&study, &out, &tiles, &[1, 2, 9, 16, 17, 23, 28, 32], options, reference);
    }
}

#[test]
fn strategies_agree_on_real_glioblastoma_tiles() {
    let Some(data) = data("strategies_agree_on_real_glioblastoma_tiles") else { return };
    let folder = data.join("annotated/gbm40");
    let tiles = ["gbm40_03.png", "gbm40_08.png"].map(|name| folder.join(name).display().to_string());
    let tiles = [tiles[0].as_str(), tiles[1].as_str()];
    let study = Study::of_tissue(64);
    let listed = format!("{tiles:?}");
    study.edit(&[("[\"tiles/*.png\"]", &listed)]);
    let by_tree = findings(&study, "rtma", &["--workers", "2"]);
    assert_eq!(findings(&study, "naive", &["--strategy", "naive", "--workers", "1"]), by_tree);
    assert_eq!(findings(&study, "stage", &["--strategy", "stage", "--workers", "2"]), by_tree);
    check_moat(&study.path("rtma"), "dice", &nuclei_ranges());
    let defaults = |tile: &str| segment(&study, tile, &Row::new(), &["--normalize"]);
    check_responses(&study, "rtma", &tiles, &[1, 20], &["--normalize"], defaults);

    // The same comparison with references drawn by people.
    let drawn = format!("{:?}", folder.display().to_string());
    study.edit(&[
        ("[\"tiles/*.png\"]", &listed),
        ("\"defaults\"", &drawn),
        ("normalize = true", "normalize = false"),
    ]);
    let replicated = findings(&study, "none-drawn", &["--strategy", "none"]);
    assert_eq!(findings(&study, "rtma-drawn", &[]), replicated);
    check_moat(&study.path("rtma-drawn"), "dice", &nuclei_ranges());
    let labels = |tile: &str| mask(tile.replace(".png", "_labels.png").as_ref());
    check_responses(&study, "rtma-drawn", &tiles, &[1, 32], &[], labels);
}
