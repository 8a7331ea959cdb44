//! Tier stack under RAM on one node: levels from fast to slow, and the movement of regions between them.
//!
//! A region goes to the first level that has space. A full level evicts regions by its policy: it demotes them to the next
//! level, or drops them if they can be recreated. Regions that cannot be recreated are demoted but never dropped. All I/O
//! happens outside of the index lock (`stack/index.rs`): a hanging level blocks its caller and no other thread.
//!
//! A caller that knows future reads prefetches them (`stack/prefetch.rs`). The stack does not know why a region is wanted,
//! and promotes nothing by itself.

mod eviction;
mod fetch;
mod index;
mod prefetch;
mod read_cost;
mod stats;
mod tier;

pub use prefetch::Prefetcher;
pub use read_cost::ReadTime;
pub use stats::{LevelStats, SpillStats};

use crate::{Durability, EvictionPolicy, Inserted, Tier, TierError};
use index::{RegionMeta, StackIndex};
use parking_lot::{Condvar, Mutex};
use pleach_regions::{DataRegion, RegionKey};
use stats::LevelCounters;
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Time when a region is written to the level below.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteMode {
    /// When the level evicts it.
    Back,
    /// At once, if the level below has space. Eviction then costs no write.
    Through,
}

/// One level of a stack.
#[derive(Clone, Debug)]
pub struct TierLevel {
    /// Name in statistics, unique per level.
    pub name: String,
    /// The tier that stores the regions.
    pub tier: Arc<dyn Tier>,
    /// Choice of the regions to evict.
    pub policy: EvictionPolicy,
    /// Time when regions are written to the level below.
    pub write: WriteMode,
    /// Whether other nodes see its content.
    pub shared: bool,
}

/// Index of a level. The fastest is 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LevelId(pub usize);

/// Value of a region to the caller that stores it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RetentionValue {
    /// Seconds to recompute or refetch it, or [`f64::INFINITY`] if that is not possible.
    pub seconds: f64,
    /// Whether it must survive a power loss until it is removed, in a shared level if the stack has one.
    pub durable: bool,
}

/// Placement requests for a region, which override eviction policies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PlacementHints {
    /// The fastest allowed level. If it has no space, slower levels follow.
    pub first: LevelId,
    /// Pins the region to its level until it is removed: the level does not evict it.
    pub pin: bool,
}

/// Result of storing a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlacedAt {
    /// The level.
    pub level: LevelId,
    /// Whether the level had it before.
    pub inserted: Inserted,
}

/// Levels from fast to slow as one store, usable from any number of threads. All methods block.
#[derive(Debug)]
pub struct TierStack {
    levels: Vec<TierLevel>,
    counted: Vec<LevelCounters>,
    /// Each change is one call, so a panic leaves the index consistent.
    books: Mutex<StackIndex>,
    /// Signaled when a claim is released.
    released: Condvar,
}

/// Exclusive right to store, move or remove a region until this is dropped.
struct Claim<'a> {
    stack: &'a TierStack,
    key: RegionKey,
}

impl Drop for Claim<'_> {
    // Released in Drop, so a panicking operation cannot leave the region claimed.
    fn drop(&mut self) {
        self.stack.books.lock().release(self.key);
        // Wakes all: the waiters share one condition variable and wait for different regions.
        self.stack.released.notify_all();
    }
}

impl TierStack {
    /// Creates a stack of these levels, fastest first. Regions already in private levels have no value here and are evicted
    /// first. A level that cannot be listed counts an error and stays in use.
    #[must_use]
    pub fn new(levels: Vec<TierLevel>) -> Self {
        let counted: Vec<LevelCounters> = levels.iter().map(|_| LevelCounters::default()).collect();
        let mut books = StackIndex::new(levels.iter().map(|level| level.policy));
        // Regions of a shared level may belong to other nodes, and must not be moved from here.
        for (id, level) in levels.iter().enumerate().filter(|(_, level)| !level.shared) {
            match level.tier.list() {
                Ok(keys) => keys.into_iter().for_each(|key| books.find(id, key)),
                Err(_) => drop(counted[id].errors.fetch_add(1, Ordering::Relaxed)),
            }
        }
        Self { levels, counted, books: Mutex::new(books), released: Condvar::new() }
    }

    /// Stores a region in the first level that has or can make space, a durable region in the first level that is durable
    /// enough. A region already stored stays where it is and keeps the higher of both values.
    ///
    /// # Errors
    /// Returns a lack of space ([`TierError::is_lack_of_room`]) if a level has none, or other threads are moving every
    /// region that it could evict. Otherwise returns the error of the last level tried. Returns [`TierError::NoSuchLevel`]
    /// if no level is durable enough.
    pub fn store(
        &self,
        key: RegionKey,
        region: &Arc<DataRegion>,
        worth: RetentionValue,
    ) -> Result<PlacedAt, TierError> {
        self.store_from(LevelId(0), key, region, worth)
    }

    /// Stores a region like [`store`](Self::store), in no level faster than `first`.
    ///
    /// # Errors
    /// Same as [`store`](Self::store).
    pub fn store_from(
        &self,
        first: LevelId,
        key: RegionKey,
        region: &Arc<DataRegion>,
        worth: RetentionValue,
    ) -> Result<PlacedAt, TierError> {
        self.store_with(key, region, worth, PlacementHints { first, pin: false })
    }

