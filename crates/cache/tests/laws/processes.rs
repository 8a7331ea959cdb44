//! Real processes in one folder: two at the same time, and one that is killed. A test starts this program as its child.

use crate::entries::{AMPLE, at, entry, open};
use pleach_cache::{Cache, CacheWarning, InsertOutcome, Limits};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Environment variable with the working folder of a child.
const FOLDER: &str = "PLEACH_CACHE_TEST_FOLDER";

/// Returns the working folder of a child. `None` in the parent.
fn as_child() -> Option<PathBuf> {
    std::env::var_os(FOLDER).map(PathBuf::from)
}

/// Starts a child that runs one test of this program.
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

/// Two processes with a small limit evict each other's segments. They lose entries, but never find wrong ones.
#[test]
fn two_processes_evict_each_others_segments() {
    const LIMIT: Limits = Limits { bytes: 150_000, age: None, user_bytes: None };
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

/// Entries of another process are found after it has been killed. Its lock is released, so its segment can be truncated.
#[test]
fn a_killed_process_leaves_whole_entries() {
    if let Some(folder) = as_child() {
        let cache = open(&folder);
        // The parent kills this process long before the loop ends.
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
        // The first open repairs the segment, from which it may cut an entry that the kill left half written. The second must
        // find it intact.
        for repairs in [true, false] {
            let cache = Cache::open(folder.path(), AMPLE, at(1000)).unwrap();
            assert!((0..seen).all(|number| entry(number).is_in(&cache, true)));
            let reports = cache.take_reports();
            let is_cut = matches!(&reports[..], [CacheWarning::Cut { kept_bytes, .. }] if *kept_bytes > 0);
            assert!(reports.is_empty() || repairs && is_cut, "{reports:?}");
        }
    }
}
