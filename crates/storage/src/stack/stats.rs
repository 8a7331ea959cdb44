//! What a level of a stack has done so far.

use super::TierLevel;
use std::sync::atomic::{AtomicU64, Ordering};

/// What a level holds now, and what it has done since the stack was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LevelStats {
    /// The level.
    pub name: String,
    /// Regions that are known to be in it.
    pub regions: u64,
    /// Bytes taken.
    pub held_bytes: u64,
    /// Bytes that may be taken.
    pub capacity_bytes: u64,
    /// Regions that were found in it.
    pub hits: u64,
    /// Regions that were looked for and not found.
    pub misses: u64,
    /// Regions that were stored in it, those that came from above included.
    pub inserted: u64,
    /// Regions that made room and are in no level below.
    pub evicted: u64,
    /// Regions that made room and are below now.
    pub spilled: u64,
    /// Regions that were brought to it before they were asked for; they are counted as stored, too.
    pub prefetched: u64,
    /// Regions that were damaged or gone.
    pub lost: u64,
    /// Times that the level could not do what it was asked for, other than for lack of room.
    pub errors: u64,
}

/// The same while it is counted. The numbers are sums, and order nothing.
#[derive(Debug, Default)]
pub(super) struct LevelCounters {
    pub(super) hits: AtomicU64,
    pub(super) misses: AtomicU64,
    pub(super) inserted: AtomicU64,
    pub(super) evicted: AtomicU64,
    pub(super) spilled: AtomicU64,
    pub(super) prefetched: AtomicU64,
    pub(super) lost: AtomicU64,
    pub(super) errors: AtomicU64,
}

impl LevelCounters {
    pub(super) fn show(&self, level: &TierLevel, regions: u64) -> LevelStats {
        let now = |count: &AtomicU64| count.load(Ordering::Relaxed);
        LevelStats {
            name: level.name.clone(),
            regions,
            held_bytes: level.tier.held_bytes(),
            capacity_bytes: level.tier.capacity_bytes(),
            hits: now(&self.hits),
            misses: now(&self.misses),
            inserted: now(&self.inserted),
            evicted: now(&self.evicted),
            spilled: now(&self.spilled),
            prefetched: now(&self.prefetched),
            lost: now(&self.lost),
            errors: now(&self.errors),
        }
    }
}

/// One more.
pub(super) fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}
