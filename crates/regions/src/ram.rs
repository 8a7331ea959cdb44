//! The RAM tier: data regions behind `Arc`s, found by key, with every byte accounted for.
//!
//! It decides nothing: the runtime says what to insert and what to remove.

use crate::{DataRegion, MemoryCounter, RegionIdentity, RegionKey};
use dashmap::{DashMap, Entry};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use thiserror::Error;

/// Why the tier refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum StoreError {
    /// Regions are immutable: a key is written once.
    #[error("region {0} is already stored")]
    Duplicate(RegionKey),
}

#[derive(Debug)]
struct Stored {
    region: Arc<DataRegion>,
    identity: Option<RegionIdentity>,
    /// The tier's count of changes when it was stored.
    since: u64,
}

/// A region in the tier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RamRegion {
    /// Its key.
    pub key: RegionKey,
    /// Its bytes.
    pub bytes: u64,
    /// The tier's count of changes when it was stored: the lower, the longer it has been here.
    pub since: u64,
}

/// A concurrent map from key to data region with exact byte accounting.
#[derive(Debug, Default)]
pub struct RamTier {
    regions: DashMap<RegionKey, Stored>,
    bytes: AtomicU64,
    revision: AtomicU64,
    ledger: Arc<MemoryCounter>,
}

impl RamTier {
    /// An empty tier that counts its bytes in `ledger`.
    #[must_use]
    pub fn new(ledger: Arc<MemoryCounter>) -> Self {
        Self { ledger, ..Self::default() }
    }

    /// Stores a region.
    ///
    /// # Errors
    /// [`StoreError::Duplicate`] when the key is taken; the stored region stays.
    pub fn insert(&self, key: RegionKey, region: Arc<DataRegion>) -> Result<(), StoreError> {
        self.insert_known(key, region, None)
    }

    /// Stores a region of which is known what it holds.
    ///
    /// # Errors
    /// As [`insert`](Self::insert).
    pub fn insert_known(
        &self,
        key: RegionKey,
        region: Arc<DataRegion>,
        identity: Option<RegionIdentity>,
    ) -> Result<(), StoreError> {
        match self.regions.entry(key) {
            Entry::Occupied(_) => Err(StoreError::Duplicate(key)),
            Entry::Vacant(slot) => {
                // Counted while the entry is locked, so that no removal can be counted before it.
                self.ledger.add(region.bytes());
                self.bytes.fetch_add(region.bytes(), Ordering::Relaxed);
                let since = self.revision.fetch_add(1, Ordering::Release);
                slot.insert(Stored { region, identity, since });
                Ok(())
            }
        }
    }

    /// The region stored under `key`.
    #[must_use]
    pub fn get(&self, key: RegionKey) -> Option<Arc<DataRegion>> {
        self.regions.get(&key).map(|stored| Arc::clone(&stored.region))
    }

    /// What is known of what the region under `key` holds.
    #[must_use]
    pub fn identity(&self, key: RegionKey) -> Option<RegionIdentity> {
        self.regions.get(&key).and_then(|stored| stored.identity)
    }

    /// Takes a region out; its memory is freed when the last reader lets go.
    pub fn remove(&self, key: RegionKey) -> Option<Arc<DataRegion>> {
        let (_, Stored { region, .. }) = self.regions.remove(&key)?;
        self.ledger.subtract(region.bytes());
        self.bytes.fetch_sub(region.bytes(), Ordering::Relaxed);
        self.revision.fetch_add(1, Ordering::Release);
        Some(region)
    }

    /// The keys of what is held, in any order.
    #[must_use]
    pub fn keys(&self) -> Vec<RegionKey> {
        self.regions.iter().map(|stored| *stored.key()).collect()
    }

    /// What is held, in any order.
    #[must_use]
    pub fn held(&self) -> Vec<RamRegion> {
        let held = self.regions.iter().map(|stored| {
            let Stored { region, since, .. } = stored.value();
            RamRegion { key: *stored.key(), bytes: region.bytes(), since: *since }
        });
        held.collect()
    }

    /// The bytes of the region under `key`; none where there is none.
    #[must_use]
    pub fn bytes(&self, key: RegionKey) -> Option<u64> {
        self.regions.get(&key).map(|stored| stored.region.bytes())
    }

    /// Regions ever inserted and removed: what was known of the tier when it was the same number is still so.
    #[must_use]
    pub fn changes(&self) -> u64 {
        self.revision.load(Ordering::Acquire)
    }

    /// Bytes held now; the ledger may count others' as well.
    #[must_use]
    pub fn held_bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Regions held now.
    #[must_use]
    pub fn len(&self) -> usize {
        self.regions.len()
    }

    /// Whether nothing is held.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.regions.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Raster;
    use proptest::prelude::*;
    use std::collections::HashMap;

    fn mask(bytes: u32) -> Arc<DataRegion> {
        Arc::new(DataRegion::Mask(Raster::filled(bytes, 1, 1, 0).unwrap()))
    }

    #[test]
    fn a_key_is_written_once() {
        let ledger = Arc::new(MemoryCounter::default());
        let tier = RamTier::new(Arc::clone(&ledger));
        let key = RegionKey([1; 16]);
        tier.insert(key, mask(10)).unwrap();
        assert_eq!(tier.insert(key, mask(20)), Err(StoreError::Duplicate(key)));
        assert_eq!(ledger.held_bytes(), 10);
    }

    proptest! {
        /// Against a plain map: the same answers, and the byte count is the sum of what is held.
        #[test]
        fn behaves_like_a_map(steps in prop::collection::vec((0u8..8, 1u32..50, any::<bool>()), 1..200)) {
            let ledger = Arc::new(MemoryCounter::default());
            let tier = RamTier::new(Arc::clone(&ledger));
            let mut model: HashMap<u8, u32> = HashMap::new();
            let mut peak = 0;
            for (name, bytes, insert) in steps {
                let key = RegionKey([name; 16]);
                if insert {
                    let taken = model.contains_key(&name);
                    prop_assert_eq!(tier.insert(key, mask(bytes)).is_err(), taken);
                    model.entry(name).or_insert(bytes);
                } else {
                    prop_assert_eq!(tier.remove(key).map(|r| r.bytes()), model.remove(&name).map(u64::from));
                }
                let held: u64 = model.values().map(|b| u64::from(*b)).sum();
                peak = peak.max(held);
                prop_assert_eq!(ledger.held_bytes(), held);
                prop_assert_eq!(tier.held_bytes(), held);
                prop_assert_eq!(ledger.peak_bytes(), peak);
                prop_assert_eq!(tier.len(), model.len());
                let mut keys = tier.keys();
                keys.sort_unstable();
                let mut expected: Vec<RegionKey> = model.keys().map(|name| RegionKey([*name; 16])).collect();
                expected.sort_unstable();
                prop_assert_eq!(keys, expected);
            }
        }
    }
}
