//! Workers share task results through the result directory: equal tasks run once in the cluster, and failures of workers
//! that others wait for cost no result and no more than a bounded time.

use crate::cluster::{self, Cluster};
use crate::pleach::pleach;
use crate::study::Study;
use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Command;
use std::time::{Duration, Instant};

/// A study on one tile: all workers execute buckets of the same tile.
fn study(trajectories: u32, size_px: u32) -> Study {
    let study = cluster::study(trajectories, size_px);
    study.edit(&[
        ("trajectories = 2", &format!("trajectories = {trajectories}")),
        ("tiles/*.png", "tiles/tissue_01.png"),
    ]);
    study
}

/// Executes the study. Returns its responses, the executed tasks, and those that another worker had executed.
fn executed(cluster: &Cluster<'_>, options: &[&str]) -> (String, u64, u64) {
    finished(cluster, &cluster.submit(options))
}

/// As [`executed`], for a submitted study.
fn finished(cluster: &Cluster<'_>, id: &str) -> (String, u64, u64) {
    let responses = cluster.completed(id);
    let record = fs::read_to_string(cluster.path(&format!("out-{id}/run.json"))).expect("a record");
    let record: serde_json::Value = serde_json::from_str(&record).expect("JSON");
    let number = |pointer: &str| record.pointer(pointer).and_then(serde_json::Value::as_u64).unwrap_or(0);
    (responses, number("/tasks_executed"), number("/tasks_reused/peer"))
}

/// Returns the transfers between workers that the plan of a cluster's first study predicts.
fn planned_transfers(cluster: &Cluster<'_>) -> u64 {
    let plan = fs::read_to_string(cluster.path("out-1/plan.json")).expect("a plan");
    let plan: serde_json::Value = serde_json::from_str(&plan).expect("JSON");
    plan["transfers"]["transfers"].as_u64().expect("a number")
}

#[test]
fn four_workers_execute_hardly_more_tasks_than_one() {
    let study = study(10, 192);
    for reuse in ["dataflow", "value"] {
        let one = Cluster::of(&study, 1);
        let (alone, tasks_alone, from_peers) = executed(&one, &["--reuse", reuse]);
        assert_eq!((from_peers, planned_transfers(&one)), (0, 0));
        drop(one);
        let cluster = Cluster::of(&study, 4);
        let (shared, tasks, from_peers) = executed(&cluster, &["--reuse", reuse]);
        assert_eq!(shared, alone, "{reuse}");
        // Without the directory it is 1.2 times as many (value). Claims that wait for memory or a lost message cost a few.
        assert!(tasks * 100 <= tasks_alone * 108, "{reuse}: {tasks} tasks, {tasks_alone} on one worker");
        assert!(from_peers > 0, "{reuse}: no result came from another worker");
        // The manager's plan predicted it for the workers that it had.
        assert!(planned_transfers(&cluster) > 0, "{reuse}");
        cluster.nothing_is_left();
    }
}

/// Eight tiles for two workers: only the tiles that both have at the end need look-ups.
#[test]
fn tasks_of_tiles_that_one_worker_alone_has_are_not_looked_up() {
    let study = cluster::study(4, 128);
    let tissue = ["tissue", "--out", "many", "--size", "128", "--count", "8", "--seed", "5"];
    pleach(study.folder(), &tissue).done();
    fs::remove_dir_all(study.path("tiles")).expect("removed");
    fs::rename(study.path("many"), study.path("tiles")).expect("renamed");
    let mut cluster = Cluster::new(&study);
    for name in ["w0", "w1"] {
        cluster.start_worker(name, &["--metrics", "127.0.0.1:0"]);
    }
    let (responses, tasks, _) = executed(&cluster, &["--reuse", "value"]);
    assert_eq!(responses, cluster::expected(&study));
    let look_ups: f64 = ["w0", "w1"].iter().map(|worker| look_ups(&metrics(&cluster, worker))).sum();
    // Without own tiles, two of three tasks are looked up.
    assert!(look_ups * 3.0 < tasks as f64, "{look_ups} look-ups of {tasks} executed tasks");
}

/// Sums the look-ups of a worker by all answers.
fn look_ups(metrics: &str) -> f64 {
    let lines = metrics.lines().filter_map(|line| line.strip_prefix("pleach_directory_lookups_total{"));
    lines.filter_map(|line| line.split_once("} ")?.1.parse::<f64>().ok()).sum()
}

/// Two users submit equal work at once: it is done once.
#[test]
fn two_studies_with_equal_work_execute_the_tasks_of_one() {
    // On smaller tiles more tasks cost less than a look-up.
    let study = study(8, 512);
    let (expected, tasks_alone, _) = executed(&Cluster::of(&study, 2), &[]);
    let mut cluster = Cluster::new(&study);
    // Workers start last, so that both studies are planned when the first task runs.
    let ids = [cluster.submit(&[]), cluster.submit(&[])];
    cluster.start_workers(0..2);
    let all: Vec<(String, u64, u64)> = ids.iter().map(|id| finished(&cluster, id)).collect();
    assert!(all.iter().all(|(responses, ..)| *responses == expected));
    let tasks: u64 = all.iter().map(|(_, tasks, _)| tasks).sum();
    // Twice as many without sharing, 1.03 to 1.15 times on an idle machine. On a busy one, workers wait too long for each other.
    assert!(tasks * 100 <= tasks_alone * 160, "{tasks} tasks in both, {tasks_alone} in one");
}

