//! Power loss after any change. Unsynced names and contents may be lost, torn or corrupt, independently of each other. The
//! folder can still be opened and used, and returns only right entries.

use crate::entries::{Entry, at, entry};
use crate::memory::Memory;
use pleach_cache::{Access, Cache, CacheError, InsertOutcome, Limits};
use proptest::prelude::*;
use std::path::Path;
use std::sync::Arc;

/// Limit so small that old segments are evicted.
const SCARCE: Limits = Limits { bytes: 60_000, age: None, user_bytes: None };

fn try_open(files: &Memory, limits: Limits) -> Result<Cache, CacheError> {
    Cache::open_on(Arc::new(files.clone()), Path::new(Memory::TIER), limits, Access::Write, at(1000))
}

fn open(files: &Memory, limits: Limits) -> Cache {
    try_open(files, limits).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn entries_are_lost_or_intact_after_power_loss(
        numbers in prop::collection::vec((0..40_u32, any::<bool>()), 1..40), reopen_every in 1..12_usize,
        kill_after in prop::option::of(0..40_usize), place: prop::sample::Index,
        seeds in prop::collection::vec(any::<u32>(), 1..40),
    ) {
        let files = Memory::default();
        let entries: Vec<(Entry, bool)> = numbers.iter().map(|(number, blob)| (entry(*number), *blob)).collect();
        // Opening merges small segments. Each process may be killed after `kill_after` changes, possibly while it opens the
        // folder.
        for some in entries.chunks(reopen_every) {
            files.kill_after(kill_after);
            match try_open(&files, SCARCE) {
                Ok(cache) => some.iter().for_each(|(entry, blob)| { entry.put(&cache, *blob); }),
                Err(error) => prop_assert!(kill_after.is_some(), "{}", error),
            }
            files.kill_after(None);
        }
        let mut fates = seeds.into_iter().cycle();
        let left = files.after_power_loss(place.index(files.changes() + 1), || fates.next().unwrap());
        let ample = Limits { bytes: 1 << 30, ..Limits::default() };
        let cache = open(&left, ample);
        entries.iter().for_each(|(entry, blob)| { entry.is_in(&cache, *blob); });
        entries.iter().for_each(|(entry, blob)| drop_stored(entry.put(&cache, *blob)));
        prop_assert!(entries.iter().all(|(entry, blob)| entry.is_in(&cache, *blob)));
        drop(cache);
        let cache = open(&left, ample);
        prop_assert!(entries.iter().all(|(entry, blob)| entry.is_in(&cache, *blob)));
    }
}

/// Asserts that an entry fits.
fn drop_stored(stored: InsertOutcome) {
    assert_ne!(stored, InsertOutcome::Not);
}
