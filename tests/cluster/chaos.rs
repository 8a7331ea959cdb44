//! Studies complete while their processes are killed, replaced, restarted and drained.

use crate::cluster::{self, Cluster, expected};
use std::time::{Duration, Instant};

/// Seeds of this test run.
pub(crate) fn seeds() -> impl Iterator<Item = u64> {
    let count = std::env::var("PLEACH_CHAOS_SEEDS").ok().and_then(|text| text.parse().ok()).unwrap_or(1);
    (1..=count).map(|seed: u64| seed.wrapping_mul(0x9E37_79B9_7F4A_7C15))
}

/// The event of a test happens after this many bytes of responses, some time into the study.
pub(crate) fn moment(seed: u64) -> u64 {
    300 + (seed >> 32) % 4000
}

#[test]
fn study_completes_after_a_worker_is_killed() {
    let study = cluster::study(8, 192);
    let expected = expected(&study);
    for seed in seeds() {
        let mut cluster = Cluster::of(&study, 2);
        let id = cluster.submit(&[]);
        cluster.wait_for_responses(&id, moment(seed));
        cluster.kill_worker("w1");
        assert_eq!(cluster.completed(&id), expected, "seed {seed}");
        cluster.nothing_is_left();
    }
}

#[test]
fn study_completes_after_all_workers_are_replaced() {
    let study = cluster::study(8, 192);
    let expected = expected(&study);
    for seed in seeds() {
        let mut cluster = Cluster::of(&study, 2);
        let id = cluster.submit(&[]);
        cluster.wait_for_responses(&id, moment(seed));
        (0..2).for_each(|number| cluster.kill_worker(&format!("w{number}")));
        cluster.start_workers(2..4);
        assert_eq!(cluster.completed(&id), expected, "seed {seed}");
    }
}

#[test]
fn study_completes_after_the_manager_restarts() {
    let study = cluster::study(8, 192);
    let expected = expected(&study);
    for seed in seeds() {
        let mut cluster = Cluster::of(&study, 2);
        let id = cluster.submit(&[]);
        cluster.wait_for_responses(&id, moment(seed));
        cluster.kill_manager();
        cluster.start_manager();
        assert_eq!(cluster.completed(&id), expected, "seed {seed}");
        for worker in ["w0", "w1"] {
            let log = cluster.log(worker);
            assert!(log.contains("lost the connection to the manager; running tasks continue"), "{log}");
        }
    }
}

#[test]
fn study_completes_after_repeated_manager_kills() {
    let study = cluster::study(8, 192);
    let expected = expected(&study);
    for seed in seeds() {
        let mut cluster = Cluster::of(&study, 2);
        let id = cluster.submit(&[]);
        for time in 1..4 {
            cluster.wait_for_responses(&id, time * (300 + (seed >> (8 * time)) % 1500));
            cluster.kill_manager();
            cluster.start_manager();
        }
        assert_eq!(cluster.completed(&id), expected, "seed {seed}");
    }
}

#[test]
fn study_completes_while_workers_come_and_go_every_2_s() {
    let study = cluster::study(16, 256);
    let expected = expected(&study);
    for seed in seeds() {
        let mut cluster = Cluster::new(&study);
        cluster.start_worker("w0", &[]);
        let id = cluster.submit(&[]);
        for number in 1..6 {
            let next = Instant::now();
            cluster.wait_until(|cluster| cluster.has_ended(&id) || next.elapsed() >= Duration::from_secs(2));
            cluster.start_worker(&format!("w{number}"), &[]);
            let leaves = format!("w{}", number - 1);
            match (seed >> number) % 2 {
                0 => cluster.kill_worker(&leaves),
                _ => {
                    cluster.ask_to_leave(&leaves);
                    assert!(cluster.left(&leaves).success(), "seed {seed}: {}", cluster.log(&leaves));
                }
            }
        }
        assert_eq!(cluster.completed(&id), expected, "seed {seed}");
    }
}

#[test]
fn draining_worker_replicates_its_sole_copies() {
    let study = cluster::study(10, 256);
    let expected = expected(&study);
    for seed in seeds() {
        let mut cluster = Cluster::of(&study, 2);
        let id = cluster.submit(&[]);
        cluster.wait_for_responses(&id, moment(seed));
        cluster.ask_to_leave("w1");
        assert!(cluster.left("w1").success(), "seed {seed}");
        let log = cluster.log("w1");
        assert!(log.contains("the worker has left") && !log.contains("no more time"), "seed {seed}: {log}");
        assert!(!cluster.log("manager").contains("w1 is lost"), "{}", cluster.log("manager"));
        assert_eq!(cluster.completed(&id), expected, "seed {seed}");
    }
}

#[test]
fn worker_leaves_before_its_time_limit() {
    let study = cluster::study(10, 256);
    let expected = expected(&study);
    let mut cluster = Cluster::new(&study);
    cluster.start_worker("w0", &["--until", "6s", "--drain-timeout", "4s"]);
    cluster.start_worker("w1", &[]);
    let id = cluster.submit(&[]);
    assert!(cluster.left("w0").success());
    assert!(cluster.log("w0").contains("the time limit is near (--until)"), "{}", cluster.log("w0"));
    assert_eq!(cluster.completed(&id), expected);
}