#[test]
fn tree_scope_shares_nothing_between_workers() {
    let study = study(4, 128);
    let (_, _, from_peers) = executed(&Cluster::of(&study, 2), &["--reuse", "tree"]);
    assert_eq!(from_peers, 0);
}

/// Workers are killed one after the other: each holds results that others wait for, and a shard of the directory.
#[test]
fn study_completes_after_holders_and_shards_are_lost() {
    let study = study(16, 192);
    let expected = cluster::expected(&study);
    for seed in crate::chaos::seeds() {
        let mut cluster = Cluster::of(&study, 4);
        let id = cluster.submit(&[]);
        for number in 1..4 {
            cluster.wait_for_responses(&id, number * 2_000 + crate::chaos::moment(seed));
            cluster.kill_worker(&format!("w{number}"));
        }
        assert_eq!(cluster.completed(&id), expected, "seed {seed}");
        cluster.nothing_is_left();
    }
}

/// A worker hangs with claims and results that others wait for: they run the tasks themselves.
#[test]
fn study_completes_while_a_claimer_hangs() {
    let study = study(16, 192);
    let expected = cluster::expected(&study);
    for seed in crate::chaos::seeds() {
        let cluster = Cluster::of(&study, 3);
        let id = cluster.submit(&[]);
        cluster.wait_for_responses(&id, crate::chaos::moment(seed));
        signal("STOP", cluster.workers["w1"].id());
        let begun = Instant::now();
        assert_eq!(cluster.completed(&id), expected, "seed {seed}");
        // The manager takes 15 s to notice the silence, and a claim ends 10 s after its last renewal.
        assert!(begun.elapsed() < Duration::from_secs(90), "seed {seed}: {:?}", begun.elapsed());
        signal("CONT", cluster.workers["w1"].id());
    }
}

pub(crate) fn signal(name: &str, process: u32) {
    let status =
        Command::new("bash").args(["-c", &format!("kill -{name} {process}")]).status().expect("bash");
    assert!(status.success());
}

/// Workers of two clusters share a task cache: the second cluster executes nothing, with and without its manager's help.
#[test]
fn clusters_share_a_task_cache() {
    let study = study(4, 128);
    let cache = tempfile::tempdir().expect("a folder");
    let cache = cache.path().join("cache").display().to_string();
    let with_cache = |managers: &[String]| {
        let mut cluster = Cluster::to_be(&study);
        cluster.manager_options = managers.to_vec();
        cluster.start_manager();
        (0..2).for_each(|number| cluster.start_worker(&format!("w{number}"), &["--cache", &cache]));
        executed(&cluster, &[])
    };
    let (expected, tasks, _) = with_cache(&[]);
    assert!(tasks > 0);
    let (again, few, _) = with_cache(&[]);
    assert!(again == expected);
    // Outputs that are slower to read than to compute are not stored.
    assert!(few * 4 < tasks, "workers execute {few} tasks again, of {tasks}");
    let (again, tasks, _) = with_cache(&["--cache".to_owned(), cache.clone()]);
    assert_eq!((again == expected, tasks), (true, 0), "the manager finds all responses");
    // Another scope computes its keys without content, so it neither reads nor writes the cache.
    let mut cluster = Cluster::new(&study);
    cluster.start_worker("w0", &["--cache", &cache]);
    let (again, tasks, _) = executed(&cluster, &["--reuse", "dataflow"]);
    assert!(again == expected && tasks > 0);
}

