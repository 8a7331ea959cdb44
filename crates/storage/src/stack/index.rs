//! Index of a stack: the levels, value and claim of each region.
//!
//! This module calls no tier.

use super::read_cost::{ReadCost, ReadTime};
use crate::{EvictionPolicy, policy::EvictionQueue};
use pleach_regions::RegionKey;
use std::collections::{HashMap, HashSet};
use std::time::Duration;

/// Metadata of a region.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct RegionMeta {
    pub(super) bytes: u64,
    pub(super) seconds: f64,
    pub(super) durable: bool,
}

impl RegionMeta {
    /// Metadata of a region found at start, without value to this process.
    const FOUND: Self = Self { bytes: 0, seconds: 0.0, durable: false };

    /// Merges two descriptions of the same region.
    fn and(self, other: Self) -> Self {
        let (bytes, seconds) = (self.bytes.max(other.bytes), self.seconds.max(other.seconds));
        Self { bytes, seconds, durable: self.durable || other.durable }
    }

    /// Returns whether the region must not be dropped.
    pub(super) fn is_pinned(self) -> bool {
        self.durable || self.seconds == f64::INFINITY
    }
}

#[derive(Debug)]
struct Entry {
    about: RegionMeta,
    /// Whether a thread stores, moves or removes it.
    is_claimed: bool,
    /// The level that must not evict it.
    pinned_in: Option<usize>,
    /// The level it was prefetched to and its bytes, until the first read.
    prefetched: Option<(usize, u64)>,
}

impl Entry {
    fn found() -> Self {
        Self { about: RegionMeta::FOUND, is_claimed: false, pinned_in: None, prefetched: None }
    }
}

/// Index of one stack.
#[derive(Debug)]
pub(super) struct StackIndex {
    entries: HashMap<RegionKey, Entry>,
    levels: Vec<EvictionQueue>,
    /// Costs of reads by level.
    reads: Vec<ReadCost>,
    /// Bytes in memory of prefetched regions that have not been read yet.
    prefetched_bytes: u64,
    /// Regions that have entered or left a level since they were last taken. `None` if the caller takes none.
    moved: Option<HashSet<RegionKey>>,
}

impl StackIndex {
    pub(super) fn new(policies: impl Iterator<Item = EvictionPolicy>) -> Self {
        let levels: Vec<EvictionQueue> = policies.map(EvictionQueue::new).collect();
        Self {
            entries: HashMap::new(),
            reads: vec![ReadCost::default(); levels.len()],
            levels,
            prefetched_bytes: 0,
            moved: None,
        }
    }

    /// Takes the regions that have moved since the last call. The first call starts the record.
    pub(super) fn take_moved(&mut self) -> HashSet<RegionKey> {
        self.moved.replace(HashSet::new()).unwrap_or_default()
    }

    fn note_move(&mut self, key: RegionKey) {
        self.moved.iter_mut().for_each(|moved| _ = moved.insert(key));
    }

    /// Returns the fastest level that has a region.
    pub(super) fn fastest(&self, key: RegionKey) -> Option<usize> {
        self.levels.iter().position(|level| level.contains(key))
    }

    /// Adds a region that a level held at start.
    pub(super) fn find(&mut self, level: usize, key: RegionKey) {
        self.entries.entry(key).or_insert_with(Entry::found);
        self.touch(level, key);
    }

    /// Claims a region for the caller and merges `about` into its metadata. Returns false if another thread has claimed it.
    pub(super) fn claim(&mut self, key: RegionKey, about: Option<RegionMeta>) -> bool {
        let entry = self.entries.entry(key).or_insert_with(Entry::found);
        if entry.is_claimed {
            return false;
        }
        entry.is_claimed = true;
        self.update_meta(key, about.unwrap_or(RegionMeta::FOUND));
        true
    }

    /// Merges further metadata of a region.
    pub(super) fn update_meta(&mut self, key: RegionKey, about: RegionMeta) {
        let Some(entry) = self.entries.get_mut(&key) else { return };
        let before = entry.about;
        entry.about = before.and(about);
        // Unchanged metadata must not count as a use, which `touch` records.
        if entry.about != before {
            // The new value applies in every level that has the region.
            for level in 0..self.levels.len() {
                if self.levels[level].contains(key) {
                    self.touch(level, key);
                }
            }
        }
    }

    /// Pins a region to a level until it leaves the level.
    pub(super) fn pin(&mut self, level: usize, key: RegionKey) {
        if let Some(entry) = self.entries.get_mut(&key) {
            entry.pinned_in = Some(level);
        }
    }

    /// Begins prefetching a claimed region to a level. Returns false if prefetched bytes would exceed the limit.
    pub(super) fn begin_prefetch(
        &mut self,
        level: usize,
        key: RegionKey,
        bytes: u64,
        max_bytes: u64,
    ) -> bool {
        if self.prefetched_bytes.saturating_add(bytes) > max_bytes {
            return false;
        }
        if let Some(entry) = self.entries.get_mut(&key) {
            assert!(entry.is_claimed, "{key} is prefetched into level {level} without a claim");
            let before = entry.prefetched.replace((level, bytes)).map_or(0, |(_, bytes)| bytes);
            let all_bytes = self.prefetched_bytes;
            assert!(all_bytes >= before, "{key} had {before} prefetched bytes of {all_bytes}");
            self.prefetched_bytes = all_bytes - before + bytes;
        }
        let all_bytes = self.prefetched_bytes;
        assert!(all_bytes <= max_bytes, "{all_bytes} bytes are prefetched with {key}, {max_bytes} may be");
        true
    }

