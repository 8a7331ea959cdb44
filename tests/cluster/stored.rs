//! Corrupt input files in the manager's store and in a worker's store.

use crate::cluster::{self, Cluster, expected};
use crate::skipped;
use std::fs;
use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// Flips a bit of an input file in the folder. Returns its path.
fn damage(folder: &Path) -> PathBuf {
    let files = fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    let is_input = |path: &PathBuf| path.is_file() && path.file_name().is_some_and(|name| name.len() == 64);
    let path = files.filter(is_input).min().expect("an input file");
    let mut bytes = fs::read(&path).expect("a file");
    let place = bytes.len() / 2;
    bytes[place] ^= 1;
    let mut file = fs::File::options().write(true).open(&path).expect("a file");
    file.seek(SeekFrom::Start(place as u64)).expect("a file");
    file.write_all(&bytes[place..=place]).expect("a file");
    path
}

fn is_whole(path: &Path) -> bool {
    let digest = blake3_of(path);
    path.file_name().is_some_and(|name| *name == *digest)
}

fn blake3_of(path: &Path) -> String {
    pleach_regions::Digest::of_bytes(&fs::read(path).expect("a file")).to_string()
}

#[test]
fn input_damaged_with_a_manager_is_sent_again() {
    let study = cluster::study(2, 64);
    let expected = expected(&study);
    let mut cluster = Cluster::new(&study);
    let Some(first) = cluster.submit_from_elsewhere() else {
        return skipped("input_damaged_with_a_manager_is_sent_again", "the system does not let us mount");
    };
    cluster.kill_manager();
    let damaged = damage(&cluster.path("state/inputs"));
    cluster.start_manager();
    // The manager detects the corruption before a worker requests the file.
    cluster.wait_until(|cluster| cluster.study_of(&first)["state"] == "waiting");
    let message = cluster.study_of(&first)["message"].as_str().expect("it says why").to_owned();
    for part in ["elsewhere/tiles/", ".png: the manager's copy is corrupt", "pleach submit"] {
        assert!(message.contains(part), "{message}");
    }
    let name = damaged.file_name().expect("a name").to_string_lossy().into_owned();
    let said = cluster.log("manager");
    let line = format!(
        "the input file state/inputs/{name} is corrupt: content does not match the digest in its name"
    );
    assert!(said.contains(&line), "{said}");
    assert!(!damaged.exists() && damaged.with_extension("damaged").exists());
    let second = cluster.submit_from_elsewhere().expect("as before");
    assert!(is_whole(&damaged), "the good one was sent, and is kept");
    cluster.start_worker("w0", &[]);
    for id in [first, second] {
        assert_eq!(cluster.completed(&id), expected, "study {id}");
    }
    cluster.nothing_is_left();
}

#[test]
fn input_damaged_while_a_study_runs_fails_it_by_name() {
    let study = cluster::study(2, 64);
    let expected = expected(&study);
    let mut cluster = Cluster::new(&study);
    let Some(first) = cluster.submit_from_elsewhere() else {
        let test = "input_damaged_while_a_study_runs_fails_it_by_name";
        return skipped(test, "the system does not let us mount");
    };
    cluster.wait_until(|cluster| cluster.state_of(&first) == "running");
    let damaged = damage(&cluster.path("state/inputs"));
    cluster.start_worker("w0", &[]);
    // The study must fail, instead of completing with failed runs for the whole tile.
    cluster.wait_until(|cluster| {
        ["failed", "complete"].iter().any(|state| cluster.study_of(&first)["state"] == *state)
    });
    let told = cluster.study_of(&first);
    assert_eq!(told["state"], "failed", "{told}");
    let message = told["message"].as_str().expect("it says why").to_owned();
    for part in [
        "elsewhere/tiles/",
        "the manager's copy is corrupt",
        "pleach submit",
        "retries it at its \
                                                                                        next start",
    ] {
        assert!(message.contains(part), "{message}");
    }
    assert!(cluster.log("manager").contains(&message), "{}", cluster.log("manager"));
    assert!(!damaged.exists());
    let second = cluster.submit_from_elsewhere().expect("as before");
    assert!(is_whole(&damaged));
    assert_eq!(cluster.completed(&second), expected);
    cluster.kill_manager();
    cluster.start_manager();
    assert_eq!(cluster.completed(&first), expected);
    cluster.nothing_is_left();
}

#[test]
fn input_damaged_with_a_worker_is_fetched_again() {
    let study = cluster::study(2, 64);
    let expected = expected(&study);
    let mut cluster = Cluster::new(&study);
    cluster.start_worker("w0", &[]);
    let Some(first) = cluster.submit_from_elsewhere() else {
        return skipped("input_damaged_with_a_worker_is_fetched_again", "the system does not let us mount");
    };
    assert_eq!(cluster.completed(&first), expected);
    cluster.kill_worker("w0");
    let damaged = damage(&cluster.path("w0-ssd/inputs"));
    cluster.start_worker("w0", &[]);
    let second = cluster.submit_from_elsewhere().expect("as before");
    assert_eq!(cluster.completed(&second), expected);
    let said = cluster.log("w0");
    let name = damaged.file_name().expect("a name").to_string_lossy().into_owned();
    assert!(said.contains(&format!("removed the corrupt input file w0-ssd/inputs/{name}")), "{said}");
    assert!(is_whole(&damaged));
}
