//! Real processes in one folder: two at once, and one that is killed. A test starts itself as its child.

use crate::entries::{AMPLE, at, entry, open};
use pleach_cache::{Cache, InsertOutcome, Limits};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Names the folder that a child works in.
const FOLDER: &str = "PLEACH_CACHE_TEST_FOLDER";

/// The folder to work in, where this process is a child.
fn as_child() -> Option<PathBuf> {
    std::env::var_os(FOLDER).map(PathBuf::from)
}

/// Starts this program again, for one test.
fn child(test: &str, folder: &Path) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", test, "--nocapture"]).env(FOLDER, folder);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::inherit()).spawn().unwrap()
}

#[test]
fn two_processes_fill_one_folder() {
    const COUNT: u32 = 300;
    if let Some(folder) = as_child() {
        let cache = open(&folder);
        for number in 0..COUNT {
            cache.refresh(at(1000));
            assert_ne!(entry(number).put(&cache, number % 2 == 0), InsertOutcome::Not);
            assert!(entry(number).is_in(&cache, number % 2 == 0));
        }
        assert_eq!(cache.take_reports(), []);
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let children = [(); 2].map(|()| child("processes::two_processes_fill_one_folder", folder.path()));
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    let cache = open(folder.path());
    assert!((0..COUNT).all(|number| entry(number).is_in(&cache, number % 2 == 0)));
    let statistics = cache.statistics();
    assert_eq!((statistics.traces, statistics.blobs), (u64::from(COUNT / 2), u64::from(COUNT / 2)));
    assert_eq!(cache.take_reports(), []);
}

/// Two processes with little room evict what the other one has written: they lose entries, and never find wrong ones.
#[test]
fn two_processes_evict_each_others_segments() {
    const LIMIT: Limits = Limits { bytes: 150_000, age: None };
    if let Some(folder) = as_child() {
        let cache = Cache::open(&folder, LIMIT, at(1000)).unwrap();
        for number in 0..600 {
            cache.refresh(at(1000));
            entry(number % 200).put(&cache, true);
            entry((number * 7) % 200).is_in(&cache, true);
            assert!(cache.statistics().bytes <= LIMIT.bytes);
        }
        assert_eq!(cache.take_reports(), []);
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let children =
        [(); 2].map(|()| child("processes::two_processes_evict_each_others_segments", folder.path()));
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    let cache = Cache::open(folder.path(), LIMIT, at(1000)).unwrap();
    assert!((0..200).filter(|number| entry(*number).is_in(&cache, true)).count() > 50);
    assert_eq!(cache.take_reports(), []);
}

/// What another process was seen to have stored is there after it has been killed, and its segment can be cut and
/// evicted: its lock is gone.
#[test]
fn a_killed_process_leaves_whole_entries() {
    if let Some(folder) = as_child() {
        let cache = open(&folder);
        // It is killed long before this ends.
        (0..20_000).for_each(|number| {
            entry(number).put(&cache, true);
        });
        return;
    }
    for wanted in [1, 20, 300] {
        let folder = tempfile::tempdir().unwrap();
        let cache = open(folder.path());
        let mut child = child("processes::a_killed_process_leaves_whole_entries", folder.path());
        let deadline = Instant::now() + Duration::from_secs(60);
        while cache.statistics().blobs < wanted {
            assert!(Instant::now() < deadline, "the other process stores nothing");
            std::thread::yield_now();
            cache.refresh(at(1000));
        }
        let seen = u32::try_from(cache.statistics().blobs).unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        assert!((0..seen).all(|number| entry(number).is_in(&cache, true)));
        drop(cache);
        // Opened twice: what the first puts right the second finds right.
        for _ in 0..2 {
            let cache = Cache::open(folder.path(), AMPLE, at(1000)).unwrap();
            assert!((0..seen).all(|number| entry(number).is_in(&cache, true)));
            assert_eq!(cache.take_reports(), []);
        }
    }
}
