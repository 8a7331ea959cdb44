//! Tier stack under RAM, with a storage actor for each tier.
//!
//! A key identifies one content within a study. Stored names outlive a study, and several processes may share a folder. Keys
//! are therefore hashed into names in the namespace of this process or of all workers of one manager.
//!
//! Spilled regions leave memory and are promoted when a task requests them. The spilled copy stays while the region has
//! readers, so that it is written only once. The storage actor decides what moves, and when.

mod free_space;
mod placement;
mod tier_actors;

use free_space::FreeSpace;
use parking_lot::Mutex;
use placement::PlacementReport;
use pleach_regions::{DataRegion, RegionKey};
use pleach_storage::{
    LevelId, LevelStats, PlacedAt, PlacementHints, Prefetcher, RetentionValue, SpillStats, TierError,
    TierStack,
};
use pleach_workflow::TierKind;
use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tier_actors::TierActors;

/// Bytes that may wait to be written without being counted as held. 64 MiB: one third of the memory a process may use beyond
/// its admitted bytes.
const MAX_WRITING_BYTES: u64 = 64 << 20;

/// Divisor of the fastest tier's capacity for prefetched regions. Regions that were placed there keep the rest.
const AHEAD_PART: u64 = 4;

#[derive(Debug, Default)]
struct Counters {
    dropped: [AtomicU64; 2],
    demoted: [AtomicU64; 2],
    promoted: [AtomicU64; 2],
    shared: [AtomicU64; 2],
    lost: AtomicU64,
    refused: AtomicU64,
}

fn add(counters: &[AtomicU64; 2], bytes: u64) {
    // Relaxed: a reader of the statistics may see the count without the bytes.
    counters[0].fetch_add(1, Ordering::Relaxed);
    counters[1].fetch_add(bytes, Ordering::Relaxed);
}

#[derive(Clone, Copy, Debug)]
struct StoredKey {
    /// Key under which the region is stored.
    stored: RegionKey,
    /// Bytes of the region in memory.
    bytes: u64,
}

/// Tier stack under RAM, with a storage actor for each tier.
pub struct SpillStore {
    stack: Arc<TierStack>,
    /// `None` with a single tier.
    prefetcher: Option<Prefetcher>,
    /// Regions to prefetch from the copies of other nodes. This node has no entry for them in `retained`. Locked before `retained`
    /// and `space` where both are needed.
    prefetching: Mutex<HashSet<RegionKey>>,
    actors: Arc<TierActors>,
    free_space: FreeSpace,
    /// Namespace that is hashed with a key into the stored key.
    space: Mutex<[u8; 16]>,
    /// Regions that this node has spilled and will read again.
    retained: Mutex<BTreeMap<RegionKey, StoredKey>>,
    placement: PlacementReport,
    counters: Counters,
    writing: AtomicU64,
}

impl fmt::Debug for SpillStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SpillStore").field("stack", &self.stack).finish_non_exhaustive()
    }
}

impl SpillStore {
    /// Creates a store on these tiers.
    ///
    /// # Errors
    /// Returns an error if the system does not create the threads.
    pub fn new(stack: TierStack) -> io::Result<Self> {
        let free_space = FreeSpace::new(stack.levels());
        let actors = TierActors::new(stack.levels().iter().map(|level| level.name.as_str()))?;
        let stack = Arc::new(stack);
        let prefetcher = match stack.levels() {
            [fastest, _, ..] => {
                let most_bytes = fastest.tier.capacity_bytes() / AHEAD_PART;
                Some(Prefetcher::new(Arc::clone(&stack), most_bytes)?)
            }
            _ => None,
        };
        let (retained, counters) = (Mutex::default(), Counters::default());
        // Random until a manager is known, so that processes with a shared folder never find each other's regions.
        let space = Mutex::new(rand::random());
        let (writing, prefetching) = (AtomicU64::new(0), Mutex::default());
        let placement = PlacementReport::default();
        Ok(Self {
            stack,
            prefetcher,
            prefetching,
            actors,
            free_space,
            space,
            retained,
            placement,
            counters,
            writing,
        })
    }

