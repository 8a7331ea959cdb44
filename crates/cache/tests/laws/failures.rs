//! Full disks, killed processes and lost writes: the cache may lose entries, but never returns wrong ones.

use crate::entries::{AMPLE, Entry, at, entry, folder_bytes, open};
use crate::faulty::{Faulty, Then};
use pleach_cache::{Access, Cache, CacheError, CacheWarning, InsertOutcome};
use pleach_files::{FileSystem, OpenMode, OsFileSystem};
use proptest::prelude::*;
use std::path::Path;
use std::sync::Arc;

fn open_on(files: &Faulty, path: &Path) -> Result<Cache, CacheError> {
    Cache::open_on(Arc::new(files.clone()), path, AMPLE, Access::Write, at(1000))
}

/// Returns entries of both kinds in the order of their storage.
fn sequence(length: usize) -> impl Strategy<Value = Vec<(Entry, bool)>> {
    let one = (0..40_u32, any::<bool>()).prop_map(|(number, blob)| (entry(number), blob));
    prop::collection::vec(one, 1..length)
}

impl std::fmt::Debug for Entry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "the entry of {}", self.key)
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// After a kill at any byte, the next process finds exactly the entries reported as stored.
    #[test]
    fn a_process_may_be_killed_at_any_byte(entries in sequence(25), share in 0.0..1.0_f64) {
        let whole = tempfile::tempdir().unwrap();
        let unharmed = Faulty::default();
        let cache = open_on(&unharmed, whole.path()).unwrap();
        entries.iter().for_each(|(entry, blob)| { entry.put(&cache, *blob); });
        let bytes = (unharmed.written_bytes() as f64 * share) as u64;

        let folder = tempfile::tempdir().unwrap();
        let killed = Faulty::after(bytes, Then::Killed);
        let mut stored = Vec::new();
        if let Ok(cache) = open_on(&killed, folder.path()) {
            for (entry, blob) in &entries {
                if entry.put(&cache, *blob) == InsertOutcome::New {
                    stored.push((entry, *blob));
                }
            }
        }
        let cache = open(folder.path());
        for (entry, blob) in &entries {
            let was_stored = stored.iter().any(|(other, kind)| (other.key, kind) == (entry.key, blob));
            prop_assert_eq!(entry.is_in(&cache, *blob), was_stored);
        }
        // The next process can store the missing entries.
        entries.iter().for_each(|(entry, blob)| { entry.put(&cache, *blob); });
        drop(cache);
        let cache = open(folder.path());
        prop_assert!(entries.iter().all(|(entry, blob)| entry.is_in(&cache, *blob)));
        prop_assert_eq!(cache.statistics().corrupt, 0);
        prop_assert_eq!(cache.statistics().bytes, folder_bytes(folder.path()));
    }

    /// On a full disk the cache stops storing and reports that once. Stored entries are still found.
    #[test]
    fn a_full_disk_ends_storing_and_nothing_else(entries in sequence(25), bytes in 200..20_000_u64) {
        let folder = tempfile::tempdir().unwrap();
        let cache = open_on(&Faulty::after(bytes, Then::Full), folder.path()).unwrap();
        let outcomes: Vec<InsertOutcome> = entries.iter().map(|(entry, blob)| entry.put(&cache, *blob)).collect();
        let stopped = |report: &CacheWarning| matches!(report, CacheWarning::Stopped { .. });
        let first_failure = outcomes.iter().position(|stored| *stored == InsertOutcome::Not);
        prop_assert_eq!(cache.take_reports().iter().filter(|report| stopped(report)).count(), usize::from(first_failure.is_some()));
        let after = &outcomes[first_failure.unwrap_or(outcomes.len())..];
        prop_assert!(after.iter().all(|stored| *stored != InsertOutcome::New));
        prop_assert_eq!(cache.statistics().not_stored, after.iter().filter(|stored| **stored == InsertOutcome::Not).count() as u64);
        for cache in [cache, open(folder.path())] {
            for (place, (entry, blob)) in entries.iter().enumerate() {
                let same = |other: &(Entry, bool)| (other.0.key, other.1) == (entry.key, *blob);
                let first = entries.iter().position(same).unwrap_or(place);
                prop_assert_eq!(entry.is_in(&cache, *blob), outcomes[first] == InsertOutcome::New);
            }
        }
    }

    /// After a power loss, any write may be replaced by zeros, and the last file may be shorter.
    #[test]
    fn writes_may_be_lost(
        entries in sequence(25), lost in prop::collection::vec(any::<prop::sample::Index>(), 0..6), cut in prop::option::of(0.0..1.0_f64),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let files = Faulty::default();
        let cache = open_on(&files, folder.path()).unwrap();
        entries.iter().for_each(|(entry, blob)| { entry.put(&cache, *blob); });
        drop(cache);
        // All writes except those of the marker, which is synced.
        let is_marker = |path: &Path| path.ends_with("FORMAT.part");
        let writes: Vec<_> = files.writes().into_iter().filter(|write| !is_marker(&write.path)).collect();
        for index in lost {
            let write = &writes[index.index(writes.len())];
            let Ok(file) = OsFileSystem.open_random_access(&write.path, OpenMode::Write) else { continue };
            file.write_at(&vec![0; write.length as usize], write.offset).unwrap();
        }
        if let (Some(share), Some(write)) = (cut, writes.last()) {
            let file = OsFileSystem.open_random_access(&write.path, OpenMode::Write).unwrap();
            file.set_length((file.length().unwrap() as f64 * share) as u64).unwrap();
        }
        let cache = open(folder.path());
        entries.iter().for_each(|(entry, blob)| { entry.is_in(&cache, *blob); });
        entries.iter().for_each(|(entry, blob)| { entry.put(&cache, *blob); });
        prop_assert!(entries.iter().all(|(entry, blob)| entry.is_in(&cache, *blob)));
    }
}

