//! The example of tasks that iterate and branch, in one process: five levels of registration, with every reuse scope, with
//! loops that end early, and by two users who share levels through the cache.

use crate::pleach::pleach;
use crate::registration;
use crate::registration::{LEVELS, refinements};
use crate::results;
use crate::runs::{number, responses, run};
use serde_json::Value;

#[test]
fn every_reuse_scope_writes_equal_responses() {
    let study = registration::study(&[[0.05; LEVELS], [0.4; LEVELS], [0.05, 0.05, 0.4, 0.05, 0.05]]);
    let tree = run(&study, "tree", &["--strategy", "rtma", "--reuse", "tree"]);
    let expected = responses(&study, "tree");
    assert_eq!(expected.lines().count(), 4, "{expected}");
    for (row, evaluation) in expected.lines().skip(1).zip(1..) {
        let error: f64 = row.rsplit(',').next().expect("a response").parse().expect("a number");
        assert!((0.0..0.25).contains(&error), "evaluation {evaluation} is off by {error} voxels");
    }
    let mut tasks = vec![(number(&tree, "/tasks_executed"), number(&tree, "/tasks_skipped"))];
    for (strategy, reuse) in [
        ("none", None),
        ("stage", None),
        ("trtma", Some("dataflow")),
        ("ranges", Some("dataflow")),
        ("ranges", Some("value")),
    ] {
        let out = format!("{strategy}-{}", reuse.unwrap_or("none"));
        let options = ["--strategy", strategy, "--workers", "2"];
        let scope: Vec<&str> = reuse.iter().flat_map(|reuse| ["--reuse", *reuse]).collect();
        let record = run(&study, &out, &[&options[..], &scope].concat());
        assert_eq!(responses(&study, &out), expected, "{out}");
        tasks.push((number(&record, "/tasks_executed"), number(&record, "/tasks_skipped")));
    }
    let (none, value) = (tasks[1], tasks[tasks.len() - 1]);
    assert!(value.0 < none.0, "by value {value:?}, without reuse {none:?}");
    // Loops end before their last iteration.
    assert!(tasks.iter().all(|(_, skipped)| *skipped > 0), "{tasks:?}");
}

#[test]
fn loops_that_end_early_execute_fewer_tasks() {
    let record = |damping: f64| {
        let study = registration::study(&[[damping; LEVELS]]);
        let record = run(&study, "out", &["--strategy", "none"]);
        (number(&record, "/tasks_executed"), number(&record, "/tasks_skipped"))
    };
    // Damped steps are shorter, so more of them are needed.
    let ((few, skipped), (many, _)) = (record(0.0), record(0.4));
    assert!(few < many, "{few} and {many} tasks");
    assert!(skipped > 0);
    let all = |(executed, skipped): (u64, u64)| executed + skipped;
    assert_eq!(all(record(0.0)), all(record(0.4)));
}

/// The first user registers with one damping of the last level, the second with another: together they execute each level as
/// often as one user who studies both.
#[test]
fn two_users_share_levels_through_the_cache() {
    let sets = [[0.05; LEVELS], [0.05, 0.05, 0.05, 0.05, 0.4]];
    let both = registration::study(&sets);
    let together = run(&both, "together", &["--workers", "1"]);
    let cache = both.path("cache").display().to_string();
    let alone = |set: [f64; LEVELS], out: &str| {
        let study = registration::study(&[set]);
        let record = run(&study, out, &["--workers", "1", "--cache", &cache]);
        (record, responses(&study, out))
    };
    let ((first, one), (second, other)) = (alone(sets[0], "first"), alone(sets[1], "second"));
    assert_eq!(refinements(&first) + refinements(&second), refinements(&together));
    assert!(refinements(&second) > 0 && refinements(&second) * 3 < refinements(&first), "{second}");
    let rows = responses(&both, "together");
    let response = |text: &str, row: usize| {
        text.lines().nth(row).and_then(|row| row.rsplit(',').next().map(str::to_owned))
    };
    assert_eq!((response(&rows, 1), response(&rows, 2)), (response(&one, 1), response(&other, 1)));
    // Once more, from the cache alone: the walk through the traces follows loops and choices.
    let (again, same) = alone(sets[1], "again");
    assert_eq!((number(&again, "/tasks_executed"), same), (0, other));
}

#[test]
fn skipped_tasks_and_minimal_keys_are_explained() {
    let study = registration::study(&[[0.05; LEVELS]]);
    run(&study, "out", &["--cache", "kept"]);
    let explain = ["explain", "study.toml", "--evaluation", "1", "--cache", "kept", "--json"];
    let text = pleach(study.folder(), &explain).done();
    let explained: Value = serde_json::from_str(&text).expect("JSON");
    let tasks = explained["runs"][0]["tasks"].as_array().expect("tasks");
    let of = |task: &str| {
        tasks.iter().find(|found| found["task"] == task).unwrap_or_else(|| panic!("{task}: {text}"))
    };
    assert_eq!(of("translate-5 [1]")["in_cache"], true, "{text}");
    let skipped = tasks.iter().filter(|task| task["source"] == "skipped").count();
    assert_eq!(skipped as u64, number(&results::json(&study.path("out/run.json")), "/tasks_skipped"));
    // The tile and the history of the levels' parameters, as in Table 2 of paper 004.
    let key = &explained["runs"][0]["key"];
    assert_eq!(key["bytes"], 32 + 8 * LEVELS as u64, "{key}");
}
