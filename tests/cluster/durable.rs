//! Regions that survive the workers that stored them: in a shared folder, or as a replica on a second worker.

use crate::chaos::{moment, seeds};
use crate::cluster::{self, Cluster, expected};
use crate::mounted::Disk;
use crate::place::Place;
use crate::pleach::pleach;
use crate::sharing::signal;
use crate::skipped;
use crate::study::Study;
use crate::units::granted_bytes;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// A study with this `durability`.
fn study(durable: &str) -> Study {
    longer_study(durable, 8)
}

fn longer_study(durable: &str, trajectories: u32) -> Study {
    let study = cluster::study(trajectories, 192);
    let seed = format!("seed = 500\ndurability = \"{durable}\"");
    study.edit(&[("trajectories = 2", &format!("trajectories = {trajectories}")), ("seed = 500", &seed)]);
    study
}

fn shared(cluster: &Cluster<'_>) -> String {
    let folder = cluster.path("shared");
    fs::create_dir_all(&folder).expect("a folder");
    folder.to_str().expect("UTF-8").to_owned()
}

/// Regions in the shared folder, packed ones included.
fn regions(cluster: &Cluster<'_>) -> usize {
    let listed = cluster.call(&["storage", "ls", "--lustre", "shared", "--json"]).done();
    let listed: serde_json::Value = serde_json::from_str(&listed).expect("JSON");
    listed[0]["regions"].as_array().expect("regions").len()
}

#[test]
fn outputs_of_lost_workers_are_read_from_the_shared_tier() {
    let study = longer_study("outputs", 24);
    let expected = expected(&study);
    for seed in seeds() {
        let mut cluster = Cluster::new(&study);
        let folder = shared(&cluster);
        let names = ["w0", "w1"];
        for name in names {
            cluster.start_worker(name, &["--lustre", &folder]);
        }
        let id = cluster.submit(&[]);
        cluster.wait_for_responses(&id, moment(seed));
        cluster.wait_until(|cluster| regions(cluster) > 0 || cluster.has_ended(&id));
        // Neither completes the study before both are killed.
        for name in names {
            signal("STOP", cluster.workers[name].id());
        }
        assert!(!cluster.has_ended(&id), "seed {seed}: nothing is shared, or the study is too short");
        // The two workers take all other regions with them.
        for name in names {
            cluster.kill_worker(name);
        }
        for name in ["w2", "w3"] {
            cluster.start_worker(name, &["--lustre", &folder]);
        }
        assert_eq!(cluster.completed(&id), expected, "seed {seed}");
        let [bytes] = granted_bytes(&cluster, ["shared"]);
        assert!(bytes > 0.0, "no bucket was granted for its inputs in the shared tier");
    }
}

#[test]
fn full_shared_tier_does_not_delay_a_study() {
    let study = study("all");
    let expected = expected(&study);
    let mut cluster = Cluster::new(&study);
    shared(&cluster);
    let tiers = "[[tier]]\nkind = \"lustre\"\npath = \"shared\"\ncapacity = \"2MB\"\n";
    fs::write(cluster.path("tiers.toml"), tiers).expect("a file written");
    for name in ["w0", "w1"] {
        cluster.start_worker(name, &["--tiers", "tiers.toml"]);
    }
    assert_eq!(cluster.submit_and_wait(&[]), expected);
    cluster.nothing_is_left();
}

/// The `durable` key of an output overrides the study's durability.
#[test]
fn workflow_durability_overrides_the_study() {
    for (of_study, of_output, is_shared) in [("none", true, true), ("outputs", false, false)] {
        let study = study(of_study);
        let files = Path::new(env!("CARGO_MANIFEST_DIR")).join("crates/pathology/descriptors/nuclei");
        for file in fs::read_dir(files).expect("descriptors").map(|entry| entry.expect("a file").path()) {
            let name = file.file_name().expect("a name").to_str().expect("UTF-8").to_owned();
            let text = fs::read_to_string(&file).expect("a descriptor");
            let mut descriptor: serde_json::Value = serde_json::from_str(&text).expect("JSON");
            let outputs = descriptor.get_mut("outputs").and_then(serde_json::Value::as_array_mut);
            outputs.into_iter().flatten().for_each(|output| output["durable"] = of_output.into());
            study.write(&format!("nuclei/{name}"), descriptor.to_string());
        }
        let text = fs::read_to_string(study.path("study.toml")).expect("a study");
        study.write("study.toml", text.replace("\"nuclei\"", "\"nuclei/workflow.json\""));
        let expected = expected(&study);
        let mut cluster = Cluster::new(&study);
        let folder = shared(&cluster);
        for name in ["w0", "w1"] {
            cluster.start_worker(name, &["--lustre", &folder]);
        }
        let id = cluster.submit(&[]);
        cluster.wait_for_responses(&id, 1000);
        assert_eq!(regions(&cluster) > 0, is_shared, "{of_study}");
        assert_eq!(cluster.completed(&id), expected, "{of_study}");
    }
}