/// Without locks, each of two processes could evict or truncate records of the other, so the cache only reads.
#[test]
fn folder_without_locks_is_only_read() {
    let folder = tempfile::tempdir().unwrap();
    let (known, other) = (entry(1), entry(2));
    known.put(&open(folder.path()), false);
    for (path, is_known) in [(folder.path().to_owned(), true), (folder.path().join("new"), false)] {
        let cache = open_on(&Faulty::without_locks(), &path).unwrap();
        let reports: Vec<String> = cache.take_reports().iter().map(CacheWarning::to_string).collect();
        let expected =
            "the cache is read-only: its file system has no file locks (No locks available (os error 37))";
        assert_eq!(reports, [expected]);
        assert_eq!(known.is_in(&cache, false), is_known);
        assert_eq!(
            (other.put(&cache, false), other.put(&cache, true)),
            (InsertOutcome::Not, InsertOutcome::Not)
        );
        drop(cache);
        // Elsewhere, with locks, the same folder is written.
        assert_eq!(other.put(&open(&path), true), InsertOutcome::New);
    }
}

#[test]
fn a_folder_that_can_only_be_read_is_read_and_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let (known, other) = (entry(1), entry(2));
    let cache = open(folder.path());
    known.put(&cache, false);
    known.put(&cache, true);
    drop(cache);
    let contents = || {
        let mut files: Vec<_> =
            std::fs::read_dir(folder.path()).unwrap().map(|file| file.unwrap().path()).collect();
        files.sort();
        files.iter().map(|path| std::fs::read(path).unwrap()).collect::<Vec<_>>()
    };
    let before = contents();

    let cache = open_on(&Faulty::read_only(), folder.path()).unwrap();
    let reports: Vec<String> = cache.take_reports().iter().map(CacheWarning::to_string).collect();
    assert_eq!(reports, ["the cache is read-only: read-only filesystem or storage medium"]);
    let read = Cache::open_on(Arc::new(OsFileSystem), folder.path(), AMPLE, Access::Read, at(2000)).unwrap();
    assert_eq!(read.take_reports(), []);
    for cache in [cache, read] {
        assert!(known.is_in(&cache, false) && known.is_in(&cache, true));
        assert_eq!(
            (other.put(&cache, false), other.put(&cache, true)),
            (InsertOutcome::Not, InsertOutcome::Not)
        );
        assert_eq!((known.put(&cache, false), cache.statistics().not_stored), (InsertOutcome::Known, 2));
        assert!(!other.is_in(&cache, false));
        cache.refresh(at(3000));
        assert_eq!(cache.take_reports(), []);
    }
    assert!(contents() == before, "something was written");
}

/// A kill or a full disk at any byte of a compaction loses no entry, since compaction copies before it removes. Opening
/// starts the compaction.
#[test]
fn merging_may_end_at_any_byte() {
    // 16 small segments, which the next open merges.
    const COUNT: u32 = 16;
    let original = tempfile::tempdir().unwrap();
    for number in 0..COUNT {
        entry(number).put(&open(original.path()), number % 2 == 0);
    }
    let files = || std::fs::read_dir(original.path()).unwrap().map(|file| file.unwrap().path());
    let copied = || {
        let folder = tempfile::tempdir().unwrap();
        files().for_each(|path| {
            std::fs::copy(&path, folder.path().join(path.file_name().unwrap())).unwrap();
        });
        folder
    };
    let unharmed = Faulty::default();
    let whole = copied();
    drop(open_on(&unharmed, whole.path()).unwrap());
    let bytes = unharmed.written_bytes();
    assert!(bytes > 5000, "nothing was merged: {bytes} bytes written");
    // Every 17th byte within the first records, then every 997th.
    for end in (0..300).step_by(17).chain((300..bytes).step_by(997)) {
        for then in [Then::Killed, Then::Full] {
            let folder = copied();
            let ended = open_on(&Faulty::after(end, then), folder.path());
            assert_eq!(ended.is_err(), then == Then::Killed, "{end} {then:?}");
            let cache = open(folder.path());
            for cache in ended.iter().chain([&cache]) {
                assert!(
                    (0..COUNT).all(|number| entry(number).is_in(cache, number % 2 == 0)),
                    "after {end} bytes"
                );
            }
            // The cache may only report a torn record or a torn segment header.
            let reports = cache.take_reports();
            let torn = |report: &CacheWarning| {
                matches!(report, CacheWarning::Cut { .. } | CacheWarning::NotASegment { .. })
            };
            assert!(reports.iter().all(torn), "{end} {then:?}: {reports:?}");
        }
    }
}