    /// Stores a region like [`store`](Self::store), with placement hints. A region already stored stays where it is, and its
    /// earlier hints remain in force.
    ///
    /// # Errors
    /// Same as [`store`](Self::store).
    pub fn store_with(
        &self,
        key: RegionKey,
        region: &Arc<DataRegion>,
        worth: RetentionValue,
        PlacementHints { first, pin }: PlacementHints,
    ) -> Result<PlacedAt, TierError> {
        let about = RegionMeta { bytes: region.bytes(), seconds: worth.seconds, durable: worth.durable };
        // Claimed before the lookup, so that no thread moves or removes the region before the insertion.
        let _claim = self.claim(key, Some(about));
        // A copy in a level that is not durable enough does not count.
        let known = (first.0..self.levels.len())
            .find(|id| (!worth.durable || self.is_durable(*id)) && self.books.lock().contains(*id, key));
        let placed = match known {
            Some(id) => {
                self.books.lock().touch(id, key);
                PlacedAt { level: LevelId(id), inserted: Inserted::AlreadyPresent }
            }
            None => self.insert_from(first.0, key, region, |id| !worth.durable || self.is_durable(id))?,
        };
        if pin {
            self.books.lock().pin(placed.level.0, key);
        }
        Ok(placed)
    }

    /// Stores a durable region where other nodes find it. It stays until it is removed here or by another process that may
    /// write there.
    ///
    /// # Errors
    /// Same as [`store`](Self::store). Returns [`TierError::NoSuchLevel`] if no level is shared.
    pub fn share(&self, key: RegionKey, region: &Arc<DataRegion>) -> Result<PlacedAt, TierError> {
        if !self.levels.iter().any(|level| level.shared) {
            return Err(TierError::NoSuchLevel { key, property: "shared" });
        }
        // 0 s cannot lower the known value: recorded seconds only increase.
        self.store(key, region, RetentionValue { seconds: 0.0, durable: true })
    }

    /// Removes a region from every level. Returns whether any level had it.
    ///
    /// # Errors
    /// Returns the error of the first level that failed to remove the region. All other levels have removed it.
    pub fn remove(&self, key: RegionKey) -> Result<bool, TierError> {
        let _claim = self.claim(key, None);
        let (mut removed, mut failed) = (false, None);
        for (id, level) in self.levels.iter().enumerate() {
            // Every level is asked, since the index lists neither regions of other nodes nor those of an unlisted
            // level.
            match level.tier.remove(key) {
                Ok(was_there) => {
                    self.books.lock().forget(id, key);
                    removed |= was_there;
                }
                Err(error) => {
                    self.counted[id].errors.fetch_add(1, Ordering::Relaxed);
                    failed = failed.or(Some(error));
                }
            }
        }
        failed.map_or(Ok(removed), Err)
    }

    /// Returns the bytes that can be stored without evicting, within capacities and free disk space.
    #[must_use]
    pub fn free_bytes(&self) -> u64 {
        self.levels.iter().map(|level| level.tier.free_bytes()).fold(0, u64::saturating_add)
    }

    /// Returns the levels, fastest first.
    #[must_use]
    pub fn levels(&self) -> &[TierLevel] {
        &self.levels
    }

    /// Returns the level with this name. `None` if there is none.
    #[must_use]
    pub fn level(&self, name: &str) -> Option<LevelId> {
        self.levels.iter().position(|level| level.name == name).map(LevelId)
    }

    /// Returns the fastest level that is known to have a region. Asks no level.
    #[must_use]
    pub fn fastest(&self, key: RegionKey) -> Option<LevelId> {
        self.books.lock().fastest(key).map(LevelId)
    }

    /// Takes the regions that have entered or left a level since the last call, in no order. The first call starts the record,
    /// and returns none.
    pub fn take_moved(&self) -> HashSet<RegionKey> {
        self.books.lock().take_moved()
    }

    /// Returns the measured time of reads of each level. `None` for levels without a read.
    #[must_use]
    pub fn read_times(&self) -> Vec<Option<ReadTime>> {
        self.books.lock().read_times()
    }

    /// Returns the content and activity counters of each level.
    #[must_use]
    pub fn counts(&self) -> Vec<LevelStats> {
        let regions: Vec<usize> = (0..self.levels.len()).map(|id| self.books.lock().len(id)).collect();
        let all = self.levels.iter().zip(&self.counted).zip(regions);
        all.map(|((level, counted), regions)| counted.show(level, regions as u64)).collect()
    }

    /// Returns whether a level may hold durable regions: a shared level if the stack has one.
    fn is_durable(&self, id: usize) -> bool {
        let level = &self.levels[id];
        level.tier.durability() == Durability::PowerLoss
            && (level.shared || !self.levels.iter().any(|level| level.shared))
    }

    /// Waits until no other thread stores, moves or removes the region. Claim holders only take further claims that are
    /// free, so they never wait for another claim and cannot deadlock.
    fn claim(&self, key: RegionKey, about: Option<RegionMeta>) -> Claim<'_> {
        let mut books = self.books.lock();
        while !books.claim(key, about) {
            self.released.wait(&mut books);
        }
        Claim { stack: self, key }
    }
}
