//! A cluster of real processes on one machine: a manager, workers, and the commands that speak with it. Whatever happens to
//! them, the results are those of `pleach run`, byte for byte.
//!
//! Each kind of chaos runs with one seed; `PLEACH_CHAOS_SEEDS` asks for more.

mod chaos;
mod cluster;
mod network;
#[path = "../support/pleach.rs"]
mod pleach;
mod proxy;
mod refusals;
#[path = "../support/study.rs"]
mod study;

use cluster::{Cluster, expected};

#[test]
fn any_number_of_workers_gives_the_results_of_a_run() {
    let study = cluster::study(4, 192);
    let expected = expected(&study);
    for count in [1, 2, 4] {
        let mut cluster = Cluster::new(&study);
        (0..count).for_each(|number| cluster.start_worker(&format!("w{number}"), &[]));
        assert_eq!(cluster.submit_and_wait(&[]), expected, "{count} workers");
        cluster.nothing_is_left();
    }
}

#[test]
fn studies_share_a_cluster_and_any_plan_gives_the_same() {
    let study = cluster::study(4, 192);
    let expected = expected(&study);
    let mut cluster = Cluster::new(&study);
    (0..2).for_each(|number| cluster.start_worker(&format!("w{number}"), &[]));
    let plans: [&[&str]; 3] =
        [&["--strategy", "stage"], &["--strategy", "rtma", "--reuse", "tree"], &["--strategy", "none"]];
    let ids: Vec<String> = plans.iter().map(|plan| cluster.submit(plan)).collect();
    for id in &ids {
        cluster.wait_until(|cluster| cluster.state_of(id) == "complete");
        assert_eq!(cluster.responses(id), expected, "study {id}");
    }
    cluster.nothing_is_left();
}

#[test]
fn workers_elsewhere_are_sent_what_they_lack() {
    let study = cluster::study(3, 128);
    let expected = expected(&study);
    let mut cluster = Cluster::new(&study);
    // The files go once they are submitted: nobody can open them where they were.
    let id = cluster.submit_from_elsewhere();
    cluster.start_worker("w0", &[]);
    cluster.start_worker("w1", &[]);
    cluster.wait_until(|cluster| cluster.state_of(&id) == "complete");
    assert_eq!(cluster.responses(&id), expected);
    cluster.nothing_is_left();
}
