//! Tasks that iterate and branch on a cluster: workers share levels of a registration through the result directory and the
//! task cache.

use crate::cluster::{self, Cluster};
use crate::registration::{self, LEVELS, refinements};
use std::fs;

/// Sets that differ in the last level, and in the third.
const SETS: [[f64; LEVELS]; 4] = [
    [0.05; LEVELS],
    [0.05, 0.05, 0.05, 0.05, 0.4],
    [0.05, 0.05, 0.4, 0.05, 0.05],
    [0.05, 0.05, 0.4, 0.05, 0.4],
];

/// Returns the responses of a study and its executed steps.
fn finished(cluster: &Cluster<'_>, id: &str) -> (String, u64) {
    let responses = cluster.completed(id);
    let record = fs::read_to_string(cluster.path(&format!("out-{id}/run.json"))).expect("a record");
    (responses, refinements(&serde_json::from_str(&record).expect("JSON")))
}

#[test]
fn workers_share_iterations_in_every_scope() {
    let study = registration::study(&SETS);
    let expected = cluster::expected(&study);
    let mut steps = Vec::new();
    for workers in [1, 3] {
        for reuse in ["tree", "dataflow", "value"] {
            let cluster = Cluster::of(&study, workers);
            let (responses, executed) = finished(&cluster, &cluster.submit(&["--reuse", reuse]));
            assert_eq!(responses, expected, "{reuse} on {workers}");
            steps.push(executed);
            cluster.nothing_is_left();
        }
    }
    // Every step is longer than a look-up. Waits for lost messages may repeat one.
    let [_, dataflow_alone, value_alone, _, dataflow, value] = steps[..] else { panic!("{steps:?}") };
    assert!(dataflow <= dataflow_alone + 2 && value <= value_alone + 2, "{steps:?}");
}

/// Two users submit at once: each level is executed once. A third one, later, executes nothing but the cheapest tasks.
#[test]
fn two_users_execute_each_level_once() {
    let study = registration::study(&SETS);
    let (expected, alone) = {
        let cluster = Cluster::of(&study, 2);
        finished(&cluster, &cluster.submit(&[]))
    };
    let cache = tempfile::tempdir().expect("a folder");
    let cache = cache.path().join("cache").display().to_string();
    let mut cluster = Cluster::new(&study);
    (0..2).for_each(|number| cluster.start_worker(&format!("w{number}"), &["--cache", &cache]));
    // Workers that have just joined do not answer each other in time on a busy machine, so another study is executed before.
    study.write("sets.csv", registration::table(&SETS.map(|set| set.map(|damping| damping + 0.02))));
    cluster.completed(&cluster.submit(&[]));
    study.write("sets.csv", registration::table(&SETS));
    let ids = [cluster.submit(&[]), cluster.submit(&[])];
    let both: Vec<(String, u64)> = ids.iter().map(|id| finished(&cluster, id)).collect();
    assert!(both.iter().all(|(responses, _)| *responses == expected));
    let steps: u64 = both.iter().map(|(_, steps)| steps).sum();
    // Twice as many without sharing. Look-ups that are not answered in time repeat some.
    assert!(steps * 100 <= alone * 150, "{steps} steps of both users, {alone} of one");
    let (responses, later) = finished(&cluster, &cluster.submit(&[]));
    assert_eq!((responses, later), (expected, 0));
}

/// Workers are killed while others read values that decide about their iterations.
#[test]
fn study_completes_after_workers_with_deciding_values_are_lost() {
    let dampings = [0.0, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35];
    let mut sets = Vec::new();
    for first in dampings {
        for last in dampings {
            sets.push([0.05, 0.05, first, 0.05, last]);
        }
    }
    let study = registration::study(&sets);
    let expected = cluster::expected(&study);
    for reuse in ["dataflow", "value"] {
        let mut cluster = Cluster::of(&study, 3);
        let id = cluster.submit(&["--reuse", reuse]);
        for number in 1..3 {
            cluster.wait_for_responses(&id, number * 300);
            cluster.kill_worker(&format!("w{number}"));
        }
        assert_eq!(cluster.completed(&id), expected, "{reuse}");
        cluster.nothing_is_left();
    }
}
