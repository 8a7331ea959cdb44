//! What lies below RAM on one node: levels from fast to slow, and what moves between them.
//!
//! A region goes to the first level that has room. A level without room lets others go, by its policy: down to the next
//! level, or away, if it can be had again. What cannot be had again moves down, but never goes. All I/O happens outside of
//! the books (`stack/index.rs`): a level that does not answer holds up whoever asked it, and nobody else.
//!
//! Whoever knows what will be asked for has it brought up before (`stack/prefetch.rs`). Nothing here knows why a region is
//! wanted, and nothing moves up by itself.

mod eviction;
mod fetch;
mod index;
mod prefetch;
mod stats;
mod tier;

pub use prefetch::Prefetcher;
pub use stats::LevelStats;

use crate::{Durability, EvictionPolicy, Inserted, Tier, TierError};
use index::{RegionMeta, StackIndex};
use pleach_regions::{DataRegion, RegionKey};
use stats::LevelCounters;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// When a region reaches the level below.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteMode {
    /// When it has to make room.
    Back,
    /// At once, as far as there is room; then making room costs nothing.
    Through,
}

/// One level.
#[derive(Clone, Debug)]
pub struct TierLevel {
    /// What it is called in figures; each level has a name of its own.
    pub name: String,
    /// What keeps the regions.
    pub tier: Arc<dyn Tier>,
    /// Which of them make room for others.
    pub policy: EvictionPolicy,
    /// When they reach the level below.
    pub write: WriteMode,
    /// Whether other nodes see what is in it.
    pub shared: bool,
}

/// Which level: the fastest is 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LevelId(pub usize);

/// What a region is worth to whoever stores it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RetentionValue {
    /// To compute it or to fetch it again; [`f64::INFINITY`] if that is not possible.
    pub seconds: f64,
    /// It has to survive a loss of power, in a shared level if there is one, until it is removed.
    pub durable: bool,
}

/// What is asked for a region, whatever policies say of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PlacementHints {
    /// The fastest level that may have it; where it has no room, slower ones follow.
    pub first: LevelId,
    /// It stays in the level that it is put into until it is removed: it makes no room for others there.
    pub keep: bool,
}

/// Where a region was put.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlacedAt {
    /// The level.
    pub level: LevelId,
    /// Whether it was there before.
    pub inserted: Inserted,
}

/// Levels from fast to slow, as one store for any number of threads. All methods block.
#[derive(Debug)]
pub struct TierStack {
    levels: Vec<TierLevel>,
    counted: Vec<LevelCounters>,
    books: Mutex<StackIndex>,
    /// A claim was given back.
    released: Condvar,
}

/// A region that nobody else stores, moves or removes until this is dropped.
struct Claim<'a> {
    stack: &'a TierStack,
    key: RegionKey,
}

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        self.stack.books().release(self.key);
        self.stack.released.notify_all();
    }
}

impl TierStack {
    /// A stack of these levels, fast ones first. What private ones hold already is worth nothing to anybody here: it makes
    /// room first. A level that cannot be listed counts an error, and is asked nevertheless.
    #[must_use]
    pub fn new(levels: Vec<TierLevel>) -> Self {
        let counted: Vec<LevelCounters> = levels.iter().map(|_| LevelCounters::default()).collect();
        let mut books = StackIndex::new(levels.iter().map(|level| level.policy));
        for (id, level) in levels.iter().enumerate().filter(|(_, level)| !level.shared) {
            match level.tier.list() {
                Ok(keys) => keys.into_iter().for_each(|key| books.find(id, key)),
                Err(_) => drop(counted[id].errors.fetch_add(1, Ordering::Relaxed)),
            }
        }
        Self { levels, counted, books: Mutex::new(books), released: Condvar::new() }
    }

    /// Stores a region in the first level that has room, or makes it; a durable one in the first level that is durable
    /// enough. One that is there already stays where it is, and is worth the more of what was said.
    ///
    /// # Errors
    /// What the last level says that was tried: [`TierError::is_lack_of_room`] when nothing has room, or everything that
    /// could make some is being moved by others.
    /// [`TierError::NoSuchLevel`] when no level is durable enough.
    pub fn store(
        &self,
        key: RegionKey,
        region: &Arc<DataRegion>,
        worth: RetentionValue,
    ) -> Result<PlacedAt, TierError> {
        self.store_from(LevelId(0), key, region, worth)
    }

