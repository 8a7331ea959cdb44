//! Activity counters of a stack's levels.

use super::TierLevel;
use std::sync::atomic::{AtomicU64, Ordering};

/// Current content of a level, and its activity since the stack was created.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LevelStats {
    /// Name of the level.
    pub name: String,
    /// Regions known to be in it.
    pub regions: u64,
    /// Bytes in use.
    pub held_bytes: u64,
    /// Maximum bytes in use.
    pub capacity_bytes: u64,
    /// Lookups that found the region.
    pub hits: u64,
    /// Lookups that did not find the region.
    pub misses: u64,
    /// Regions stored in it, including regions demoted from above.
    pub inserted: u64,
    /// Regions evicted that are in no level below.
    pub evicted: u64,
    /// Regions evicted that are in a level below.
    pub spilled: u64,
    /// Regions prefetched to it, also counted as inserted.
    pub prefetched: u64,
    /// Regions found corrupt or missing.
    pub lost: u64,
    /// Failed operations, except for lack of space.
    pub errors: u64,
    /// Whether the level answers.
    pub is_available: bool,
}

/// Regions moved between memory and the spill tiers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SpillStats {
    /// Regions dropped because they can be read again from their source.
    pub dropped: u64,
    /// Bytes of dropped regions.
    pub dropped_bytes: u64,
    /// Regions demoted to a spill tier.
    pub demoted: u64,
    /// Bytes of demoted regions in memory.
    pub demoted_bytes: u64,
    /// Regions promoted to memory.
    pub promoted: u64,
    /// Bytes of promoted regions in memory.
    pub promoted_bytes: u64,
    /// Regions shared with other nodes.
    pub shared: u64,
    /// Bytes of shared regions in memory.
    pub shared_bytes: u64,
    /// Regions missing or corrupt at promotion.
    pub lost: u64,
    /// Regions that could not be written.
    pub refused: u64,
}

/// Live counters. They are sums and imply no memory ordering.
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
            is_available: level.tier.is_available(),
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

/// Increments a counter.
pub(super) fn count(counter: &AtomicU64) {
    // Relaxed: each counter is read by itself and orders no other access.
    counter.fetch_add(1, Ordering::Relaxed);
}
