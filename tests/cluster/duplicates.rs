//! Two worker processes of one name: a copied certificate folder, and a worker that restarts at once.

use crate::cluster::{self, Cluster, expected};
use crate::watched::get;
use std::fs;
use std::time::{Duration, Instant};

/// Retry time of the copy.
const WHILE: Duration = Duration::from_secs(12);

/// Attempts within 12 s: waits start at 0.5 s or more and double.
const MAX_ATTEMPTS: u64 = 6;

/// Liveness timeout of a link, doubled for a busy machine.
const ACCEPTED_WITHIN: Duration = Duration::from_secs(10);

/// Log line that reports the duplicate to the operator.
const TOLD: &str = "two workers are named w0";

/// Starts a worker process `copy` with a copy of the certificate folder of `w0`.
fn start_copy(cluster: &mut Cluster<'_>) {
    fs::create_dir_all(cluster.path("ca/copy")).expect("a folder");
    for file in fs::read_dir(cluster.path("ca/w0")).expect("a folder") {
        let file = file.expect("a file");
        fs::copy(file.path(), cluster.path("ca/copy").join(file.file_name())).expect("copied");
    }
    cluster.start_worker("copy", &[]);
}

fn count(text: &str, line: &str) -> usize {
    text.lines().filter(|shown| shown.contains(line)).count()
}

/// Attempts that the manager refused, by its metric.
fn refused(cluster: &Cluster<'_>) -> u64 {
    let metrics = get(&format!("https://{}/metrics", cluster.http));
    let line = metrics.lines().find_map(|line| line.strip_prefix("pleach_manager_duplicate_workers_total "));
    line.map_or(0, |value| value.parse::<f64>().expect("a number") as u64)
}

#[test]
fn worker_with_a_copied_certificate_is_refused_and_backs_off() {
    let study = cluster::study(2, 64);
    let expected = expected(&study);
    let mut cluster = Cluster::of(&study, 1);
    cluster.wait_for_workers();
    start_copy(&mut cluster);
    cluster.wait_until(|cluster| cluster.log("manager").contains(TOLD));
    cluster.let_pass(WHILE);

    let (manager, copy) = (cluster.log("manager"), cluster.log("copy"));
    assert_eq!(count(&manager, TOLD), 1, "{manager}");
    let line = manager.lines().find(|line| line.contains(TOLD)).expect("told");
    assert_eq!(line.matches("127.0.0.1:").count(), 2, "both places: {line}");
    assert_eq!(count(&copy, "the name w0 is in use by a worker at"), 1, "{copy}");
    assert!(!copy.contains("connected to"), "{copy}");
    let attempts = refused(&cluster);
    eprintln!("{attempts} attempts in {} s", WHILE.as_secs());
    assert!((2..=MAX_ATTEMPTS).contains(&attempts), "{attempts} attempts");
    let status = cluster.status();
    let workers = status["workers"].as_array().expect("workers");
    assert_eq!(workers.len(), 1, "{status}");
    let remark = workers[0]["remarks"][0].as_str().expect("a remark");
    assert!(remark.starts_with("the same certificate is used at "), "{remark}");
    // The first worker continues over its existing link.
    let id = cluster.submit_at_once(&[]);
    assert_eq!(cluster.completed(&id), expected);
    assert_eq!(count(&cluster.log("manager"), "worker w0 joined with"), 1);
    assert_eq!(count(&cluster.log("w0"), "connected to"), 1);

    // After the first worker is gone, the copy joins.
    cluster.kill_worker("w0");
    cluster.wait_until(|cluster| cluster.log("copy").contains("connected to"));
    cluster.wait_until(|cluster| cluster.status()["workers"][0]["remarks"].as_array().is_some());
}

#[test]
fn worker_started_again_after_a_kill_is_accepted_within_the_liveness_timeout() {
    let study = cluster::study(2, 64);
    let mut cluster = Cluster::of(&study, 1);
    let joined = |cluster: &Cluster<'_>| count(&cluster.log("manager"), "worker w0 joined with");
    cluster.wait_until(|cluster| joined(cluster) == 1);
    cluster.kill_worker("w0");
    let killed = Instant::now();
    cluster.start_worker("w0", &[]);
    cluster.wait_until(|cluster| joined(cluster) == 2);
    let took = killed.elapsed();
    eprintln!("accepted {:.1} s after the kill", took.as_secs_f64());
    assert!(took < ACCEPTED_WITHIN, "{took:?}");
    let manager = cluster.log("manager");
    assert_eq!(count(&manager, TOLD), 0, "{manager}");
    assert_eq!(refused(&cluster), 0);
}
