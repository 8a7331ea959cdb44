//! Provenance records of a cluster: a worker is killed, and the records of manager and download show its lost tasks and those
//! that were executed again.

use crate::cluster::{self, Cluster, expected};
use crate::pleach::pleach;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;

/// Lines of the journal before the worker is killed: the workers have buckets, and most of the study remains.
const RESPONSES_BEFORE: usize = 40;

fn json(text: &str) -> Value {
    serde_json::from_str(text).expect("a JSON document")
}

fn explain(cluster: &Cluster<'_>, id: &str, options: &[&str]) -> Value {
    json(&cluster.ask(&[&["explain", id, "--json"], options].concat()).done())
}

#[test]
fn tasks_of_a_killed_worker_are_recorded_as_lost_and_repeated() {
    let study = cluster::study(12, 128);
    let expected = expected(&study);
    let mut cluster = Cluster::of(&study, 3);
    let id = cluster.submit(&[]);
    let journal = cluster.state.join(format!("studies/{id}/results/journal"));
    let lines = || fs::read_to_string(&journal).map_or(0, |text| text.lines().count());
    cluster.wait_until(|_| lines() > RESPONSES_BEFORE);
    cluster.kill_worker("w0");
    // While the study runs, its records have no end.
    let early = explain(&cluster, &id, &[]);
    assert_eq!(early["is_complete"], false, "{early}");
    assert_eq!(cluster.completed(&id), expected);

    let out = cluster.path("out");
    cluster.ask(&["results", &id, "--out", &out.display().to_string()]).done();
    let record = json(&fs::read_to_string(out.join("run.json")).expect("a record"));
    let totals = explain(&cluster, &id, &[]);
    assert_eq!(totals["is_complete"], true, "{totals}");
    assert_eq!(totals["tasks_executed"], record["tasks_executed"], "{totals} {record}");
    for level in ["dataflow", "value", "cache", "peer"] {
        let of = |document: &Value| document["tasks_reused"][level].as_u64().unwrap_or(0);
        assert_eq!(of(&totals), of(&record), "{level}: {totals} {record}");
    }
    let lost = totals["instances_lost"].as_u64().expect("a number");
    assert!(lost > 0, "{totals}");
    let workers: Vec<&str> = totals["workers"]
        .as_array()
        .expect("workers")
        .iter()
        .filter_map(|worker| worker["worker"].as_str())
        .collect();
    assert!(["w0", "w1", "w2"].iter().all(|name| workers.contains(name)), "{workers:?}");

    let (mut sources, mut repeated) = (BTreeMap::new(), BTreeMap::new());
    for evaluation in 0..=192 {
        let evaluation = evaluation.to_string();
        let answer = explain(&cluster, &id, &["--evaluation", &evaluation]);
        // The downloaded folder gives the same answer.
        let folder =
            pleach(&cluster.path(""), &["explain", "out", "--json", "--evaluation", &evaluation]).done();
        assert_eq!(json(&folder), answer);
        for task in
            answer["runs"].as_array().expect("runs").iter().flat_map(|run| run["tasks"].as_array()).flatten()
        {
            *sources.entry(task["source"].as_str().expect("a source").to_owned()).or_insert(0) += 1;
            for before in task["repeated"].as_array().into_iter().flatten() {
                let cause = before["cause"].as_str().expect("a cause");
                let is_lost = cause == "worker lost";
                assert!(!is_lost || before["worker"] == "w0" && task["worker"] != "w0", "{task}");
                // Other workers lack inputs and outputs that only the lost one had, and help each other at the end.
                let causes = ["worker lost", "output lost", "input missing", "too late"];
                assert!(causes.contains(&cause), "{task}");
                *repeated.entry(cause.to_owned()).or_insert(0) += 1;
            }
            assert!(task["source"] != "peer" || task["holder"] != task["worker"], "{task}");
        }
    }
    assert!(!sources.contains_key("unrecorded"), "{sources:?}");
    assert!(repeated.get("worker lost").is_some_and(|number| *number > 0), "{repeated:?} {sources:?}");
    cluster.nothing_is_left();
}

#[test]
fn questions_that_a_manager_cannot_answer_are_refused_with_the_reason() {
    let study = cluster::study(1, 64);
    let mut cluster = Cluster::new(&study);
    let queued = cluster.submit(&[]);
    let check = |cluster: &Cluster<'_>, arguments: &[&str], code: i32, said: &str| {
        let answer = cluster.ask(&[&["explain"], arguments].concat());
        assert_eq!(answer.code, code, "{arguments:?}: {answer:?}");
        assert!(answer.stderr.contains(said), "{arguments:?}: {answer:?}");
    };
    check(&cluster, &["99"], 4, "study 99 does not exist");
    cluster.ask(&["cancel", &queued]).done();
    check(
        &cluster,
        &[&queued, "--evaluation", "1"],
        4,
        "is canceled; running, failed and complete studies are explained",
    );
    cluster.start_workers(0..1);
    let id = cluster.submit(&[]);
    cluster.wait_for_completion(&id);
    check(&cluster, &[&id, "--evaluation", "17"], 2, "evaluation 17: 0 to 16 is allowed in this study");
    check(
        &cluster,
        &[&id, "--evaluation", "1", "--tile", "a b"],
        2,
        "tile a b: one of tissue_01, tissue_02 is allowed",
    );
    check(&cluster, &[&id, "--phase", "1"], 2, "phase 1: no phase is allowed in this study");
    check(&cluster, &[&id, "--cache", "kept"], 2, "--cache: allowed for a study file only");
    let records = cluster.state.join(format!("studies/{id}/results/provenance.bin"));
    fs::write(&records, b"noise").expect("written");
    check(&cluster, &[&id], 4, "provenance.bin: corrupt");
    fs::remove_file(&records).expect("removed");
    check(&cluster, &[&id], 4, "has no records");
}