    /// Stores a region as [`store`](Self::store) does, in no level that is faster than `first`.
    ///
    /// # Errors
    /// As [`store`](Self::store).
    pub fn store_from(
        &self,
        first: LevelId,
        key: RegionKey,
        region: &Arc<DataRegion>,
        worth: RetentionValue,
    ) -> Result<PlacedAt, TierError> {
        self.store_with(key, region, worth, PlacementHints { first, keep: false })
    }

    /// Stores a region as [`store`](Self::store) does, and as is wished for it. One that is there already is kept where it
    /// is; what was wished for it before goes on.
    ///
    /// # Errors
    /// As [`store`](Self::store).
    pub fn store_with(
        &self,
        key: RegionKey,
        region: &Arc<DataRegion>,
        worth: RetentionValue,
        PlacementHints { first, keep }: PlacementHints,
    ) -> Result<PlacedAt, TierError> {
        let about = RegionMeta { bytes: region.bytes(), seconds: worth.seconds, durable: worth.durable };
        let _claim = self.claim(key, Some(about));
        let known = (first.0..self.levels.len())
            .find(|id| (!worth.durable || self.is_durable(*id)) && self.books().contains(*id, key));
        let placed = match known {
            Some(id) => {
                self.books().touch(id, key);
                PlacedAt { level: LevelId(id), inserted: Inserted::AlreadyPresent }
            }
            None => self.place(first.0, key, region, |id| !worth.durable || self.is_durable(id))?,
        };
        if keep {
            self.books().keep(placed.level.0, key);
        }
        Ok(placed)
    }

    /// Stores a region where other nodes find it, through a loss of power. It stays until it is removed, as long as
    /// nobody else who may write there removes it.
    ///
    /// # Errors
    /// As [`store`](Self::store); [`TierError::NoSuchLevel`] when no level is shared.
    pub fn share(&self, key: RegionKey, region: &Arc<DataRegion>) -> Result<PlacedAt, TierError> {
        if !self.levels.iter().any(|level| level.shared) {
            return Err(TierError::NoSuchLevel { key, wanted: "shared" });
        }
        // Seconds only ever become more.
        self.store(key, region, RetentionValue { seconds: 0.0, durable: true })
    }

    /// Takes a region out of every level; that it is in none is no error.
    ///
    /// # Errors
    /// The first of a level that could not remove it; the others have.
    pub fn remove(&self, key: RegionKey) -> Result<bool, TierError> {
        let _claim = self.claim(key, None);
        let (mut removed, mut failed) = (false, None);
        for (id, level) in self.levels.iter().enumerate() {
            match level.tier.remove(key) {
                Ok(was_there) => {
                    self.books().forget(id, key);
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

    /// What could still be stored without anything making room, as far as capacities and disks go.
    #[must_use]
    pub fn free_bytes(&self) -> u64 {
        self.levels.iter().map(|level| level.tier.free_bytes()).fold(0, u64::saturating_add)
    }

    /// The levels, fast ones first.
    #[must_use]
    pub fn levels(&self) -> &[TierLevel] {
        &self.levels
    }

    /// The level of a name.
    #[must_use]
    pub fn level(&self, name: &str) -> Option<LevelId> {
        self.levels.iter().position(|level| level.name == name).map(LevelId)
    }

    /// What each level holds, and what it has done so far.
    #[must_use]
    pub fn counts(&self) -> Vec<LevelStats> {
        let regions: Vec<usize> = (0..self.levels.len()).map(|id| self.books().len(id)).collect();
        let all = self.levels.iter().zip(&self.counted).zip(regions);
        all.map(|((level, counted), regions)| counted.show(level, regions as u64)).collect()
    }

    /// Whether a level keeps regions that have to be durable: a shared one, if there is any.
    fn is_durable(&self, id: usize) -> bool {
        let level = &self.levels[id];
        level.tier.durability() == Durability::PowerLoss
            && (level.shared || !self.levels.iter().any(|level| level.shared))
    }

    fn books(&self) -> MutexGuard<'_, StackIndex> {
        // Every change of the books is one call: a thread that panicked left them whole.
        self.books.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until nobody else stores, moves or removes a region. Whoever does holds claims only of what was unclaimed:
    /// nobody who is waited for waits for another claim.
    fn claim(&self, key: RegionKey, about: Option<RegionMeta>) -> Claim<'_> {
        let mut books = self.books();
        while !books.claim(key, about) {
            books = self.released.wait(books).unwrap_or_else(PoisonError::into_inner);
        }
        Claim { stack: self, key }
    }
}
