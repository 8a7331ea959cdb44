//! How a stack puts a region into a level, and makes room there.
//!
//! Whoever calls has claimed the region; what makes room is claimed here, and only what nobody has claimed, so that
//! nobody waits while holding a claim.

use super::stats::count;
use super::{Claim, LevelId, PlacedAt, TierStack, WriteMode};
use crate::{Inserted, TierError};
use pleach_regions::{DataRegion, RegionKey};
use std::sync::Arc;

impl TierStack {
    /// Puts a region into the first level from `first` on that `may` have it and has room.
    pub(super) fn place(
        &self,
        first: usize,
        key: RegionKey,
        region: &Arc<DataRegion>,
        may: impl Fn(usize) -> bool,
    ) -> Result<PlacedAt, TierError> {
        let (mut full, mut failed) = (None, None);
        for id in (first..self.levels.len()).filter(|id| may(*id)) {
            match self.put(id, key, region) {
                Ok(inserted) => return Ok(PlacedAt { level: LevelId(id), inserted }),
                Err(error) if error.is_lack_of_room() => full = Some(error),
                Err(error) => {
                    count(&self.counted[id].errors);
                    failed = Some(error);
                }
            }
        }
        let nowhere = TierError::NoSuchLevel { key, wanted: "durable" };
        Err(full.or(failed).unwrap_or(nowhere))
    }

    /// Puts a region into a level, and makes room as long as that helps.
    pub(super) fn put(
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
            let Some(needed_bytes) = error.needed_bytes() else { return Err(error) };
            if needed_bytes > tier.capacity_bytes() || !self.make_room(id, needed_bytes) {
                return Err(error);
            }
        };
        // What others have stored in a shared level is not ours to move.
        if inserted == Inserted::New || !self.levels[id].shared {
            self.books().touch(id, key);
        }
        if inserted == Inserted::New {
            count(&self.counted[id].inserted);
            if self.levels[id].write == WriteMode::Through {
                // What finds no room there now moves down when it has to, or goes.
                let _ = self.place(id + 1, key, region, |_| true);
            }
        }
        Ok(inserted)
    }

    /// Makes room for so many bytes, and says whether any has been made.
    fn make_room(&self, id: usize, needed_bytes: u64) -> bool {
        let (mut made, mut pinned_move) = (false, true);
        loop {
            let victim = self.books().claim_victim(id, pinned_move);
            let Some((key, about)) = victim else { return made };
            let claim = Claim { stack: self, key };
            let is_pinned = about.is_pinned();
            match self.let_go(id, key, is_pinned, about.durable) {
                Ok(true) => made = true,
                // Others may be smaller, but there may be a million of them.
                Ok(false) => pinned_move = false,
                Err(_) => {
                    count(&self.counted[id].errors);
                    return made;
                }
            }
            drop(claim);
            if self.levels[id].tier.free_bytes() >= needed_bytes {
                return made;
            }
        }
    }

    /// Takes a region out of a level: it is below by then, or may go. Whether it is out; one that has to stay stays.
    fn let_go(&self, id: usize, key: RegionKey, is_pinned: bool, durable: bool) -> Result<bool, TierError> {
        let (tier, counted) = (&self.levels[id].tier, &self.counted[id]);
        let may_hold = |below: usize| !durable || self.is_durable(below);
        let mut is_below = (id + 1..self.levels.len()).any(|below| self.holds(below, key) && may_hold(below));
        if !is_below && id + 1 < self.levels.len() {
            is_below = match tier.get(key) {
                Ok(Some(region)) => self.place(id + 1, key, &region, may_hold).is_ok(),
                Ok(None) => {
                    self.books().forget(id, key);
                    return Ok(true);
                }
                Err(TierError::Lost { .. }) => {
                    count(&counted.lost);
                    self.books().forget(id, key);
                    return Ok(true);
                }
                Err(error) if is_pinned => return Err(error),
                Err(_) => false,
            };
        }
        if is_pinned && !is_below {
            return Ok(false);
        }
        tier.remove(key)?;
        self.books().evict(id, key);
        count(if is_below { &counted.spilled } else { &counted.evicted });
        Ok(true)
    }

    /// Whether a level has a region; others may have removed it from a shared one.
    fn holds(&self, id: usize, key: RegionKey) -> bool {
        let level = &self.levels[id];
        self.books().contains(id, key) && (!level.shared || level.tier.contains(key).unwrap_or(false))
    }
}
