//! `pleach replay` steps through a simulation log, as text and as JSON, and refuses invalid logs.

use crate::pleach::pleach;
use pleach_simulation::cluster::Cluster;
use pleach_simulation::event::Event;
use pleach_simulation::log::Log;
use pleach_simulation::scenario::{NetworkModel, NodeSpec, Scenario};
use pleach_simulation::workload::{Bucketing, SyntheticWorkload};
use serde_json::Value;
use std::fs::{self, File};
use std::path::Path;

/// Returns the one line that explains why a log is refused.
fn refusal(folder: &Path, log: &str) -> String {
    let answer = pleach(folder, &["replay", log]);
    assert_eq!(
        (answer.code, answer.stdout.as_str(), answer.stderr.lines().count()),
        (2, "", 1),
        "{answer:?}"
    );
    answer.stderr
}

/// Writes the log of a small simulation. At `break_at`, a study without a plan is submitted.
fn log(to: &Path, break_at: Option<usize>) -> usize {
    let recipe = SyntheticWorkload {
        tiles: 1,
        instances: 3,
        levels: 2,
        values: 2,
        task_seconds: 1.0,
        first_seconds: None,
        variation: 0.0,
        region_bytes: 1,
        cut: Bucketing::Single,
        seed: 1,
    };
    let schedule = Scenario {
        seed: 7,
        nodes: vec![NodeSpec { slots: 2, speed: 1.0 }],
        studies: vec![(0, recipe)],
        incidents: Vec::new(),
        network: NetworkModel { jitter_us: 0, ..NetworkModel::default() },
        tick_ms: 10_000,
        replan: false,
        limit_seconds: 100.0,
    };
    let mut cluster = Cluster::new(schedule.clone(), true, true);
    cluster.run().expect("it comes to its end");
    let mut said = cluster.observed().record().to_vec();
    if let Some(place) = break_at {
        let mut wrong = said[place].clone();
        wrong.event = Event::Submit {
            study: pleach_dispatch::PlanId::first_round(3),
            plan: 9,
            finished: Default::default(),
        };
        said.insert(place, wrong);
    }
    Log::write(&schedule, &said, File::create(to).expect("a file")).expect("written");
    said.len()
}

#[test]
fn replay_shows_events_and_effects_up_to_a_number() {
    let place = tempfile::tempdir().expect("a folder");
    let events = log(&place.path().join("good.log"), None);
    let text = pleach(place.path(), &["replay", "good.log"]).done();
    for line in [
        "seed 7: 1 initial workers, 1 studies, 0 incidents",
        "a worker with 2 slots joins",
        "joined as worker 0",
        "worker 0 is granted 0 of study 0 under lease 0",
        "worker 0 finishes instance 0 of study 0 under lease 0",
        "study 0 is complete",
        &format!("the first {events} events violate no rule"),
    ] {
        assert!(text.contains(line), "{line} is not in\n{text}");
    }
    let text = pleach(place.path(), &["replay", "good.log", "--max-events", "2"]).done();
    assert!(text.ends_with("the first 2 events violate no rule\n"), "{text}");
    let document: Value =
        serde_json::from_str(&pleach(place.path(), &["replay", "good.log", "--json"]).done()).expect("JSON");
    assert_eq!(document["steps"].as_array().map(Vec::len), Some(events));
    assert_eq!((&document["schedule"]["seed"], &document["breach"]), (&7.into(), &Value::Null));
    assert_eq!(document["steps"][0]["event"]["event"], "submit");
}

#[test]
fn the_rule_that_was_broken_is_the_last_thing_shown() {
    let place = tempfile::tempdir().expect("a folder");
    log(&place.path().join("bad.log"), Some(4));
    let text = pleach(place.path(), &["replay", "bad.log"]).done();
    let last = text.lines().last().expect("a line");
    assert!(last.starts_with("violated rule: ") && last.contains("plan: 9"), "{text}");
    let document: Value =
        serde_json::from_str(&pleach(place.path(), &["replay", "bad.log", "--json"]).done()).expect("JSON");
    assert_eq!(document["steps"].as_array().map(Vec::len), Some(5));
    assert!(document["breach"].as_str().is_some_and(|breach| breach.contains("plan: 9")));
}

#[test]
fn invalid_log_is_refused_with_its_line() {
    let place = tempfile::tempdir().expect("a folder");
    let refused = |text: &str| {
        fs::write(place.path().join("x.log"), text).expect("written");
        refusal(place.path(), "x.log")
    };
    assert!(refused("").contains("x.log: the log is empty"));
    assert!(refused("nothing").contains("line 1"));
    log(&place.path().join("good.log"), None);
    let good = fs::read_to_string(place.path().join("good.log")).expect("read");
    assert!(refused(&good.replace("\"event\":\"tick\"", "\"event\":\"tock\"")).contains("line "));
    assert!(
        refused(&good.replacen("\"pleach_simulation\":1", "\"pleach_simulation\":9", 1))
            .contains("version 9")
    );
    assert!(refusal(place.path(), "missing.log").contains("missing.log"));
}