/// Entries are of the user whose study made them, and a quota costs only its user's own entries.
#[test]
fn cache_entries_belong_to_the_submitting_user() {
    let study = study(4, 128);
    let mut cluster = Cluster::new(&study);
    let issue = ["certs", "issue", "--dir", "ca", "--name", "alice", "--role", "client", "--out", "ca/alice"];
    cluster.call(&issue).done();
    let (url, certs) = (format!("https://{}", cluster.http), cluster.path("ca/alice").display().to_string());
    let entries = |cluster: &Cluster<'_>, user: &str, study: &str| {
        let search = ["cache", "search", "cache", "--json", "--user", user, "--study", study];
        let found = cluster.call(&search).done();
        serde_json::from_str::<Vec<serde_json::Value>>(&found).expect("a list").len()
    };
    cluster.start_worker("w0", &["--cache", "cache"]);
    let first = cluster.submit(&[]);
    cluster.completed(&first);
    let of_me = entries(&cluster, "me", &first);
    assert!(of_me > 100 && entries(&cluster, "alice", &first) == 0, "{of_me}");
    cluster.ask_to_leave("w0");
    assert!(cluster.left("w0").success());

    // A wider study of another user, within a quota that is far too small for it.
    study.edit(&[("trajectories = 2", "trajectories = 12"), ("tiles/*.png", "tiles/tissue_01.png")]);
    cluster.start_worker("w1", &["--cache", "cache", "--cache-quota", "100kB", "--metrics", "127.0.0.1:0"]);
    let submit = ["submit", "study.toml", "--manager", &url, "--certs", &certs];
    let second = pleach(study.folder(), &submit).done().trim().to_owned();
    cluster.completed(&second);
    assert_eq!((entries(&cluster, "me", &first), entries(&cluster, "me", &second)), (of_me, 0));
    assert!(entries(&cluster, "alice", &second) > 0);
    let users = cluster.call(&["cache", "stats", "cache", "--json"]).done();
    let users: serde_json::Value = serde_json::from_str(&users).expect("JSON");
    let alice = users["users"].as_array().expect("users").iter().find(|user| user["user"] == "alice");
    assert!(alice.expect("alice")["bytes"].as_u64().expect("bytes") <= 100_000, "{users}");
    let metrics = metrics(&cluster, "w1");
    let evicted =
        metrics.lines().find(|line| line.starts_with("pleach_task_cache_quota_evicted_bytes_total "));
    let evicted = evicted.and_then(|line| line.rsplit_once(' ')?.1.parse::<f64>().ok()).expect("a number");
    assert!(evicted > 0.0, "{metrics}");
    cluster.ask_to_leave("w1");
    assert!(cluster.left("w1").success());
    let told = "the entries of alice have reached the quota of 100000 bytes";
    assert_eq!(cluster.log("w1").matches(told).count(), 1, "{}", cluster.log("w1"));
    assert!(!cluster.log("w0").contains("quota"));
}

/// Clusters without a shared file system share a task cache in a bucket: the second one executes few tasks again, and none
/// with its manager's help.
#[cfg(feature = "s3")]
#[test]
fn clusters_share_a_task_cache_in_s3() {
    use crate::serving::{BUCKET, CREDENTIALS, serve};
    let study = study(4, 128);
    let place = tempfile::tempdir().expect("a folder");
    let Some(server) = serve("sharing::clusters_share_a_task_cache_in_s3", place.path()) else { return };
    let cache = format!("s3://{BUCKET}/cluster?endpoint={}", server.endpoint);
    let with_cache = |managers: &[String]| {
        let mut cluster = Cluster::to_be(&study);
        let credentials = CREDENTIALS.map(|(name, value)| (name.to_owned(), value.to_owned()));
        cluster.environment.extend(credentials);
        cluster.manager_options = managers.to_vec();
        cluster.start_manager();
        (0..2).for_each(|number| cluster.start_worker(&format!("w{number}"), &["--cache", &cache]));
        let done = executed(&cluster, &[]);
        for worker in ["w0", "w1"] {
            cluster.ask_to_leave(worker);
            assert!(cluster.left(worker).success());
            assert!(!cluster.log(worker).contains("--cache: "), "{}", cluster.log(worker));
        }
        done
    };
    let (expected, tasks, _) = with_cache(&[]);
    let (again, few, _) = with_cache(&[]);
    assert!(again == expected && few < tasks, "workers execute {few} tasks again, of {tasks}");
    let (again, tasks, _) = with_cache(&["--cache".to_owned(), cache.clone()]);
    assert_eq!((again == expected, tasks), (true, 0), "the manager finds all responses");
}

/// Reads the metrics of a worker, at the address in its log.
pub(crate) fn metrics(cluster: &Cluster<'_>, worker: &str) -> String {
    let log = cluster.log(worker);
    let address = log.split("metrics are at http://").nth(1).and_then(|rest| rest.split('/').next());
    let mut stream = TcpStream::connect(address.expect("an address")).expect("a worker");
    write!(stream, "GET /metrics HTTP/1.1\r\nHost: w\r\nConnection: close\r\n\r\n").expect("a request");
    let mut text = String::new();
    stream.read_to_string(&mut text).expect("an answer");
    text
}

#[test]
fn process_refuses_a_folder_that_is_no_cache() {
    let study = study(2, 64);
    let mut cluster = Cluster::to_be(&study);
    fs::create_dir_all(cluster.path("other")).expect("a folder");
    fs::write(cluster.path("other/file"), "no cache").expect("a file");
    cluster.manager_options = vec!["--cache".to_owned(), "other".to_owned()];
    let (code, output) = cluster.try_start_manager().expect_err("it ends");
    assert_eq!(code, Some(2), "{output}");
    assert!(output.contains("--cache other: "), "{output}");
    cluster.manager_options.clear();
    cluster.start_manager();
    cluster.start_worker("w0", &["--cache", "other"]);
    assert_eq!(cluster.left("w0").code(), Some(2));
}
