//! Limits of a cache: bytes, including overhead, and age.

use crate::entries::{at, entry, folder_bytes};
use pleach_cache::{Cache, InsertOutcome, Limits};
use proptest::prelude::*;
use std::path::Path;
use std::time::Duration;

fn open(path: &Path, bytes: u64, now_seconds: u64) -> Cache {
    Cache::open(path, Limits { bytes, ..Limits::default() }, at(now_seconds)).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Two caches on one folder stay within the limit after every step, and find only right entries.
    #[test]
    fn two_writers_stay_within_the_limit(
        limit in 100..60_000_u64, steps in prop::collection::vec((0..60_u32, any::<bool>(), any::<bool>()), 1..120),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let caches = [open(folder.path(), limit, 1000), open(folder.path(), limit, 1000)];
        for (number, blob, second) in steps {
            let cache = &caches[usize::from(second)];
            let stored = entry(number).put(cache, blob);
            prop_assert!(folder_bytes(folder.path()) <= limit);
            prop_assert_eq!(cache.statistics().bytes, folder_bytes(folder.path()));
            prop_assert!(stored == InsertOutcome::Not || entry(number).is_in(cache, blob));
        }
        drop(caches);
        // A smaller limit holds as soon as a cache is opened with it.
        let cache = open(folder.path(), limit / 2 + 50, 1000);
        prop_assert!(folder_bytes(folder.path()) <= limit / 2 + 50);
        (0..60).for_each(|number| { entry(number).is_in(&cache, true); });
    }
}

/// A full cache evicts the oldest entries and stays nearly full.
#[test]
fn full_cache_stores_new_entries() {
    let folder = tempfile::tempdir().unwrap();
    const LIMIT: u64 = 200_000;
    let cache = open(folder.path(), LIMIT, 1000);
    let stored: u32 =
        (0..1000).map(|number| u32::from(entry(number).put(&cache, true) == InsertOutcome::New)).sum();
    assert_eq!(stored, 1000);
    assert!((900..1000).all(|number| entry(number).is_in(&cache, true)));
    assert!(!(0..800).any(|number| entry(number).is_in(&cache, true)));
    assert!(cache.statistics().evicted > 0);
    assert!(folder_bytes(folder.path()) > LIMIT * 9 / 10, "{} bytes", folder_bytes(folder.path()));
}

#[test]
fn least_recently_used_entries_are_evicted_first() {
    let folder = tempfile::tempdir().unwrap();
    const LIMIT: u64 = 100_000;
    // Two studies of about 30 KB each. Then the first is used again, before a third study evicts entries.
    let study = |numbers: std::ops::Range<u32>, now_seconds| {
        let cache = open(folder.path(), LIMIT, now_seconds);
        numbers.for_each(|number| assert_ne!(entry(number).put(&cache, true), InsertOutcome::Not));
    };
    study(0..30, 1000);
    study(30..60, 2000);
    let cache = open(folder.path(), LIMIT, 3000);
    assert!((0..30).all(|number| entry(number).is_in(&cache, true)));
    drop(cache);
    study(60..90, 4000);
    let cache = open(folder.path(), LIMIT, 5000);
    let count = |numbers: std::ops::Range<u32>| {
        numbers.filter(|number| cache.contains_region(&entry(*number).digest)).count()
    };
    assert_eq!((count(0..30), count(60..90)), (30, 30));
    assert!(count(30..60) < 30);
}

#[test]
fn entries_beyond_the_age_limit_are_evicted() {
    let folder = tempfile::tempdir().unwrap();
    let limits = Limits { bytes: 1 << 30, age: Some(Duration::from_secs(100)), user_bytes: None };
    let open = |now_seconds| Cache::open(folder.path(), limits, at(now_seconds)).unwrap();
    let cache = open(1000);
    entry(1).put(&cache, false);
    drop(cache);
    let cache = open(1050);
    entry(2).put(&cache, false);
    drop(cache);
    // Only the first entry is used again.
    let cache = open(1090);
    assert!(entry(1).is_in(&cache, false));
    drop(cache);
    let cache = open(1160);
    assert_eq!((entry(1).is_in(&cache, false), entry(2).is_in(&cache, false)), (true, false));
    assert_eq!(cache.statistics().evicted, 1);
}

#[test]
fn region_of_half_the_limit_is_not_stored() {
    let folder = tempfile::tempdir().unwrap();
    let large = entry(3);
    let bytes = large.region.encode(&large.digest).len() as u64;
    let cache = open(folder.path(), 2 * bytes, 1000);
    assert_eq!(large.put(&cache, true), InsertOutcome::Not);
    drop(cache);
    let cache = open(folder.path(), 2 * (bytes + 200), 1000);
    assert_eq!(large.put(&cache, true), InsertOutcome::New);
}

/// Every run of a study leaves a segment. The cache merges many small segments into one without losing entries.
#[test]
fn small_segments_are_merged() {
    let folder = tempfile::tempdir().unwrap();
    for number in 0..100_u32 {
        let cache = open(folder.path(), 1 << 30, 1000 + u64::from(number));
        entry(number).put(&cache, false);
        entry(number).put(&cache, true);
        drop(cache);
    }
    let cache = open(folder.path(), 1 << 30, 2000);
    assert!((0..100).all(|number| entry(number).is_in(&cache, false) && entry(number).is_in(&cache, true)));
    let statistics = cache.statistics();
    assert!(statistics.segments <= 17, "{statistics:?}");
    assert_eq!(
        (statistics.traces, statistics.blobs, statistics.corrupt, statistics.evicted),
        (100, 100, 0, 0)
    );
    assert_eq!(cache.take_reports(), []);
}

/// A cache opened before a compaction still finds its entries, and finds new ones after a refresh.
#[test]
fn open_reader_finds_entries_after_compaction() {
    let folder = tempfile::tempdir().unwrap();
    let open = || open(folder.path(), 1 << 30, 1000);
    for number in 0..15 {
        entry(number).put(&open(), true);
    }
    let reader = open();
    for number in 15..40 {
        entry(number).put(&open(), true);
    }
    assert!((0..15).all(|number| entry(number).is_in(&reader, true)));
    reader.refresh(at(1000));
    assert!((0..40).all(|number| entry(number).is_in(&reader, true)));
    assert_eq!(reader.take_reports(), []);
}

/// A segment with a writer stays, even if it is the least recently used one.
#[test]
fn segment_with_a_live_writer_is_not_evicted() {
    let folder = tempfile::tempdir().unwrap();
    let open = |now_seconds| open(folder.path(), 100_000, now_seconds);
    let first = open(1000);
    assert_eq!(entry(0).put(&first, true), InsertOutcome::New);
    let second = open(2000);
    assert!((1..300).all(|number| entry(number).put(&second, true) == InsertOutcome::New));
    assert!(entry(0).is_in(&open(3000), true));
    drop(first);
    assert!((300..600).all(|number| entry(number).put(&second, true) == InsertOutcome::New));
    assert!(!entry(0).is_in(&open(4000), true));
}

/// Limits near the minimum segment size of 4,096 bytes, so that a few uncounted bytes would exceed them.
#[test]
fn limits_hold_to_the_byte() {
    for limit in 4080..4160 {
        let folder = tempfile::tempdir().unwrap();
        let cache = open(folder.path(), limit, 1000);
        assert_eq!(entry(0).put(&cache, false), InsertOutcome::New);
        let bytes = folder_bytes(folder.path());
        assert!(bytes <= limit, "{bytes} bytes of {limit}");
    }
}
