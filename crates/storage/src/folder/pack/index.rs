//! Index of packed regions: locations and tombstones, built from the records of all segments in any order.
//!
//! A copied region keeps its id, so one tombstone buries the record and all copies, including copies found later. A
//! tombstone is needed while another segment holds a record that it buries.
//!
//! This module does no I/O.

use super::record::HEADER_BYTES;
use crate::folder::layout::SegmentName;
use pleach_regions::RegionKey;
use std::collections::{BTreeMap, HashMap};

/// A tombstone is written twice, since one corrupt header must not restore a region.
pub(super) const STONE_BYTES: u64 = 2 * HEADER_BYTES as u64;

/// Location of a region's record.
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

/// Needed content of a segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct LiveUsage {
    /// Number of regions in it, and the size of their records.
    pub(super) live: u32,
    pub(super) live_bytes: u64,
    /// Number of tombstones in it that bury records in other segments.
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

/// A buried region: the segments with its tombstones and those with its remaining records.
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
    /// Further records of the same regions: two processes stored one at the same time, or it is being copied.
    duplicates: HashMap<RegionKey, Vec<PackLocation>>,
    graves: HashMap<(RegionKey, u64), TombstoneEntry>,
    needed: BTreeMap<SegmentName, LiveUsage>,
}

impl Index {
    pub(super) fn location(&self, key: RegionKey) -> Option<PackLocation> {
        self.regions.get(&key).copied()
    }

    pub(super) fn contains(&self, key: RegionKey) -> bool {
        self.regions.contains_key(&key)
    }

    /// Returns all records of a region.
    pub(super) fn locations(&self, key: RegionKey) -> Vec<PackLocation> {
        let others = self.duplicates.get(&key).into_iter().flatten();
        self.regions.get(&key).into_iter().chain(others).copied().collect()
    }

    pub(super) fn regions(&self) -> impl Iterator<Item = (RegionKey, PackLocation)> {
        self.regions.iter().map(|(key, place)| (*key, *place))
    }

    pub(super) fn needed(&self, segment: SegmentName) -> LiveUsage {
        self.needed.get(&segment).copied().unwrap_or_default()
    }

    /// Returns all regions with a record in a segment, in file order.
    pub(super) fn regions_in(&self, segment: SegmentName) -> Vec<(RegionKey, PackLocation)> {
        let others =
            self.duplicates.iter().flat_map(|(key, places)| places.iter().map(|place| (*key, *place)));
        let mut all: Vec<_> =
            self.regions().chain(others).filter(|(_, place)| place.segment == segment).collect();
        all.sort_unstable_by_key(|(_, place)| place.offset);
        all
    }

    /// Returns the tombstones of a segment that bury records in other segments.
    pub(super) fn tombstones_in(&self, segment: SegmentName) -> Vec<(RegionKey, u64)> {
        let is_needed = |grave: &TombstoneEntry| grave.stones.contains(&segment) && grave.needs(segment);
        self.graves.iter().filter(|(_, grave)| is_needed(grave)).map(|(name, _)| *name).collect()
    }

    /// Adds a region's record. A buried region stays buried.
    pub(super) fn enter(&mut self, key: RegionKey, place: PackLocation) {
        if self.graves.contains_key(&(key, place.id)) {
            // The record counts as buried: its tombstone stays needed until the segment of the record is removed.
            return self.change(key, place.id, |grave| grave.records.push(place.segment));
        }
        let needed = self.needed.entry(place.segment).or_default();
        needed.live += 1;
        needed.live_bytes += place.record_bytes();
        match self.regions.get(&key) {
            None => drop(self.regions.insert(key, place)),
            Some(_) => self.duplicates.entry(key).or_default().push(place),
        }
    }

    /// Adds a tombstone.
    pub(super) fn add_tombstone(&mut self, key: RegionKey, id: u64, stone: SegmentName) {
        for place in self.locations(key).into_iter().filter(|place| place.id == id) {
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

    /// Removes one record without a tombstone.
    pub(super) fn strike(&mut self, key: RegionKey, place: PackLocation) {
        let places = self.locations(key);
        if !places.contains(&place) {
            return;
        }
        let needed = self.needed.entry(place.segment).or_default();
        let (segment, bytes) = (place.segment, place.record_bytes());
        assert!(needed.live > 0, "{key} leaves {segment:?}, which counts no region");
        assert!(needed.live_bytes >= bytes, "{key} of {bytes} bytes leaves {segment:?}: {needed:?}");
        needed.live -= 1;
        needed.live_bytes -= bytes;
        let mut left = places.into_iter().filter(|other| *other != place);
        match left.next() {
            None => drop(self.regions.remove(&key)),
            Some(first) => drop(self.regions.insert(key, first)),
        }
        let others: Vec<PackLocation> = left.collect();
        if others.is_empty() {
            self.duplicates.remove(&key);
        } else {
            self.duplicates.insert(key, others);
        }
    }

    /// Removes a deleted segment and all of its records.
    pub(super) fn forget(&mut self, segment: SegmentName) {
        // `regions_in` walks all regions, so it is skipped for a segment without live ones.
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

    /// Changes a tombstone entry and recounts the tombstones that it needs.
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
        for stone in before {
            let needed = self.needed.entry(stone).or_default();
            assert!(needed.stones > 0, "a tombstone of {key} changes in {stone:?}, which counts none");
            needed.stones -= 1;
        }
        after.into_iter().for_each(|stone| self.needed.entry(stone).or_default().stones += 1);
    }
}

#[cfg(test)]
mod tests;
