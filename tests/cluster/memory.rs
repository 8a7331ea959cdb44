//! One memory estimate for `pleach plan` and for workers: a worker with the planned memory gets the study, and buckets fit
//! the memory of the workers.

use crate::cluster::Cluster;
use crate::pleach::pleach;
use crate::study::Study;
use serde_json::Value;
use std::fs;

/// 30 MB: too little for the default buckets, enough for smaller ones.
const LITTLE: &str = "30MB";
const LITTLE_BYTES: u64 = 30_000_000;

/// Ranges of this study fit any of these memories.
const TRTMA: &[&str] = &["--strategy", "trtma"];

/// A study with enough evaluations for buckets that hold more bytes than their running tasks use.
fn study() -> Study {
    let study = Study::of_tissue(512);
    study.edit(&[("trajectories = 2", "trajectories = 200")]);
    let mut tiles: Vec<_> = fs::read_dir(study.path("tiles")).expect("tiles").flatten().collect();
    tiles.sort_by_key(fs::DirEntry::file_name);
    tiles.iter().skip(1).for_each(|tile| fs::remove_file(tile.path()).expect("removed"));
    study
}

/// Minimum memory of a worker for the study, in bytes, in a plan for workers with `memory`.
fn least_bytes(study: &Study, memory: &str) -> u64 {
    let args = ["plan", "study.toml", "--workers", "1", "--strategy", "trtma", "--memory", memory, "--json"];
    let plans: Value = serde_json::from_str(&pleach(study.folder(), &args).done()).expect("JSON");
    plans["plans"][0]["least_bytes"].as_u64().unwrap_or_else(|| panic!("it names no memory: {plans}"))
}

/// Starts a worker with little memory and no spill tier.
fn start_small_worker(cluster: &mut Cluster<'_>) {
    let issue = ["certs", "issue", "--dir", "ca", "--name", "w0", "--role", "worker", "--out", "ca/w0"];
    cluster.call(&issue).done();
    let manager = cluster.listen.clone();
    let called = ["worker", "--manager", &manager, "--certs", "ca/w0", "--listen", "127.0.0.1:0"];
    let called = called.iter().chain(&["--cores", "1", "--memory", LITTLE]);
    cluster.called.insert("w0".to_owned(), called.map(|arg| (*arg).to_owned()).collect());
    cluster.start_worker("w0", &[]);
    cluster.wait_for_workers();
}

/// Waits until a worker has executed tasks of the study, then cancels it.
fn begins(cluster: &Cluster<'_>, id: &str) {
    cluster.wait_until(|cluster| cluster.study_of(id)["tasks_executed"].as_u64() > Some(20));
    let study = cluster.study_of(id);
    assert_eq!(study["remarks"], serde_json::json!([]), "{study}");
    cluster.ask(&["cancel", id]).done();
}

#[test]
fn worker_with_little_memory_gets_smaller_buckets() {
    let study = study();
    let (ample, least) = (least_bytes(&study, "1GB"), least_bytes(&study, LITTLE));
    eprintln!("{ample} bytes at once with ample memory, {least} for workers of {LITTLE}");
    assert!(ample > LITTLE_BYTES && least <= LITTLE_BYTES, "{ample}, {least}");
    let mut cluster = Cluster::new(&study);
    start_small_worker(&mut cluster);
    begins(&cluster, &cluster.submit(TRTMA));
}

#[test]
fn study_planned_without_workers_is_replanned_for_small_one() {
    let study = study();
    let mut cluster = Cluster::new(&study);
    let id = cluster.submit(TRTMA);
    cluster.wait_until(|cluster| cluster.log("manager").contains("study 1 started: "));
    start_small_worker(&mut cluster);
    begins(&cluster, &id);
    assert!(cluster.log("manager").contains("study 1 replanned for less memory per worker"));
}
