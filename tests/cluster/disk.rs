//! A full disk under the state directory: the manager reports it, loses nothing, and continues when space is free.

use crate::chaos::{moment, seeds};
use crate::cluster::{self, Cluster, expected};
use crate::mounted::Disk;
use crate::place::Place;
use crate::skipped;
use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;

/// Where a process sees the disk.
fn place(disk: &Disk) -> Place {
    Place { way: disk.way(), ..Place::default() }
}

/// 8 MB: enough for all results. A larger disk only takes longer to fill.
const MEGABYTES: u32 = 8;

/// Evaluations with journaled runs of both tiles.
fn evaluations(journal: &str) -> usize {
    let whole = journal.rfind('\n').map_or("", |end| &journal[..end]);
    let mut runs: BTreeMap<u64, u32> = BTreeMap::new();
    for line in whole.lines().skip(1) {
        let (_, content) = line.split_once(' ').expect("a checksum");
        let content: serde_json::Value = serde_json::from_str(content).expect("a line");
        *runs.entry(content["evaluation"].as_u64().expect("a number")).or_default() += 1;
    }
    runs.iter().filter(|(evaluation, runs)| **evaluation > 0 && **runs == 2).count()
}

/// Bytes and leases that the workers report.
fn held(cluster: &Cluster<'_>) -> (u64, u64) {
    let workers = cluster.status()["workers"].as_array().cloned().unwrap_or_default();
    let sum = |what: &str| workers.iter().filter_map(|worker| worker[what].as_u64()).sum();
    (sum("bytes"), sum("running"))
}

#[test]
fn full_disk_suspends_a_study_until_space_is_free() {
    let study = cluster::study(8, 192);
    let expected = expected(&study);
    for seed in seeds() {
        let mut cluster = Cluster::to_be(&study);
        let Some(disk) = Disk::tmpfs(&cluster.path("state"), MEGABYTES) else {
            let test = "full_disk_suspends_a_study_until_space_is_free";
            return skipped(test, "the system does not let us mount");
        };
        cluster.places.insert("manager".to_owned(), place(&disk));
        cluster.state = disk.seen();
        cluster.start_manager();
        cluster.start_workers(0..2);
        let id = cluster.submit(&[]);
        cluster.wait_for_responses(&id, moment(seed));
        let filler = disk.fill();
        cluster.wait_until(|cluster| cluster.study_of(&id)["state"] == "failed");
        let told = cluster.study_of(&id);
        let message = told["message"].as_str().expect("it says why");
        for part in [
            "results: failed to write the journal: No space left",
            "free disk space",
            "retries it at its \
                                                                                        next start",
        ] {
            assert!(message.contains(part), "seed {seed}: {message}");
        }
        assert!(cluster.log("manager").contains(message), "{}", cluster.log("manager"));
        // The journal holds every evaluation that the manager reported as done.
        let journal = fs::read_to_string(cluster.journal(&id)).expect("a journal");
        let done = told["evaluations_done"].as_u64().expect("a number") as usize;
        assert!(done <= evaluations(&journal), "seed {seed}: {done} evaluations\n{journal}");
        // Workers finish their leases, get no new ones, and drop nothing.
        cluster.let_pass(Duration::from_secs(2));
        let (bytes, leases) = held(&cluster);
        assert!(bytes > 0 && leases > 0, "seed {seed}: {bytes} bytes, {leases} buckets");
        cluster.kill_manager();
        // Without space the manager does not start, and names the file.
        let refused = cluster.manager_command().output().expect("it starts");
        let text = String::from_utf8(refused.stderr).expect("UTF-8");
        assert!(refused.status.code() == Some(6) && text.contains("manager.json: No space left"), "{text}");
        fs::remove_file(filler).expect("it is there");
        cluster.start_manager();
        assert_eq!(cluster.completed(&id), expected, "seed {seed}");
        cluster.nothing_is_left();
    }
}

#[test]
fn suspended_study_can_be_canceled() {
    let study = cluster::study(8, 192);
    let mut cluster = Cluster::to_be(&study);
    let Some(disk) = Disk::tmpfs(&cluster.path("state"), MEGABYTES) else {
        return skipped("suspended_study_can_be_canceled", "the system does not let us mount");
    };
    cluster.places.insert("manager".to_owned(), place(&disk));
    cluster.state = disk.seen();
    cluster.start_manager();
    cluster.start_workers(0..2);
    let id = cluster.submit(&[]);
    cluster.wait_for_responses(&id, 1000);
    let filler = disk.fill();
    cluster.wait_until(|cluster| cluster.study_of(&id)["state"] == "failed");
    fs::remove_file(filler).expect("it is there");
    cluster.ask(&["cancel", &id]).done();
    assert_eq!(cluster.state_of(&id), "canceled");
    cluster.nothing_is_left();
}
