//! A cluster of real processes on one machine: a manager, workers, and client commands. Under any failure, the results equal
//! those of `pleach run`, byte for byte.
//!
//! Each kind of failure runs with one seed. `PLEACH_CHAOS_SEEDS` sets the number of seeds.

mod accelerators;
#[path = "../support/api.rs"]
mod api;
mod apply;
mod backup;
mod chaos;
#[path = "../support/chart.rs"]
mod chart;
mod cluster;
mod costs;
mod damage;
#[path = "../support/data.rs"]
mod data;
mod deletion;
mod disk;
mod download;
mod duplicates;
mod durable;
mod execute;
mod external;
mod forget;
mod gate;
mod hosts;
mod iterate;
#[path = "../support/kubernetes.rs"]
mod kubernetes;
mod logs;
mod memory;
#[path = "../support/mirax.rs"]
mod mirax;
#[path = "../support/disk.rs"]
mod mounted;
mod namespaces;
mod network;
mod parts;
#[path = "../support/pipeline.rs"]
mod pipeline;
mod place;
#[path = "../support/pleach.rs"]
mod pleach;
mod poison;
mod previews;
mod private;
mod provenance;
mod provision;
mod proxy;
mod publish;
#[path = "../support/pyramid.rs"]
mod pyramid;
mod query;
mod ready;
mod refusals;
#[path = "../support/registration.rs"]
mod registration;
mod release;
mod remarks;
mod rollout;
mod scaled;
mod scaling;
#[cfg(feature = "s3")]
#[expect(dead_code, clippy::unwrap_used, reason = "it is part of tests of several packages")]
#[path = "../../crates/objects/tests/laws/serving.rs"]
mod serving;
mod sharing;
mod slides;
mod stored;
#[path = "../support/study.rs"]
mod study;
mod units;
mod volumes;
mod watched;

use cluster::{Cluster, expected};

#[test]
fn any_number_of_workers_gives_the_results_of_a_run() {
    let study = cluster::study(4, 192);
    let expected = expected(&study);
    for count in [1, 2, 4] {
        let cluster = Cluster::of(&study, count);
        assert_eq!(cluster.submit_and_wait(&[]), expected, "{count} workers");
        cluster.nothing_is_left();
    }
}

#[test]
fn any_number_of_workers_gives_the_results_of_a_run_on_real_tiles() {
    let Some(data) = data::data("any_number_of_workers_gives_the_results_of_a_run_on_real_tiles") else {
        return;
    };
    let study = cluster::study(2, 64);
    for name in ["gbm40_03.png", "gbm40_08.png"] {
        let tile = image::open(data.join("annotated/gbm40").join(name)).expect("a tile");
        // A quarter of the tile has enough nuclei and takes little time.
        tile.crop_imm(128, 128, 256, 256).save(study.path("tiles").join(name)).expect("a folder");
    }
    study.edit(&[("tiles/*.png", "tiles/gbm40_*.png")]);
    let expected = expected(&study);
    for count in [1, 2, 4] {
        let cluster = Cluster::of(&study, count);
        assert_eq!(cluster.submit_and_wait(&[]), expected, "{count} workers");
        cluster.nothing_is_left();
    }
}

#[test]
fn studies_share_a_cluster_and_any_plan_gives_the_same() {
    let study = cluster::study(4, 192);
    let expected = expected(&study);
    let cluster = Cluster::of(&study, 2);
    let plans: [&[&str]; 3] =
        [&["--strategy", "stage"], &["--strategy", "rtma", "--reuse", "tree"], &["--strategy", "none"]];
    let ids: Vec<String> = plans.iter().map(|plan| cluster.submit(plan)).collect();
    for id in &ids {
        assert_eq!(cluster.completed(id), expected, "study {id}");
    }
    cluster.nothing_is_left();
}

#[test]
fn remote_workers_fetch_missing_inputs() {
    let study = cluster::study(3, 128);
    let expected = expected(&study);
    let mut cluster = Cluster::new(&study);
    let Some(id) = cluster.submit_from_elsewhere() else {
        return skipped("remote_workers_fetch_missing_inputs", "the system does not let us mount");
    };
    let sent = std::fs::read_dir(cluster.path("state/inputs")).expect("a folder").count();
    assert_eq!(sent, 2, "both tiles have been sent to the manager");
    cluster.start_worker("w0", &[]);
    cluster.start_worker("w1", &[]);
    assert_eq!(cluster.completed(&id), expected);
    cluster.nothing_is_left();
}

#[test]
fn studies_that_are_submitted_at_once_are_several() {
    let study = cluster::study(2, 64);
    let cluster = Cluster::of(&study, 1);
    let ids: std::collections::BTreeSet<String> = std::thread::scope(|scope| {
        let submit = || cluster.submit(&[]);
        let clients: Vec<_> = (0..4).map(|_| scope.spawn(submit)).collect();
        clients.into_iter().map(|client| client.join().expect("it submits")).collect()
    });
    assert_eq!(ids.len(), 4, "{ids:?}");
    let expected = expected(&study);
    ids.iter().for_each(|id| assert_eq!(cluster.completed(id), expected, "study {id}"));
}

#[expect(clippy::print_stderr, reason = "a skipped test is loud")]
pub(crate) fn skipped(test: &str, why: &str) {
    eprintln!("SKIPPED {test}: {why}");
}
