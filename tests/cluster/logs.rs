//! Logs of manager and workers: text or JSON, at the requested level, with the spans of each line.

use crate::cluster::{self, Cluster};
use serde_json::Value;
use std::collections::BTreeSet;

/// The lines of a log, each one JSON object.
fn objects(log: &str) -> Vec<Value> {
    let read = |line: &str| serde_json::from_str(line).unwrap_or_else(|error| panic!("{line}: {error}"));
    let objects: Vec<Value> = log.lines().map(read).collect();
    for object in &objects {
        for key in ["time", "level", "target", "message"] {
            assert!(object[key].is_string(), "{object} has no {key}");
        }
    }
    objects
}

/// The spans of a line, the outermost first.
fn spans(line: &Value) -> Vec<&str> {
    let spans = line["spans"].as_array().map_or(&[][..], Vec::as_slice);
    spans.iter().map(|span| span["span"].as_str().expect("a name")).collect()
}

#[test]
fn task_log_lines_carry_bucket_and_study() {
    let study = cluster::study(2, 64);
    let mut cluster = Cluster::to_be(&study);
    cluster.environment.insert("PLEACH_LOG".to_owned(), "pleach=info,pleach_actors=trace".to_owned());
    cluster.start_manager();
    cluster.start_worker("w0", &["--log-format", "json"]);
    cluster.submit_and_wait(&[]);
    cluster.ask_to_leave("w0");
    assert!(cluster.left("w0").success());

    let lines = objects(&cluster.log("w0"));
    let tasks: Vec<&Value> = lines.iter().filter(|line| line["message"] == "task is over").collect();
    assert!(!tasks.is_empty());
    let mut operations = BTreeSet::new();
    for task in tasks {
        assert_eq!(spans(task), ["study", "bucket", "task"], "{task}");
        let [study, bucket, of] = [0, 1, 2].map(|place| &task["spans"][place]);
        assert_eq!(study["study"], 1);
        assert!(bucket["lease"].is_u64() && bucket["bucket"].is_u64() && of["node"].is_u64(), "{task}");
        assert!(task["seconds"].is_f64());
        operations.insert(of["operation"].as_str().expect("a name").to_owned());
    }
    assert!(operations.contains("nuclei.background") && operations.len() > 4, "{operations:?}");
    let buckets = lines.iter().filter(|line| line["message"] == "bucket is over");
    assert!(buckets.clone().count() > 0 && buckets.clone().all(|line| spans(line) == ["study", "bucket"]));

    // The manager logs text, with the same numbers for the same bucket.
    let manager = cluster.log("manager");
    let leased = manager.lines().find(|line| line.contains("DEBUG a bucket is leased")).expect("it is told");
    assert!(
        leased.contains(" lease=1099511627776 bucket=") && leased.ends_with("; study study=1"),
        "{leased}"
    );
}

#[test]
fn default_log_has_only_lines_for_operators() {
    let study = cluster::study(2, 64);
    let cluster = Cluster::of(&study, 1);
    cluster.submit_and_wait(&[]);
    let log = cluster.log("manager") + &cluster.log("w0");
    assert!(log.contains("worker w0 joined with 1 slots") && log.contains("study 1 ("), "{log}");
    assert!(!log.contains("DEBUG") && !log.contains("bucket is"), "{log}");
    assert!(log.lines().count() < 20, "{log}");
}

#[test]
fn unknown_log_level_is_refused() {
    let study = cluster::study(2, 64);
    let mut cluster = Cluster::to_be(&study);
    cluster.environment.insert("PLEACH_LOG".to_owned(), "pleach=loud".to_owned());
    let output = cluster.manager_command().output().expect("it starts");
    assert_eq!(output.status.code(), Some(2));
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(
        told.starts_with("error: PLEACH_LOG=pleach=loud: off, error, warn, info, debug, trace"),
        "{told}"
    );
}
