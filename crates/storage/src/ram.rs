//! RAM as a tier: the RAM tier of `pleach-regions` with a capacity.
//!
//! The overhead per region is an estimate. It excludes the overhead of the allocator.

use crate::{Durability, Inserted, Tier, TierError, TierLocation};
use pleach_regions::{DataRegion, MemoryCounter, RamTier, RegionKey, StoreError};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Overhead per region: its own fields behind two counters, and a table entry of key, pointer, optional identity (33 bytes)
/// and control byte. Tables are between 7/16 and 7/8 full, so half as much again is empty.
pub(crate) const ENTRY_BYTES: u64 =
    (size_of::<DataRegion>() + 2 * size_of::<usize>() + (16 + size_of::<usize>() + 33 + 1) * 3 / 2) as u64;

/// Regions in memory, up to a capacity.
#[derive(Debug)]
pub struct BoundedRam {
    tier: RamTier,
    capacity_bytes: u64,
    /// Bytes of all regions with overhead. Added before an insertion and subtracted after a removal.
    held_bytes: AtomicU64,
}

impl BoundedRam {
    /// Creates an empty tier that counts the bytes of its regions in `ledger`.
    #[must_use]
    pub fn new(ledger: Arc<MemoryCounter>, capacity_bytes: u64) -> Self {
        Self { tier: RamTier::new(ledger), capacity_bytes, held_bytes: AtomicU64::new(0) }
    }

    /// Subtracts the bytes of a region that was counted by [`insert`](Tier::insert).
    fn subtract(&self, key: RegionKey, bytes: u64) {
        let before = self.held_bytes.fetch_sub(bytes, Ordering::Relaxed);
        assert!(before >= bytes, "{key} of {bytes} bytes leaves the RAM tier, which counted {before}");
        assert!(before <= self.capacity_bytes, "{before} of {} bytes were counted", self.capacity_bytes);
    }
}

impl Tier for BoundedRam {
    fn insert(&self, key: RegionKey, region: &Arc<DataRegion>) -> Result<Inserted, TierError> {
        // Before the capacity check: a full tier must still recognize a region that it has.
        if self.tier.get(key).is_some() {
            return Ok(Inserted::AlreadyPresent);
        }
        let needed_bytes = region.bytes() + ENTRY_BYTES;
        // Counted before the insertion, so that concurrent insertions cannot exceed the capacity together. Relaxed: the
        // counter alone enforces it and orders no other access.
        let add = |held: u64| held.checked_add(needed_bytes).filter(|sum| *sum <= self.capacity_bytes);
        self.held_bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add).map_err(|held_bytes| {
            let capacity_bytes = self.capacity_bytes;
            TierError::Full { key, place: TierLocation::Ram, needed_bytes, held_bytes, capacity_bytes }
        })?;
        match self.tier.insert(key, Arc::clone(region)) {
            Ok(()) => Ok(Inserted::New),
            // Another thread inserted the region first.
            Err(StoreError::Duplicate(_)) => {
                self.subtract(key, needed_bytes);
                Ok(Inserted::AlreadyPresent)
            }
        }
    }

    fn get(&self, key: RegionKey) -> Result<Option<Arc<DataRegion>>, TierError> {
        Ok(self.tier.get(key))
    }

    fn remove(&self, key: RegionKey) -> Result<bool, TierError> {
        let Some(region) = self.tier.remove(key) else { return Ok(false) };
        self.subtract(key, region.bytes() + ENTRY_BYTES);
        Ok(true)
    }

    fn contains(&self, key: RegionKey) -> Result<bool, TierError> {
        Ok(self.tier.get(key).is_some())
    }

    fn list(&self) -> Result<Vec<RegionKey>, TierError> {
        let mut keys = self.tier.keys();
        keys.sort_unstable();
        Ok(keys)
    }

    fn held_bytes(&self) -> u64 {
        self.held_bytes.load(Ordering::Relaxed)
    }

    fn capacity_bytes(&self) -> u64 {
        self.capacity_bytes
    }

    fn durability(&self) -> Durability {
        Durability::Process
    }
}