/// Bytes of all files below a folder.
fn bytes_in(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let of = |path: &Path| fs::metadata(path).map_or(0, |meta| meta.len());
    entries.map(|entry| if entry.path().is_dir() { bytes_in(&entry.path()) } else { of(&entry.path()) }).sum()
}

#[test]
fn replica_on_a_second_worker_survives_a_lost_worker() {
    let study = study("outputs");
    let expected = expected(&study);
    let refused = pleach(study.folder(), &["run", "study.toml", "--out", "none", "--memory", "1kB"]);
    let least = refused.stderr.split(" needs ").nth(1).and_then(|rest| rest.split(' ').next());
    // This minimum leaves hardly any memory for replicas, so workers drop them under memory pressure.
    let least = format!("{}MB", least.and_then(|least| least.parse::<u64>().ok()).expect("a number"));
    for (seed, way) in seeds().flat_map(|seed| ["disks", "memory", "little memory"].map(|way| (seed, way))) {
        let mut cluster = Cluster::new(&study);
        for name in ["w0", "w1"] {
            let folder = cluster.path(name);
            fs::create_dir_all(&folder).expect("a folder");
            let folder = folder.to_str().expect("UTF-8").to_owned();
            let options = match way {
                "disks" => vec!["--ssd", &folder],
                "memory" => Vec::new(),
                _ => vec!["--memory", &least],
            };
            cluster.start_worker(name, &options);
        }
        let id = cluster.submit(&[]);
        if way == "disks" {
            // The memory holds the whole study, so bytes on disk are replicas of the other worker's regions.
            let all = |cluster: &Cluster<'_>| {
                ["w0", "w1"].map(|name| bytes_in(&cluster.path(name))).iter().sum::<u64>()
            };
            cluster.wait_until(|cluster| all(cluster) > 10_000);
        }
        cluster.wait_for_responses(&id, moment(seed));
        cluster.kill_worker("w0");
        assert_eq!(cluster.completed(&id), expected, "seed {seed}, {way}");
        cluster.nothing_is_left();
    }
}

/// Freezes a file system for the lifetime of this value. Writes to it block, and blocked writers cannot be interrupted.
struct Frozen(PathBuf);

impl Frozen {
    fn of(folder: PathBuf) -> Self {
        let frozen = Command::new("fsfreeze").arg("--freeze").arg(&folder).status().expect("fsfreeze starts");
        assert!(frozen.success());
        Self(folder)
    }
}

impl Drop for Frozen {
    fn drop(&mut self) {
        // A frozen file system cannot be unmounted.
        let _ = Command::new("fsfreeze").arg("--unfreeze").arg(&self.0).status();
    }
}

/// The tier hangs for longer than its time limit, until the study has ended. Outputs are replicated on the other worker meanwhile.
#[test]
fn study_ends_while_its_shared_tier_hangs() {
    let study = study("outputs");
    let expected = expected(&study);
    let mut cluster = Cluster::new(&study);
    let Some(disk) = Disk::ext4(&cluster.path("disk"), 64) else {
        return skipped("study_ends_while_its_shared_tier_hangs", "the system does not let us mount");
    };
    let names = ["w0", "w1"];
    for name in names {
        cluster.places.insert(name.to_owned(), Place { way: disk.way(), ..Place::default() });
        cluster.start_worker(name, &["--lustre", "disk"]);
    }
    let id = cluster.submit(&[]);
    cluster.wait_for_responses(&id, 1000);
    let frozen = Frozen::of(disk.seen());
    assert_eq!(cluster.completed(&id), expected);
    let logs = || names.map(|name| cluster.log(name));
    let has = |what: &str| logs().iter().any(|log| log.contains(what));
    assert!(has("is unavailable: no answer within 20 s"), "{:?}", logs());
    drop(frozen);
    cluster.wait_until(|_| has("is available again"));
    // The workers have removed what they stored before.
    cluster.nothing_is_left();
}

#[test]
fn hanging_shared_tier_does_not_lose_workers_or_results() {
    let study = study("outputs");
    let expected = expected(&study);
    for seed in seeds() {
        let mut cluster = Cluster::new(&study);
        let Some(disk) = Disk::ext4(&cluster.path("disk"), 64) else {
            let test = "hanging_shared_tier_does_not_lose_workers_or_results";
            return skipped(test, "the system does not let us mount");
        };
        for name in ["w0", "w1"] {
            cluster.places.insert(name.to_owned(), Place { way: disk.way(), ..Place::default() });
            cluster.start_worker(name, &["--lustre", "disk"]);
        }
        let id = cluster.submit(&[]);
        cluster.wait_for_responses(&id, moment(seed));
        let frozen = Frozen::of(disk.seen());
        cluster.let_pass(Duration::from_secs(5));
        // The manager still counts workers that wait for the disk as alive.
        let workers = cluster.status()["workers"].as_array().map(Vec::len);
        assert_eq!(workers, Some(2), "seed {seed}");
        drop(frozen);
        assert_eq!(cluster.completed(&id), expected, "seed {seed}");
        cluster.nothing_is_left();
    }
}
