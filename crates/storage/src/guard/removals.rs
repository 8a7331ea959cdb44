//! Removals that an unavailable tier has missed.

use crate::Tier;
use parking_lot::Mutex;
use pleach_regions::RegionKey;
use std::collections::BTreeMap;

/// 1,000,000 keys, some 50 MB: more regions than a worker stores in a study. Later removals are left to `pleach storage gc`.
const MAX_KEYS: usize = 1_000_000;

/// Keys to remove, and whether the removal is under way.
#[derive(Default)]
pub(super) struct Removals(Mutex<BTreeMap<RegionKey, bool>>);

impl Removals {
    /// Adds a missed removal.
    pub(super) fn add(&self, key: RegionKey) {
        let mut keys = self.0.lock();
        if keys.len() < MAX_KEYS {
            keys.insert(key, false);
        }
    }

    /// Cancels a missed removal, because the region is stored again. Returns whether there was one, and `None` if it is under way.
    pub(super) fn cancel(&self, key: RegionKey) -> Option<bool> {
        let mut keys = self.0.lock();
        match keys.get(&key) {
            Some(true) => None,
            Some(false) => Some(keys.remove(&key).is_some()),
            None => Some(false),
        }
    }

    /// Applies all removals, until one fails. Failed ones stay for the next time.
    pub(super) fn apply(&self, tier: &dyn Tier) {
        loop {
            let mut keys = self.0.lock();
            let next = keys.iter_mut().find(|(_, is_under_way)| !**is_under_way);
            let Some((&key, is_under_way)) = next else { return };
            *is_under_way = true;
            drop(keys);
            let removed = tier.remove(key).is_ok();
            let mut keys = self.0.lock();
            keys.remove(&key);
            if !removed {
                keys.insert(key, false);
                return;
            }
        }
    }
}
