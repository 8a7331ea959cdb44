//! Stack as a single tier: its content cannot be recreated and is never dropped.

use super::{RetentionValue, TierStack};
use crate::{Durability, Inserted, Tier, TierError};
use pleach_regions::{DataRegion, RegionKey};
use std::collections::BTreeSet;
use std::sync::Arc;

impl Tier for TierStack {
    fn insert(&self, key: RegionKey, region: &Arc<DataRegion>) -> Result<Inserted, TierError> {
        // Asks the levels first: the index does not list regions that a shared level held before.
        if Self::contains(self, key) {
            return Ok(Inserted::AlreadyPresent);
        }
        let worth = RetentionValue { seconds: f64::INFINITY, durable: false };
        self.store(key, region, worth).map(|placed| placed.inserted)
    }

    fn get(&self, key: RegionKey) -> Result<Option<Arc<DataRegion>>, TierError> {
        Ok(Self::get(self, key)?.map(|(region, _)| region))
    }

    fn remove(&self, key: RegionKey) -> Result<bool, TierError> {
        Self::remove(self, key)
    }

    fn contains(&self, key: RegionKey) -> Result<bool, TierError> {
        Ok(Self::contains(self, key))
    }

    fn list(&self) -> Result<Vec<RegionKey>, TierError> {
        // Several levels may have a region, and callers expect each key once, in ascending order.
        let mut keys = BTreeSet::new();
        for level in self.levels() {
            keys.extend(level.tier.list()?);
        }
        Ok(keys.into_iter().collect())
    }

    fn held_bytes(&self) -> u64 {
        self.levels().iter().map(|level| level.tier.held_bytes()).sum()
    }

    fn capacity_bytes(&self) -> u64 {
        self.levels().iter().map(|level| level.tier.capacity_bytes()).fold(0, u64::saturating_add)
    }

    fn free_bytes(&self) -> u64 {
        Self::free_bytes(self)
    }

    /// Returns the durability of the least durable level.
    fn durability(&self) -> Durability {
        let all = self.levels().iter().map(|level| level.tier.durability());
        all.min().unwrap_or(Durability::Process)
    }
}
