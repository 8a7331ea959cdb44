//! What lies below the memory of a node: a stack of slower tiers, and threads that wait for their disks.
//!
//! A key stands for one content within a study; what outlives it, and what others store in the same folder, has keys of its
//! own: they are stored under names that this process, or all workers of one manager, have for themselves.
//!
//! Regions that come here leave memory, and come back when they are asked for; the copy below stays until nobody will read
//! the region any more, so that it need not be written twice. What is moved, and when, the storage actor decides.

use pleach_regions::{DataRegion, RegionKey};
use pleach_storage::{
    LevelId, LevelStats, PlacedAt, PlacementHints, Prefetcher, RetentionValue, TierError, TierStack,
};
use pleach_workflow::TierKind;
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// Regions written or read at once. A disk does not become faster by more than two, and each holds a buffer of its region's
/// size; another two may be waiting for a shared tier that is slow to answer.
const THREADS: usize = 4;

/// Bytes that may wait to be written while nobody counts them as held: a third of what the process may take beyond what it
/// has admitted.
const MAX_WRITING_BYTES: u64 = 64 << 20;

/// What may be brought up before it is asked for is this part of the fastest tier: what is there was put there for a reason.
const AHEAD_PART: u64 = 4;

/// What has passed between memory and the tiers below.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SpillStats {
    /// Regions that were let go of, since they can be read again from where they came from.
    pub dropped: u64,
    /// Their bytes.
    pub dropped_bytes: u64,
    /// Regions that went below.
    pub demoted: u64,
    /// Their bytes in memory.
    pub demoted_bytes: u64,
    /// Regions that came back.
    pub promoted: u64,
    /// Their bytes in memory.
    pub promoted_bytes: u64,
    /// Regions that were shared with other nodes.
    pub shared: u64,
    /// Their bytes in memory.
    pub shared_bytes: u64,
    /// Regions that were not what they had been when they were to come back.
    pub lost: u64,
    /// Regions that could not be written.
    pub refused: u64,
}

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
    counters[0].fetch_add(1, Ordering::Relaxed);
    counters[1].fetch_add(bytes, Ordering::Relaxed);
}

#[derive(Clone, Copy, Debug)]
struct Kept {
    /// The key that it is stored under.
    stored: RegionKey,
    /// Its bytes in memory.
    bytes: u64,
}

/// See the module.
pub struct SpillStore {
    stack: Arc<TierStack>,
    /// Where there is more than one tier.
    prefetcher: Option<Prefetcher>,
    /// What was to be brought up from what other nodes have stored: it is in no book of this node.
    ahead: Mutex<HashSet<RegionKey>>,
    pool: rayon::ThreadPool,
    /// What makes keys into those that are stored.
    space: Mutex<[u8; 16]>,
    /// What this node has put there and will still read.
    kept: Mutex<HashMap<RegionKey, Kept>>,
    counters: Counters,
    writing: AtomicU64,
    /// What is yet to be done, and done.
    waits: Arc<(Mutex<usize>, Condvar)>,
}

impl fmt::Debug for SpillStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Below").field("stack", &self.stack).finish_non_exhaustive()
    }
}

impl SpillStore {
    /// These tiers.
    ///
    /// # Errors
    /// When the system gives no threads.
    pub fn new(stack: TierStack) -> io::Result<Self> {
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(THREADS)
            .thread_name(|number| format!("below-{number}"))
            .build()
            .map_err(io::Error::other)?;
        let stack = Arc::new(stack);
        let prefetcher = match stack.levels() {
            [fastest, _, ..] => {
                let most_bytes = fastest.tier.capacity_bytes() / AHEAD_PART;
                Some(Prefetcher::new(Arc::clone(&stack), most_bytes)?)
            }
            _ => None,
        };
        let (kept, counters, waits) = (Mutex::default(), Counters::default(), Arc::default());
        let space = Mutex::new(rand::random());
        let (writing, ahead) = (AtomicU64::new(0), Mutex::default());
        Ok(Self { stack, prefetcher, ahead, pool, space, kept, counters, writing, waits })
    }

    /// From now on, what this node stores is found by all that say the same; nothing of it is found by others, nor what was
    /// stored before.
    pub fn set_namespace(&self, manager: u64) {
        let mut space = [0; 16];
        space[..8].copy_from_slice(&manager.to_le_bytes());
        *self.space.lock().unwrap_or_else(PoisonError::into_inner) = space;
    }

    fn stored(&self, key: RegionKey) -> RegionKey {
        let space = *self.space.lock().unwrap_or_else(PoisonError::into_inner);
        let mut hash = blake3::Hasher::new();
        hash.update(b"pleach below 1").update(&space).update(&key.0);
        let mut stored = [0; 16];
        stored.copy_from_slice(&hash.finalize().as_bytes()[..16]);
        RegionKey(stored)
    }

    fn keep_book(&self, key: RegionKey, stored: RegionKey, bytes: u64) {
        self.kept().insert(key, Kept { stored, bytes });
    }

    /// What has passed until now.
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

    /// What each tier holds and has done.
    #[must_use]
    pub fn counts(&self) -> Vec<LevelStats> {
        self.stack.counts()
    }

    /// Regions that are here and will still be read.
    #[must_use]
    pub fn len(&self) -> usize {
        self.kept().len()
    }

