//! One estimate of memory for `pleach plan` and for workers: a worker with what the plan names gets the study, and buckets
//! are cut to what workers have.

use crate::cluster::Cluster;
use crate::pleach::pleach;
use crate::study::Study;
use serde_json::Value;
use std::fs;

/// Too little for the buckets that a worker gets otherwise, and enough for smaller ones.
const LITTLE: &str = "30MB";
const LITTLE_BYTES: u64 = 30_000_000;

/// Of so many evaluations that a bucket holds more than tasks work with.
fn study() -> Study {
    let study = Study::of_tissue(512);
    study.edit(&[("trajectories = 2", "trajectories = 200")]);
    let mut tiles: Vec<_> = fs::read_dir(study.path("tiles")).expect("tiles").flatten().collect();
    tiles.sort_by_key(fs::DirEntry::file_name);
    tiles.iter().skip(1).for_each(|tile| fs::remove_file(tile.path()).expect("removed"));
    study
}

/// What a worker needs for the study, in bytes, by a plan for workers with so much memory.
fn least_bytes(study: &Study, memory: &str) -> u64 {
    let args = ["plan", "study.toml", "--workers", "1", "--memory", memory, "--json"];
    let plans: Value = serde_json::from_str(&pleach(study.folder(), &args).done()).expect("JSON");
    plans["plans"][0]["least_bytes"].as_u64().unwrap_or_else(|| panic!("it names no memory: {plans}"))
}

/// Starts a worker of little memory and without any storage below it.
fn start_small_worker(cluster: &mut Cluster<'_>) {
    let issue = ["certs", "issue", "--dir", "ca", "--name", "w0", "--role", "worker", "--out", "ca/w0"];
    cluster.call(&issue).done();
    let manager = cluster.listen.clone();
    let called = ["worker", "--manager", &manager, "--certs", "ca/w0", "--listen", "127.0.0.1:0"];
    let called = called.iter().chain(&["--cores", "1", "--memory", LITTLE]);
    cluster.called.insert("w0".to_owned(), called.map(|arg| (*arg).to_owned()).collect());
    cluster.start_worker("w0", &[]);
    cluster.wait_until(|cluster| cluster.log("manager").contains("worker w0 has joined"));
}

/// Waits until a worker has begun with the study, and ends it.
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
    begins(&cluster, &cluster.submit(&[]));
}

#[test]
fn study_planned_without_workers_is_cut_for_a_small_one_that_comes() {
    let study = study();
    let mut cluster = Cluster::new(&study);
    let id = cluster.submit(&[]);
    cluster.wait_until(|cluster| cluster.log("manager").contains("study 1 started: "));
    start_small_worker(&mut cluster);
    begins(&cluster, &id);
    assert!(cluster.log("manager").contains("study 1 is cut for workers with less memory"));
}
