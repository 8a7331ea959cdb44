//! RAM tier: data regions behind `Arc`s, by key, with exact byte accounting.
//!
//! The runtime decides what to insert and what to remove.

use crate::{DataRegion, MemoryCounter, RegionIdentity, RegionKey};
use dashmap::{DashMap, Entry};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use thiserror::Error;

/// Error of an insertion.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum StoreError {
    /// The key is taken. Regions are immutable, so a key is written once.
    #[error("region {0} is already stored")]
    Duplicate(RegionKey),
}

#[derive(Debug)]
struct StoredRegion {
    region: Arc<DataRegion>,
    identity: Option<RegionIdentity>,
    /// The tier's revision when it was stored.
    since: u64,
}

/// A region in the tier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RamRegion {
    /// Its key.
    pub key: RegionKey,
    /// Its bytes.
    pub bytes: u64,
    /// The tier's revision when it was stored: lower is older.
    pub since: u64,
}

/// A concurrent map from key to data region with exact byte accounting.
#[derive(Debug, Default)]
pub struct RamTier {
    regions: DashMap<RegionKey, StoredRegion>,
    /// Identities of regions that have been moved to a tier below.
    moved: DashMap<RegionKey, RegionIdentity>,
    bytes: AtomicU64,
    revision: AtomicU64,
    ledger: Arc<MemoryCounter>,
}

impl RamTier {
    /// Creates an empty tier that counts its bytes in `ledger`.
    #[must_use]
    pub fn new(ledger: Arc<MemoryCounter>) -> Self {
        Self { ledger, ..Self::default() }
    }

    /// Stores a region.
    ///
    /// # Errors
    /// Returns [`StoreError::Duplicate`] if the key is taken. The stored region stays.
    pub fn insert(&self, key: RegionKey, region: Arc<DataRegion>) -> Result<(), StoreError> {
        self.insert_known(key, region, None)
    }

    /// Stores a region with a known identity. A region that has been moved to a tier below keeps the identity that it had.
    ///
    /// # Errors
    /// Same as [`insert`](Self::insert).
    pub fn insert_known(
        &self,
        key: RegionKey,
        region: Arc<DataRegion>,
        identity: Option<RegionIdentity>,
    ) -> Result<(), StoreError> {
        match self.regions.entry(key) {
            Entry::Occupied(_) => Err(StoreError::Duplicate(key)),
            Entry::Vacant(slot) => {
                // Counts while the entry is locked, so that no removal is counted before its insertion.
                self.ledger.add(region.bytes());
                self.bytes.fetch_add(region.bytes(), Ordering::Relaxed);
                // A reader of the new number waits for the lock of this entry, and then finds the region.
                let since = self.revision.fetch_add(1, Ordering::Release);
                let identity = self.moved.remove(&key).map(|(_, identity)| identity).or(identity);
                slot.insert(StoredRegion { region, identity, since });
                Ok(())
            }
        }
    }

    /// Returns the region stored under `key`.
    #[must_use]
    pub fn get(&self, key: RegionKey) -> Option<Arc<DataRegion>> {
        self.regions.get(&key).map(|stored| Arc::clone(&stored.region))
    }

    /// Returns the identity of the region under `key`, here or moved to a tier below, if known.
    #[must_use]
    pub fn identity(&self, key: RegionKey) -> Option<RegionIdentity> {
        match self.regions.get(&key) {
            Some(stored) => stored.identity,
            None => self.moved.get(&key).map(|identity| *identity),
        }
    }

    /// Removes a region, and forgets its identity. Its memory is freed when the last reader drops it.
    pub fn remove(&self, key: RegionKey) -> Option<Arc<DataRegion>> {
        let removed = self.regions.remove(&key);
        // Also of a region that is not here. Last, because `move_down` adds the identity while it locks the region.
        self.moved.remove(&key);
        removed.map(|(_, stored)| self.count_removed(key, stored))
    }

    /// Removes a region that stays in a tier below. Its identity stays known until [`remove`](Self::remove).
    pub fn move_down(&self, key: RegionKey) -> Option<Arc<DataRegion>> {
        let Entry::Occupied(stored) = self.regions.entry(key) else { return None };
        if let Some(identity) = stored.get().identity {
            self.moved.insert(key, identity);
        }
        let stored = stored.remove();
        Some(self.count_removed(key, stored))
    }

    fn count_removed(&self, key: RegionKey, StoredRegion { region, .. }: StoredRegion) -> Arc<DataRegion> {
        self.ledger.subtract(region.bytes());
        let before = self.bytes.fetch_sub(region.bytes(), Ordering::Relaxed);
        assert!(before >= region.bytes(), "{key} leaves the RAM tier, which counted {before} bytes");
        // Release, after the removal: a reader that loads the new number with Acquire finds the region gone.
        self.revision.fetch_add(1, Ordering::Release);
        region
    }

    /// Returns all keys in any order.
    #[must_use]
    pub fn keys(&self) -> Vec<RegionKey> {
        self.regions.iter().map(|stored| *stored.key()).collect()
    }

    /// Returns all regions in any order.
    #[must_use]
    pub fn regions(&self) -> Vec<RamRegion> {
        let held = self.regions.iter().map(|stored| {
            let StoredRegion { region, since, .. } = stored.value();
            RamRegion { key: *stored.key(), bytes: region.bytes(), since: *since }
        });
        held.collect()
    }

    /// Returns the bytes of the region under `key`. `None` if there is no such region.
    #[must_use]
    pub fn bytes(&self, key: RegionKey) -> Option<u64> {
        self.regions.get(&key).map(|stored| stored.region.bytes())
    }

    /// Returns the number of insertions and removals so far. An unchanged number means unchanged content.
    #[must_use]
    pub fn changes(&self) -> u64 {
        self.revision.load(Ordering::Acquire)
    }

    /// Returns the bytes held now. The ledger may count those of other owners as well.
    #[must_use]
    pub fn held_bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Returns the number of regions.
    #[must_use]
    pub fn len(&self) -> usize {
        self.regions.len()
    }

    /// Returns whether the tier is empty.
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

    /// A region's identity stays known in the tier below and after its return, until the region is removed from either.
    #[test]
    fn a_moved_region_keeps_its_identity() {
        let tier = RamTier::default();
        let (key, identity) = (RegionKey([1; 16]), RegionIdentity([2; 32]));
        for back in [true, false] {
            tier.insert_known(key, mask(10), Some(identity)).unwrap();
            assert_eq!(tier.move_down(key).map(|region| region.bytes()), Some(10));
            assert!(tier.move_down(key).is_none());
            assert_eq!((tier.len(), tier.held_bytes(), tier.identity(key)), (0, 0, Some(identity)));
            if back {
                // A tier does not know identities.
                tier.insert(key, mask(10)).unwrap();
                assert_eq!(tier.identity(key), Some(identity));
            }
            assert_eq!(tier.remove(key).is_some(), back);
            assert_eq!(tier.identity(key), None);
            tier.insert(key, mask(10)).unwrap();
            assert_eq!(tier.identity(key), None);
            tier.remove(key);
        }
    }

    proptest! {
        /// Compares against a plain map: same answers, and the byte count is the sum of the stored regions.
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