    /// Whether nothing is here that will still be read.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.kept().is_empty()
    }

    /// What can still be put here.
    #[must_use]
    pub fn free_bytes(&self) -> u64 {
        self.stack.free_bytes()
    }

    /// The bytes that a region would take in memory; none if it is not here.
    pub(crate) fn bytes(&self, key: RegionKey) -> Option<u64> {
        self.kept().get(&key).map(|kept| kept.bytes)
    }

    /// Has something done on the threads that may wait for disks.
    pub(crate) fn spawn(&self, work: impl FnOnce() + Send + 'static) {
        let waits = Arc::clone(&self.waits);
        *waits.0.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        self.pool.spawn(move || {
            work();
            *waits.0.lock().unwrap_or_else(PoisonError::into_inner) -= 1;
            waits.1.notify_all();
        });
    }

    /// Waits until everything is done that was to be done.
    pub fn settle(&self) {
        let mut waiting = self.waits.0.lock().unwrap_or_else(PoisonError::into_inner);
        while *waiting > 0 {
            waiting = self.waits.1.wait(waiting).unwrap_or_else(PoisonError::into_inner);
        }
        drop(waiting);
        if let Some(prefetcher) = &self.prefetcher {
            prefetcher.settle();
        }
    }

    /// Writes a region that will be read again, to a kind of tier or a slower one if that is wished; waits for the disk. Says
    /// whether it is there.
    pub(crate) fn write(&self, key: RegionKey, region: &Arc<DataRegion>, wished: Option<TierKind>) -> bool {
        // To compute it again others would have to be told that it is gone.
        let worth = RetentionValue { seconds: f64::INFINITY, durable: false };
        let wishes = PlacementHints { first: self.first(wished), keep: false };
        let store = |stored| self.stack.store_with(stored, region, worth, wishes);
        self.write_with(key, region, &self.counters.demoted, store)
    }

    /// The fastest level that is not faster than what is wished.
    fn first(&self, wished: Option<TierKind>) -> LevelId {
        let Some(wished) = wished else { return LevelId::default() };
        let kinds = TierKind::ALL.iter().skip_while(|kind| **kind != wished);
        let place = |kind: &TierKind| self.stack.levels().iter().position(|level| level.name == kind.name());
        LevelId(kinds.filter_map(place).next().unwrap_or_default())
    }

    /// Whether other nodes see any of the tiers.
    #[must_use]
    pub fn is_shared(&self) -> bool {
        self.stack.levels().iter().any(|level| level.shared)
    }

    /// Writes a region to a tier that all nodes share; waits for it.
    pub(crate) fn share(&self, key: RegionKey, region: &Arc<DataRegion>) -> bool {
        let write = |stored| self.stack.share(stored, region);
        self.write_with(key, region, &self.counters.shared, write)
    }

    /// Reads a region that another node has shared; waits for it.
    pub(crate) fn get_shared(&self, key: RegionKey) -> Option<Arc<DataRegion>> {
        let stored = self.stored(key);
        let (region, _) = self.stack.get(stored).ok().flatten()?;
        self.keep_book(key, stored, region.bytes());
        add(&self.counters.promoted, region.bytes());
        Some(region)
    }

    /// Writes a region that can be computed again in so many seconds, and may make room for others; waits for the disk.
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
        // What a tier says of a region that it could not take, its own figures tell.
        let is_written = write(stored).is_ok();
        if is_written {
            self.keep_book(key, stored, region.bytes());
            add(counter, region.bytes());
        } else {
            self.counters.refused.fetch_add(1, Ordering::Relaxed);
        }
        is_written
    }

    /// Whether so many bytes more may wait to be written, which nobody counts until they are.
    pub(crate) fn begin_writing(&self, bytes: u64) -> bool {
        let add = |writing: u64| Some(writing + bytes).filter(|all| *all <= MAX_WRITING_BYTES);
        self.writing.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add).is_ok()
    }

    pub(crate) fn end_writing(&self, bytes: u64) {
        self.writing.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Reads a region; waits for the disk. None if it is not here, or not any more what it was: then it is forgotten.
    pub(crate) fn get(&self, key: RegionKey) -> Option<Arc<DataRegion>> {
        let stored = self.kept().get(&key)?.stored;
        // What a tier says of a region that it could not give, its own figures tell.
        match self.stack.get(stored) {
            Ok(Some((region, _))) => {
                add(&self.counters.promoted, region.bytes());
                Some(region)
            }
            Ok(None) | Err(_) => {
                self.counters.lost.fetch_add(1, Ordering::Relaxed);
                self.kept().remove(&key);
                None
            }
        }
    }

    /// Has regions brought to the fastest tier that lie in slower ones: they will be asked for soon.
    pub(crate) fn prefetch(&self, keys: impl Iterator<Item = RegionKey>) {
        let Some(prefetcher) = &self.prefetcher else { return };
        let keys: Vec<RegionKey> = keys.collect();
        self.ahead().extend(keys.iter().filter(|key| self.bytes(**key).is_none()));
        // As `put` says: nobody can be told that it is gone.
        let worth = RetentionValue { seconds: f64::INFINITY, durable: false };
        prefetcher.prefetch(keys.into_iter().map(|key| (self.stored(key), worth)));
    }

    /// Whether something of a region may be here: it was put here, or is being brought up.
    pub(crate) fn may_have(&self, key: RegionKey) -> bool {
        self.bytes(key).is_some() || self.ahead().contains(&key)
    }

    /// Nobody will read a region again; waits for the disk. One that cannot be removed makes room for others first.
    pub(crate) fn remove(&self, key: RegionKey) {
        let kept = self.kept().remove(&key).map(|kept| kept.stored);
        let ahead = self.ahead().remove(&key).then(|| self.stored(key));
        if let Some(stored) = kept.or(ahead) {
            _ = self.stack.remove(stored);
        }
    }

    /// A region has been let go of.
    pub(crate) fn dropped(&self, bytes: u64) {
        add(&self.counters.dropped, bytes);
    }

    fn ahead(&self) -> MutexGuard<'_, HashSet<RegionKey>> {
        self.ahead.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn kept(&self) -> MutexGuard<'_, HashMap<RegionKey, Kept>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