    /// Ends the prefetched state: the region has been read, or has left the level.
    pub(super) fn end_prefetch(&mut self, level: usize, key: RegionKey) {
        if let Some(entry) = self.entries.get_mut(&key)
            && let Some((_, bytes)) = entry.prefetched.take_if(|(there, _)| *there == level)
        {
            self.subtract_prefetched(key, bytes);
        }
    }

    fn subtract_prefetched(&mut self, key: RegionKey, bytes: u64) {
        let all_bytes = self.prefetched_bytes;
        assert!(all_bytes >= bytes, "{key} returns {bytes} prefetched bytes of {all_bytes}");
        self.prefetched_bytes -= bytes;
    }

    pub(super) fn prefetched_bytes(&self) -> u64 {
        self.prefetched_bytes
    }

    /// Releases a claim. A region in no level is forgotten.
    pub(super) fn release(&mut self, key: RegionKey) {
        let is_claimed = self.entries.get(&key).is_some_and(|entry| entry.is_claimed);
        assert!(is_claimed, "{key} is released without a claim");
        if self.levels.iter().any(|level| level.contains(key)) {
            self.entries.entry(key).and_modify(|entry| entry.is_claimed = false);
        } else {
            self.remove_entry(key);
        }
    }

    /// Claims the first region to evict from a level. With `is_pinned`, pinned regions follow all others. `None` if no
    /// region may leave the level.
    pub(super) fn claim_victim(&mut self, level: usize, is_pinned: bool) -> Option<(RegionKey, RegionMeta)> {
        let may_go = |entry: &Entry| !entry.is_claimed && entry.pinned_in != Some(level);
        let is_free = |key| self.entries.get(&key).is_some_and(may_go);
        let key = self.levels[level].victim(is_pinned, is_free)?;
        let entry = self.entries.get_mut(&key)?;
        assert!(!entry.is_claimed, "{key} is evicted from level {level} during another operation");
        entry.is_claimed = true;
        Some((key, entry.about))
    }

    /// Adds a region to a level, or records a read or a changed value.
    pub(super) fn touch(&mut self, level: usize, key: RegionKey) {
        let Some(Entry { about, .. }) = self.entries.get(&key) else { return };
        let is_new = !self.levels[level].contains(key);
        let is_pinned = about.is_pinned();
        let seconds = if is_pinned { self.seconds_below(level, about.bytes) } else { about.seconds };
        self.levels[level].touch(key, about.bytes, seconds, is_pinned);
        if is_new {
            self.note_move(key);
        }
    }

    /// Records the time of a read from a level.
    pub(super) fn observe_read(&mut self, level: usize, bytes: u64, time: Duration) {
        self.reads[level].observe(bytes, time);
    }

    /// Returns the measured time of reads by level. `None` for levels without a read.
    pub(super) fn read_times(&self) -> Vec<Option<ReadTime>> {
        self.reads.iter().map(ReadCost::measured).collect()
    }

    /// Returns the seconds of a read from the level below this one.
    fn seconds_below(&self, level: usize, bytes: u64) -> f64 {
        self.reads.get(level + 1).map_or(0.0, |below| below.seconds(bytes))
    }

    /// Removes a region from a level.
    pub(super) fn forget(&mut self, level: usize, key: RegionKey) {
        self.levels[level].forget(key);
        self.leave(level, key);
        let is_free = self.entries.get(&key).is_some_and(|entry| !entry.is_claimed);
        if is_free && !self.levels.iter().any(|level| level.contains(key)) {
            self.remove_entry(key);
        }
    }

    /// Removes the entry of a region that is in no level.
    fn remove_entry(&mut self, key: RegionKey) {
        let entry = self.entries.remove(&key);
        assert!(entry.is_some(), "{key} is removed, and has no entry");
        // A tier that panics during a prefetch leaves the bytes counted.
        if let Some((_, bytes)) = entry.and_then(|entry| entry.prefetched) {
            self.subtract_prefetched(key, bytes);
        }
    }

    /// Removes an evicted region from a level.
    pub(super) fn evict(&mut self, level: usize, key: RegionKey) {
        let is_claimed = self.entries.get(&key).is_some_and(|entry| entry.is_claimed);
        assert!(is_claimed, "{key} is evicted from level {level} without a claim");
        self.levels[level].evict(key);
        self.leave(level, key);
    }

    fn leave(&mut self, level: usize, key: RegionKey) {
        self.note_move(key);
        self.end_prefetch(level, key);
        if let Some(entry) = self.entries.get_mut(&key) {
            entry.pinned_in = entry.pinned_in.filter(|kept| *kept != level);
        }
    }

    pub(super) fn contains(&self, level: usize, key: RegionKey) -> bool {
        self.levels[level].contains(key)
    }

    pub(super) fn len(&self, level: usize) -> usize {
        self.levels[level].len()
    }
}
