//! Tiers of regions for placement by the manager: regions that have moved since the last report, and rates of reads.
//!
//! A report has a limited number of regions, and the rest follows with the next one. Reports repeat regions that have not moved: a
//! manager that was started again has forgotten their tiers, and one that learns of an output after its demotion takes it to be in
//! memory.

use super::SpillStore;
use parking_lot::Mutex;
use pleach_dispatch::message::{MAX_REGION_TIERS, RegionTiers};
use pleach_dispatch::storage::TransferCost;
use pleach_regions::{RamTier, RegionKey};
use pleach_storage::{LevelId, ReadTime};
use pleach_workflow::TierKind;
use std::collections::BTreeSet;
use std::ops::Bound;

/// Regions to report.
#[derive(Debug, Default)]
pub(super) struct PlacementReport {
    /// Regions that have moved. `None` until the first report, so that a store without a manager records none.
    moved: Mutex<Option<BTreeSet<RegionKey>>>,
    /// The last region that was repeated.
    repeated: Mutex<Option<RegionKey>>,
}

impl SpillStore {
    /// Records that a region has left or entered memory.
    pub(crate) fn note_move(&self, key: RegionKey) {
        self.placement.moved.lock().iter_mut().for_each(|moved| _ = moved.insert(key));
    }

    /// Takes the tiers of regions that have moved since the last report, and the rates. With `repeats`, the tiers of other regions
    /// follow as far as there is room. `None` if there is nothing to report.
    pub(crate) fn take_tiers(&self, ram: &RamTier, repeats: bool) -> Option<RegionTiers> {
        let stored = self.stack.take_moved();
        let keys: Vec<RegionKey> = {
            let retained = self.retained.lock();
            let mut moved = self.placement.moved.lock();
            let moved = moved.get_or_insert_default();
            if !stored.is_empty() {
                let entries = retained.iter().filter(|(_, kept)| stored.contains(&kept.stored));
                moved.extend(entries.map(|(key, _)| *key));
            }
            if repeats {
                let room = MAX_REGION_TIERS.saturating_sub(moved.len());
                let mut last = self.placement.repeated.lock();
                let after = last.map_or(Bound::Unbounded, Bound::Excluded);
                let next = retained.range((after, Bound::Unbounded)).take(room);
                let next: Vec<RegionKey> = next.map(|(key, _)| *key).collect();
                // Begins again after the last region.
                *last = next.last().copied().filter(|_| next.len() == room);
                moved.extend(next);
            }
            let keys = moved.iter().copied().take(MAX_REGION_TIERS).collect();
            *moved = moved.iter().copied().skip(MAX_REGION_TIERS).collect();
            keys
        };
        let tier = |key: RegionKey| match ram.bytes(key) {
            Some(_) => Some((key, None)),
            None => {
                let stored = self.retained.lock().get(&key)?.stored;
                Some((key, self.kind(self.stack.fastest(stored)?)))
            }
        };
        let regions: Vec<_> = keys.into_iter().filter_map(tier).collect();
        let rates = self.rates();
        (!regions.is_empty() || repeats && !rates.is_empty()).then_some(RegionTiers { regions, rates })
    }

    /// Returns the measured times of reads by kind, as costs of transfers to memory.
    fn rates(&self) -> Vec<(TierKind, TransferCost)> {
        let measured = self.stack.read_times().into_iter().enumerate().filter_map(|(level, time)| {
            let ReadTime { latency_seconds, seconds_per_byte } = time?;
            let bytes_per_second = seconds_per_byte.recip();
            Some((self.kind(LevelId(level))?, TransferCost { bytes_per_second, latency_seconds }))
        });
        measured.collect()
    }

    /// Returns the kind of a level. `None` for memory.
    fn kind(&self, LevelId(level): LevelId) -> Option<TierKind> {
        let name = &self.stack.levels().get(level)?.name;
        TierKind::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pleach_regions::{DataRegion, Raster};
    use pleach_storage::{BoundedRam, EvictionPolicy, TierLevel, TierStack, WriteMode};
    use std::sync::Arc;

    /// A store with an SSD for 2 regions of 1,000 B over a shared tier, each of them in memory.
    fn store() -> SpillStore {
        let level = |name: &str, bytes: u64| TierLevel {
            name: name.to_owned(),
            tier: Arc::new(BoundedRam::new(Arc::default(), bytes)),
            policy: EvictionPolicy::Lru,
            write: WriteMode::Back,
            shared: false,
        };
        SpillStore::new(TierStack::new(vec![level("ssd", 2500), level("lustre", 100_000)])).expect("threads")
    }

    fn region() -> Arc<DataRegion> {
        Arc::new(DataRegion::Mask(Raster::filled(1000, 1, 1, 255).expect("a raster")))
    }

    fn key(name: u8) -> RegionKey {
        RegionKey([name; 16])
    }

    fn tiers(store: &SpillStore, ram: &RamTier, repeats: bool) -> Vec<(u8, Option<TierKind>)> {
        let report = store.take_tiers(ram, repeats).unwrap_or_default();
        report.regions.into_iter().map(|(key, tier)| (key.0[0], tier)).collect()
    }

    #[test]
    fn report_has_the_moves_between_all_tiers_and_memory() {
        let (store, ram) = (store(), RamTier::new(Arc::default()));
        assert_eq!(tiers(&store, &ram, false), []);
        assert!(store.write(key(1), &region(), None) && store.write(key(2), &region(), None));
        assert_eq!(tiers(&store, &ram, false), [(1, Some(TierKind::Ssd)), (2, Some(TierKind::Ssd))]);
        assert_eq!(tiers(&store, &ram, false), [], "nothing has moved");
        // The third one demotes the first within the stack, and no caller takes part in that.
        assert!(store.write(key(3), &region(), None));
        assert_eq!(tiers(&store, &ram, false), [(1, Some(TierKind::Lustre)), (3, Some(TierKind::Ssd))]);
        let read = store.get(key(1)).expect("it is stored");
        ram.insert(key(1), read).expect("no other content");
        store.note_move(key(1));
        assert_eq!(tiers(&store, &ram, false), [(1, None)]);
        ram.move_down(key(1));
        store.note_move(key(1));
        assert_eq!(tiers(&store, &ram, false), [(1, Some(TierKind::Lustre))]);
        store.remove(key(2));
        assert_eq!(tiers(&store, &ram, false), [], "a removed region has no tier");
        let all = [(1, Some(TierKind::Lustre)), (3, Some(TierKind::Ssd))];
        assert_eq!([tiers(&store, &ram, true), tiers(&store, &ram, true)], [all.to_vec(), all.to_vec()]);
        let rates = store.take_tiers(&ram, true).expect("a rate").rates;
        assert!(matches!(rates[..], [(TierKind::Lustre, read)] if read.seconds(1000) > 0.0), "{rates:?}");
    }

    #[test]
    fn long_lists_are_reported_in_parts() {
        let (store, ram) = (store(), RamTier::new(Arc::default()));
        let _ = store.take_tiers(&ram, false);
        let keys = |range: std::ops::Range<u32>| {
            range.map(|number| {
                let mut key = [0; 16];
                key[..4].copy_from_slice(&(number + 1).to_be_bytes());
                RegionKey(key)
            })
        };
        for key in keys(0..1500) {
            ram.insert(key, region()).expect("a new region");
            store.note_move(key);
        }
        let sizes = [0; 3].map(|_| tiers(&store, &ram, false).len());
        assert_eq!(sizes, [1024, 476, 0]);
    }
}
