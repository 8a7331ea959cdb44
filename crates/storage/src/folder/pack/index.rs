//! Which packed regions there are and where, and which are not there any more: the records of all files, in any order.
//!
//! A region that is copied keeps its id, so that one stone buries it and its copies, those too that are found later. A stone is
//! needed as long as a record that it buries lies in another file than it does.
//!
//! Nothing here touches a file.

use super::record::HEADER_BYTES;
use crate::folder::layout::SegmentName;
use pleach_regions::RegionKey;
use std::collections::{BTreeMap, HashMap};

/// A stone is written twice, since damage to one header must not bring a region back.
pub(super) const STONE_BYTES: u64 = 2 * HEADER_BYTES as u64;

/// Where the record of a region is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PackLocation {
    pub(super) segment: SegmentName,
    pub(super) offset: u32,
    pub(super) body_bytes: u32,
    pub(super) id: u64,
}

impl PackLocation {
    pub(super) fn record_bytes(&self) -> u64 {
        HEADER_BYTES as u64 + u64::from(self.body_bytes)
    }
}

/// What of a file is needed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct LiveUsage {
    /// Regions in it, and the bytes of their records.
    pub(super) live: u32,
    pub(super) live_bytes: u64,
    /// Stones in it that bury what lies in other files.
    pub(super) stones: u32,
}

impl LiveUsage {
    pub(super) fn is_nothing(&self) -> bool {
        self.live == 0 && self.stones == 0
    }

    pub(super) fn bytes(&self) -> u64 {
        self.live_bytes + u64::from(self.stones) * STONE_BYTES
    }
}

/// A region that is buried: where stones say so, and where records of it still are.
#[derive(Debug, Default)]
struct TombstoneEntry {
    stones: Vec<SegmentName>,
    records: Vec<SegmentName>,
}

impl TombstoneEntry {
    fn needs(&self, stone: SegmentName) -> bool {
        self.records.iter().any(|record| *record != stone)
    }
}

#[derive(Debug, Default)]
pub(super) struct Index {
    regions: HashMap<RegionKey, PackLocation>,
    /// Further records of the same regions: two processes have stored one at a time, or it is being copied.
    others: HashMap<RegionKey, Vec<PackLocation>>,
    graves: HashMap<(RegionKey, u64), TombstoneEntry>,
    needed: BTreeMap<SegmentName, LiveUsage>,
}

impl Index {
    pub(super) fn place(&self, key: RegionKey) -> Option<PackLocation> {
        self.regions.get(&key).copied()
    }

    pub(super) fn contains(&self, key: RegionKey) -> bool {
        self.regions.contains_key(&key)
    }

    /// Every record of a region.
    pub(super) fn places(&self, key: RegionKey) -> Vec<PackLocation> {
        let others = self.others.get(&key).into_iter().flatten();
        self.regions.get(&key).into_iter().chain(others).copied().collect()
    }

    pub(super) fn regions(&self) -> impl Iterator<Item = (RegionKey, PackLocation)> {
        self.regions.iter().map(|(key, place)| (*key, *place))
    }

    pub(super) fn needed(&self, segment: SegmentName) -> LiveUsage {
        self.needed.get(&segment).copied().unwrap_or_default()
    }

    /// All regions with a record in a file, in the order in which they lie there.
    pub(super) fn regions_in(&self, segment: SegmentName) -> Vec<(RegionKey, PackLocation)> {
        let others = self.others.iter().flat_map(|(key, places)| places.iter().map(|place| (*key, *place)));
        let mut all: Vec<_> =
            self.regions().chain(others).filter(|(_, place)| place.segment == segment).collect();
        all.sort_unstable_by_key(|(_, place)| place.offset);
        all
    }

    /// What the stones of a file bury that lies in others.
    pub(super) fn tombstones_in(&self, segment: SegmentName) -> Vec<(RegionKey, u64)> {
        let is_needed = |grave: &TombstoneEntry| grave.stones.contains(&segment) && grave.needs(segment);
        self.graves.iter().filter(|(_, grave)| is_needed(grave)).map(|(name, _)| *name).collect()
    }

    /// Enters a region's record; one that was buried stays so.
    pub(super) fn enter(&mut self, key: RegionKey, place: PackLocation) {
        if self.graves.contains_key(&(key, place.id)) {
            return self.change(key, place.id, |grave| grave.records.push(place.segment));
        }
        let needed = self.needed.entry(place.segment).or_default();
        needed.live += 1;
        needed.live_bytes += place.record_bytes();
        match self.regions.get(&key) {
            None => drop(self.regions.insert(key, place)),
            Some(_) => self.others.entry(key).or_default().push(place),
        }
    }

    /// Enters a stone.
    pub(super) fn bury(&mut self, key: RegionKey, id: u64, stone: SegmentName) {
        for place in self.places(key).into_iter().filter(|place| place.id == id) {
            self.strike(key, place);
            self.graves.entry((key, id)).or_default().records.push(place.segment);
        }
        self.graves.entry((key, id)).or_default();
        self.change(key, id, |grave| {
            if !grave.stones.contains(&stone) {
                grave.stones.push(stone);
            }
        });
    }

    /// Takes one record out, of which nothing has to be remembered.
    pub(super) fn strike(&mut self, key: RegionKey, place: PackLocation) {
        let places = self.places(key);
        if !places.contains(&place) {
            return;
        }
        let needed = self.needed.entry(place.segment).or_default();
        needed.live -= 1;
        needed.live_bytes -= place.record_bytes();
        let mut left = places.into_iter().filter(|other| *other != place);
        match left.next() {
            None => drop(self.regions.remove(&key)),
            Some(first) => drop(self.regions.insert(key, first)),
        }
        let others: Vec<PackLocation> = left.collect();
        if others.is_empty() {
            self.others.remove(&key);
        } else {
            self.others.insert(key, others);
        }
    }

    /// Files are gone, with all that was in them.
    pub(super) fn forget(&mut self, segment: SegmentName) {
        if self.needed(segment).live > 0 {
            self.regions_in(segment).into_iter().for_each(|(key, place)| self.strike(key, place));
        }
        let is_of =
            |grave: &TombstoneEntry| grave.stones.contains(&segment) || grave.records.contains(&segment);
        let touched: Vec<_> =
            self.graves.iter().filter(|(_, grave)| is_of(grave)).map(|(name, _)| *name).collect();
        for (key, id) in touched {
            self.change(key, id, |grave| {
                grave.stones.retain(|stone| *stone != segment);
                grave.records.retain(|record| *record != segment);
            });
        }
        self.needed.remove(&segment);
    }

    /// Changes a grave, and which stones are needed for it.
    fn change(&mut self, key: RegionKey, id: u64, change: impl FnOnce(&mut TombstoneEntry)) {
        let Some(grave) = self.graves.get_mut(&(key, id)) else { return };
        let needed = |grave: &TombstoneEntry| -> Vec<SegmentName> {
            grave.stones.iter().copied().filter(|stone| grave.needs(*stone)).collect()
        };
        let before = needed(grave);
        change(grave);
        let after = needed(grave);
        if grave.stones.is_empty() && grave.records.is_empty() {
            self.graves.remove(&(key, id));
        }
        before.into_iter().for_each(|stone| self.needed.entry(stone).or_default().stones -= 1);
        after.into_iter().for_each(|stone| self.needed.entry(stone).or_default().stones += 1);
    }
}

#[cfg(test)]
mod tests;
