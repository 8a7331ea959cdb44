//! Insertion into a level of a stack, and eviction from it.
//!
//! The caller has claimed the region to insert. Eviction claims only unclaimed regions, so no thread waits while it holds a
//! claim.

use super::stats::count;
use super::{Claim, LevelId, PlacedAt, TierStack, WriteMode};
use crate::{Inserted, TierError};
use pleach_regions::{DataRegion, RegionKey};
use std::sync::Arc;

impl TierStack {
    /// Stores a region in the first level from `first` on that `may` accepts and that has space.
    pub(super) fn insert_from(
        &self,
        first: usize,
        key: RegionKey,
        region: &Arc<DataRegion>,
        may: impl Fn(usize) -> bool,
    ) -> Result<PlacedAt, TierError> {
        let (mut full, mut failed) = (None, None);
        for id in (first..self.levels.len()).filter(|id| may(*id)) {
            match self.insert_in(id, key, region) {
                Ok(inserted) => return Ok(PlacedAt { level: LevelId(id), inserted }),
                Err(error) if error.is_lack_of_room() => full = Some(error),
                Err(error) => {
                    count(&self.counted[id].errors);
                    failed = Some(error);
                }
            }
        }
        let nowhere = TierError::NoSuchLevel { key, property: "durable" };
        Err(full.or(failed).unwrap_or(nowhere))
    }

    /// Stores a region in a level, and evicts as long as each attempt frees space.
    pub(super) fn insert_in(
        &self,
        id: usize,
        key: RegionKey,
        region: &Arc<DataRegion>,
    ) -> Result<Inserted, TierError> {
        let tier = &self.levels[id].tier;
        let inserted = loop {
            let error = match tier.insert(key, region) {
                Ok(inserted) => break inserted,
                Err(error) => error,
            };
            // Other threads may take the space that eviction frees, so the insertion is repeated. A region above the
            // capacity must not empty the level.
            let Some(needed_bytes) = error.needed_bytes() else { return Err(error) };
            if needed_bytes > tier.capacity_bytes() || !self.make_room(id, needed_bytes) {
                return Err(error);
            }
        };
        // Regions that other nodes stored in a shared level must not be moved from here.
        if inserted == Inserted::New || !self.levels[id].shared {
            self.books.lock().touch(id, key);
        }
        if inserted == Inserted::New {
            count(&self.counted[id].inserted);
            if self.levels[id].write == WriteMode::Through {
                // If the level below has no space now, eviction demotes or drops the region later.
                let _ = self.insert_from(id + 1, key, region, |_| true);
            }
        }
        Ok(inserted)
    }

    /// Evicts until `needed_bytes` are free. Returns whether any region was evicted.
    fn make_room(&self, id: usize, needed_bytes: u64) -> bool {
        let (mut made, mut pinned_move) = (false, true);
        loop {
            let victim = self.books.lock().claim_victim(id, pinned_move);
            let Some((key, about)) = victim else { return made };
            let claim = Claim { stack: self, key };
            let is_pinned = about.is_pinned();
            match self.evict_or_drop(id, key, is_pinned, about.durable) {
                Ok(true) => made = true,
                // Other pinned regions may be smaller, but trying up to a million of them takes too long.
                Ok(false) => pinned_move = false,
                Err(_) => {
                    count(&self.counted[id].errors);
                    return made;
                }
            }
            // Released before the tier is queried: other threads may wait for the region.
            drop(claim);
            if self.levels[id].tier.free_bytes() >= needed_bytes {
                return made;
            }
        }
    }

    /// Evicts a claimed region from a level: demotes it if possible, and otherwise drops it if it is not pinned. Returns
    /// false if the region stays.
    fn evict_or_drop(
        &self,
        id: usize,
        key: RegionKey,
        is_pinned: bool,
        durable: bool,
    ) -> Result<bool, TierError> {
        let (tier, counted) = (&self.levels[id].tier, &self.counted[id]);
        let may_hold = |below: usize| !durable || self.is_durable(below);
        let mut is_below = (id + 1..self.levels.len()).any(|below| self.holds(below, key) && may_hold(below));
        if !is_below && id + 1 < self.levels.len() {
            is_below = match tier.get(key) {
                Ok(Some(region)) => self.insert_from(id + 1, key, &region, may_hold).is_ok(),
                // Counts as evicted: the space of the missing region is free.
                Ok(None) => {
                    self.books.lock().forget(id, key);
                    return Ok(true);
                }
                Err(TierError::Lost { .. }) => {
                    count(&counted.lost);
                    self.books.lock().forget(id, key);
                    return Ok(true);
                }
                Err(error) if is_pinned => return Err(error),
                // A region that can be recreated is dropped even if it cannot be read.
                Err(_) => false,
            };
        }
        if is_pinned && !is_below {
            return Ok(false);
        }
        // Any copy below exists by now, so no reader misses the region.
        tier.remove(key)?;
        self.books.lock().evict(id, key);
        count(if is_below { &counted.spilled } else { &counted.evicted });
        Ok(true)
    }

    /// Returns whether a level has a region. Other nodes may have removed it from a shared level.
    fn holds(&self, id: usize, key: RegionKey) -> bool {
        let level = &self.levels[id];
        self.books.lock().contains(id, key) && (!level.shared || level.tier.contains(key).unwrap_or(false))
    }
}