    /// Sets the namespace of later writes. Only nodes with the same `manager` find them. Regions stored before are no longer
    /// found.
    pub fn set_namespace(&self, manager: u64) {
        let mut space = [0; 16];
        space[..8].copy_from_slice(&manager.to_le_bytes());
        *self.space.lock() = space;
    }

    fn stored(&self, key: RegionKey) -> RegionKey {
        let space = *self.space.lock();
        let mut hash = blake3::Hasher::new();
        hash.update(b"pleach below 1").update(&space).update(&key.0);
        let mut stored = [0; 16];
        stored.copy_from_slice(&hash.finalize().as_bytes()[..16]);
        RegionKey(stored)
    }

    fn keep_book(&self, key: RegionKey, stored: RegionKey, bytes: u64) {
        self.retained.lock().insert(key, StoredKey { stored, bytes });
    }

    /// Returns the regions moved so far.
    #[must_use]
    pub fn passed(&self) -> SpillStats {
        let Counters { dropped, demoted, promoted, shared, lost, refused } = &self.counters;
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        SpillStats {
            dropped: of(&dropped[0]),
            dropped_bytes: of(&dropped[1]),
            demoted: of(&demoted[0]),
            demoted_bytes: of(&demoted[1]),
            promoted: of(&promoted[0]),
            promoted_bytes: of(&promoted[1]),
            shared: of(&shared[0]),
            shared_bytes: of(&shared[1]),
            lost: of(lost),
            refused: of(refused),
        }
    }

    /// Returns contents and operations of each tier.
    #[must_use]
    pub fn counts(&self) -> Vec<LevelStats> {
        self.stack.counts()
    }

    /// Returns the number of spilled regions that will be read again.
    #[must_use]
    pub fn len(&self) -> usize {
        self.retained.lock().len()
    }

