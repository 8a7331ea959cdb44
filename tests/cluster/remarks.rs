//! Remarks of `pleach status` and log lines of the manager during a study.

use crate::cluster::{self, Cluster};

/// Whether one line of the manager's log contains all of these texts.
fn logged(cluster: &Cluster<'_>, parts: &[&str]) -> bool {
    cluster.log("manager").lines().any(|line| parts.iter().all(|part| line.contains(part)))
}

#[test]
fn study_without_workers_has_a_remark_and_no_prediction() {
    let study = cluster::study(2, 64);
    let mut cluster = Cluster::new(&study);
    let id = cluster.submit(&[]);
    cluster.wait_until(|cluster| cluster.study_of(&id)["remarks"][0] == "no workers");
    let waiting = cluster.study_of(&id);
    assert_eq!(waiting["state"], "running", "{waiting}");
    assert!(waiting["remaining_seconds"].is_null(), "{waiting}");
    let table = cluster.ask(&["status"]).done();
    assert!(table.contains("DONE") && table.contains("no workers"), "{table}");

    cluster.start_worker("w0", &[]);
    cluster.completed(&id);
    let complete = cluster.study_of(&id);
    assert_eq!(complete["remarks"], serde_json::json!([]), "{complete}");
    assert_eq!(complete["progress"], 1.0, "{complete}");
}

#[test]
fn work_done_moves_before_the_first_evaluation_ends() {
    let study = cluster::study(8, 128);
    let cluster = Cluster::of(&study, 1);
    let id = cluster.submit(&[]);
    let mut before_evaluations = false;
    let mut last = 0.0;
    loop {
        let now = cluster.study_of(&id);
        if let Some(progress) = now["progress"].as_f64() {
            assert!((last..=1.0).contains(&progress), "{now} after {last}");
            last = progress;
            before_evaluations |= progress > 0.0 && now["evaluations_done"] == 0;
        }
        if now["state"] == "complete" {
            break;
        }
    }
    assert!(before_evaluations, "it never moved before the first evaluation was done");
    assert_eq!(last, 1.0);
}

#[test]
fn log_of_the_manager_names_each_step_of_a_study() {
    let study = cluster::study(2, 64);
    let mut cluster = Cluster::new(&study);
    let id = cluster.submit(&[]);
    assert!(logged(
        &cluster,
        &["study 1 (", "submitted by node me at 127.0.0.1: ", " evaluations on 2 tiles"]
    ));
    cluster.wait_until(|cluster| logged(cluster, &["study 1 started: ", " buckets for 1 slots"]));
    let other = cluster.submit(&[]);
    cluster.ask(&["cancel", &other]).done();
    assert!(logged(&cluster, &["study 2 (", "canceled by node me at 127.0.0.1"]));
    assert!(cluster.end_manager().success());
    assert!(logged(&cluster, &["the manager stops; its studies continue after its next start"]));
    assert!(!logged(&cluster, &["failed"]), "a study that waits for the next start has not failed");
    assert!(!logged(&cluster, &["resumed"]));
    cluster.start_manager();
    cluster.wait_until(|cluster| logged(cluster, &["study 1 (", "resumed after a restart of the manager"]));
    cluster.kill_manager();
    cluster.start_manager();
    cluster.wait_until(|cluster| logged(cluster, &["study 1 (", "resumed after a restart of the manager"]));
    cluster.start_worker("w0", &[]);
    cluster.completed(&id);
    assert!(logged(&cluster, &["study 1 (", "is complete after ", " tasks executed, "]));
    assert!(!logged(&cluster, &["study 2 (", "resumed"]), "it was canceled");
}
