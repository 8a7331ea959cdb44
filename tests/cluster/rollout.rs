//! A chart release that changes while a study runs: all workers replaced, more workers, fewer workers, and another manager.
//! Results equal those of `pleach run`, and no acknowledged instance is executed twice.

use crate::cluster;
use crate::pleach::pleach;
use crate::release::Release;
use crate::study::Study;
use crate::watched::get;
use serde_json::Value;
use std::fs;

/// Options without reuse across buckets: every worker executes the same number of tasks per instance, so tests can count
/// them.
const COUNTABLE: [&str; 4] = ["--strategy", "stage", "--reuse", "tree"];

/// The responses and the number of tasks of the study, executed in one process.
fn expected(study: &Study) -> (String, u64) {
    pleach(study.folder(), &[&["run", "study.toml", "--out", "alone", "--quiet"], &COUNTABLE[..]].concat())
        .done();
    let responses = fs::read_to_string(study.path("alone/responses.csv")).expect("responses");
    let run = fs::read_to_string(study.path("alone/run.json")).expect("a record");
    let run: Value = serde_json::from_str(&run).expect("JSON");
    (responses, run["tasks_executed"].as_u64().expect("a number"))
}

/// Waits for more responses. Asserts that the study is still running.
fn some_more(release: &Release<'_>, id: &str) {
    let seen = release.cluster.journal_bytes(id);
    release.cluster.wait_until(|cluster| cluster.has_ended(id) || cluster.journal_bytes(id) > seen);
    assert!(!release.cluster.has_ended(id), "the study was too short to see anything");
}

#[test]
fn workers_are_replaced_added_and_taken_away_while_a_study_runs() {
    let study = cluster::study(160, 256);
    let (responses, tasks) = expected(&study);
    let test = "workers_are_replaced_added_and_taken_away_while_a_study_runs";
    let Some(mut release) = Release::install(test, &study) else { return };
    (0..2).for_each(|_| release.start_pod());
    release.wait_until_ready();
    // Without a study one worker suffices, so the other one gets a deletion cost.
    assert!(release.pods.contains(&release.first_to_go()));
    let id = release.cluster.submit(&COUNTABLE);
    some_more(&release, &id);
    // A rolling restart: one more worker (maxSurge), and one fewer when it is ready.
    for _ in 0..2 {
        release.start_pod();
        release.wait_until_ready();
        release.delete_oldest();
        some_more(&release, &id);
    }
    // Scale-up, then scale-down.
    (0..2).for_each(|_| release.start_pod());
    release.wait_until_ready();
    some_more(&release, &id);
    (0..2).for_each(|_| release.delete_oldest());
    some_more(&release, &id);
    assert_eq!(release.cluster.completed(&id), responses);
    // No acknowledged instance is executed again. Speculative executions are not acknowledged yet.
    let metrics = get(&format!("https://{}/metrics", release.cluster.http));
    assert!(metrics.lines().any(|line| line == "pleach_instances_reopened_total 0"), "{metrics}");
    let executed = release.cluster.study_of(&id)["tasks_executed"].as_u64().expect("a number");
    assert!(executed >= tasks, "{executed} of {tasks}");
    let log = release.cluster.log("manager");
    assert!(!log.contains("is lost"), "{log}");
    release.cluster.nothing_is_left();
    // The script of `helm test`.
    let output = release.shell("test", &release.container("test")).output().expect("a shell starts");
    assert!(output.status.success(), "{output:?}");
}

#[test]
fn replacement_manager_completes_a_running_study() {
    let study = cluster::study(12, 256);
    let (responses, tasks) = expected(&study);
    let Some(mut release) = Release::install("replacement_manager_completes_a_running_study", &study) else {
        return;
    };
    (0..2).for_each(|_| release.start_pod());
    release.wait_until_ready();
    let id = release.cluster.submit(&COUNTABLE);
    release.cluster.wait_for_responses(&id, 2000);
    let certificate = release.cluster.path("pods/manager/var/lib/pleach/certs/manager/node.pem");
    let before = fs::read(&certificate).expect("a certificate");
    let acknowledged = fs::read(release.cluster.journal(&id)).expect("a journal");
    release.delete_manager();
    release.start_manager();
    assert_ne!(
        fs::read(&certificate).expect("a certificate"),
        before,
        "each start has a certificate of its own"
    );
    some_more(&release, &id);
    let journal = fs::read(release.cluster.journal(&id)).expect("a journal");
    assert!(journal.starts_with(&acknowledged), "what was acknowledged is there still");
    assert_eq!(release.cluster.completed(&id), responses);
    // The manager counts tasks executed under it and results that reattached workers reported.
    let executed = release.cluster.study_of(&id)["tasks_executed"].as_u64().expect("a number");
    assert!(executed < tasks, "{executed} of {tasks}: what was acknowledged was executed again");
}