    /// Returns whether no spilled region will be read again.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.retained.lock().is_empty()
    }

    /// Returns the free bytes of the tiers, those of a shared tier as last known.
    #[must_use]
    pub fn free_bytes(&self) -> u64 {
        self.free_space.bytes(&self.actors)
    }

    /// Returns the bytes of a spilled region in memory. `None` if it is not stored.
    pub(crate) fn bytes(&self, key: RegionKey) -> Option<u64> {
        self.retained.lock().get(&key).map(|kept| kept.bytes)
    }

    /// Waits until all requests have finished.
    pub fn settle(&self) {
        self.actors.settle();
        if let Some(prefetcher) = &self.prefetcher {
            prefetcher.settle();
        }
    }

    /// Writes a region that will be read again, to the preferred kind of tier or a slower one. Blocks on the disk. Returns
    /// whether the region is stored.
    pub(crate) fn write(&self, key: RegionKey, region: &Arc<DataRegion>, wished: Option<TierKind>) -> bool {
        // Never evicted: recomputing it would require a notice to its readers.
        let worth = RetentionValue { seconds: f64::INFINITY, durable: false };
        let wishes = PlacementHints { first: self.first(wished), pin: false };
        let store = |stored| self.stack.store_with(stored, region, worth, wishes);
        self.write_with(key, region, &self.counters.demoted, store)
    }

    /// Returns the fastest level that is not faster than the preferred kind.
    fn first(&self, wished: Option<TierKind>) -> LevelId {
        let Some(wished) = wished else { return LevelId::default() };
        let kinds = TierKind::ALL.iter().skip_while(|kind| **kind != wished);
        let place = |kind: &TierKind| self.stack.levels().iter().position(|level| level.name == kind.name());
        LevelId(kinds.filter_map(place).next().unwrap_or_default())
    }

    /// Returns whether other nodes see any of the tiers.
    #[must_use]
    pub fn is_shared(&self) -> bool {
        self.stack.levels().iter().any(|level| level.shared)
    }

    /// Writes a region to a tier that all nodes share. Blocks on the tier.
    pub(crate) fn share(&self, key: RegionKey, region: &Arc<DataRegion>) -> bool {
        let write = |stored| self.stack.share(stored, region);
        self.write_with(key, region, &self.counters.shared, write)
    }

    /// Reads a region shared by another node. Blocks on the tier.
    pub(crate) fn get_shared(&self, key: RegionKey) -> Option<Arc<DataRegion>> {
        let stored = self.stored(key);
        let (region, _) = self.stack.get(stored).ok().flatten()?;
        // The entry makes a later release remove the copy that another node has written.
        self.keep_book(key, stored, region.bytes());
        add(&self.counters.promoted, region.bytes());
        Some(region)
    }

    /// Writes an evictable region that can be recomputed in `seconds`. Blocks on the disk.
    pub(crate) fn write_evictable(&self, key: RegionKey, region: &Arc<DataRegion>, seconds: f64) -> bool {
        let worth = RetentionValue { seconds, durable: false };
        self.write_with(key, region, &self.counters.demoted, |stored| self.stack.store(stored, region, worth))
    }

    fn write_with(
        &self,
        key: RegionKey,
        region: &DataRegion,
        counter: &[AtomicU64; 2],
        write: impl FnOnce(RegionKey) -> Result<PlacedAt, TierError>,
    ) -> bool {
        let stored = self.stored(key);
        // The tier counts its own write errors.
        let is_written = write(stored).is_ok();
        if is_written {
            // Only after the write, because requests read any region with an entry.
            self.keep_book(key, stored, region.bytes());
            add(counter, region.bytes());
        } else {
            self.counters.refused.fetch_add(1, Ordering::Relaxed);
        }
        is_written
    }

    /// Reserves uncounted bytes for a write. Returns `false` if the limit would be exceeded.
    pub(crate) fn begin_writing(&self, bytes: u64) -> bool {
        // Relaxed: only the sum counts, and no other memory depends on it.
        let add = |writing: u64| Some(writing + bytes).filter(|all| *all <= MAX_WRITING_BYTES);
        self.writing.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add).is_ok()
    }

    pub(crate) fn end_writing(&self, bytes: u64) {
        self.writing.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Reads a region. Blocks on the disk. Returns `None` if the region is missing or corrupt, and removes its entry.
    pub(crate) fn get(&self, key: RegionKey) -> Option<Arc<DataRegion>> {
        // The lock ends with this statement: a slow disk must not block lookups of other regions.
        let stored = self.retained.lock().get(&key)?.stored;
        // The tier counts its own read errors.
        match self.stack.get(stored) {
            Ok(Some((region, _))) => {
                add(&self.counters.promoted, region.bytes());
                Some(region)
            }
            Ok(None) | Err(_) => {
                self.counters.lost.fetch_add(1, Ordering::Relaxed);
                self.retained.lock().remove(&key);
                None
            }
        }
    }

    /// Promotes regions from slower tiers to the fastest one for upcoming reads.
    pub(crate) fn prefetch(&self, keys: impl Iterator<Item = RegionKey>) {
        let Some(prefetcher) = &self.prefetcher else { return };
        let keys: Vec<RegionKey> = keys.collect();
        self.prefetching.lock().extend(keys.iter().filter(|key| self.bytes(**key).is_none()));
        // Never evicted, as in `write`: its readers would not learn of the loss.
        let worth = RetentionValue { seconds: f64::INFINITY, durable: false };
        prefetcher.prefetch(keys.into_iter().map(|key| (self.stored(key), worth)));
    }

    /// Returns whether a region may be stored: written by this node, or being prefetched.
    pub(crate) fn may_have(&self, key: RegionKey) -> bool {
        self.bytes(key).is_some() || self.prefetching.lock().contains(&key)
    }

    /// Removes an unreferenced region. Blocks on the disk. A region whose removal fails becomes the first to be evicted.
    pub(crate) fn remove(&self, key: RegionKey) {
        let kept = self.retained.lock().remove(&key).map(|kept| kept.stored);
        // Cleared in any case, because a prefetched region gets an entry at its first read.
        let ahead = self.prefetching.lock().remove(&key).then(|| self.stored(key));
        if let Some(stored) = kept.or(ahead) {
            _ = self.stack.remove(stored);
        }
    }

    /// Counts a dropped region.
    pub(crate) fn dropped(&self, bytes: u64) {
        add(&self.counters.dropped, bytes);
    }
}
