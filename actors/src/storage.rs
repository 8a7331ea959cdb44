//! The storage actor: the data regions of one node.
//!
//! Storage loads each input of a bucket once, on first use and off this thread: from a file, from another worker, or from a
//! tier that all workers share (`storage/remote.rs`). Stage actors insert stage outputs into the same memory. The manager
//! releases regions without remaining readers.
//!
//! Storage answers spatial queries over regions that it holds (`storage/query.rs`).
//!
//! Under memory pressure the worker evicts regions (`storage/eviction.rs`). Regions from files are dropped and read again on
//! demand. Other regions go to the spill tiers, if any.

mod eviction;
mod file;
mod prefetch;
mod query;
mod remote;
mod replica;

use crate::exchange::Exchange;
use crate::spill::SpillStore;
use actix::prelude::*;
pub use eviction::{FreeMemory, MemoryFreed};
use pleach_dispatch::message::TaskFailure;
use pleach_dispatch::storage::{FetchRates, RemoteSource};
use pleach_regions::{DataRegion, RamTier, RegionIdentity, RegionKey};
use pleach_workflow::TierKind;
pub use prefetch::Prefetch;
use query::SpatialIndexes;
pub use replica::FetchReplica;
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;

/// Work required before a source can be read.
pub type Preparation = Pin<Box<dyn Future<Output = Result<(), TaskFailure>> + Send>>;

/// A region from outside the study, such as the image file of a tile.
pub trait Source: Send + Sync {
    /// Fetches the input to this node. Returns `None` if no fetch is needed.
    fn prepare(&self) -> Option<Preparation> {
        None
    }

    /// Reads and decodes the region.
    ///
    /// # Errors
    /// Names the input and the cause.
    fn load(&self) -> Result<DataRegion, TaskFailure>;
}

/// Origin of a region that is not in memory.
#[derive(Clone)]
pub enum RegionOrigin {
    /// A source outside the study.
    Source(Arc<dyn Source>),
    /// One of these workers, or, if `shared`, a tier that all workers share.
    Elsewhere {
        /// The workers.
        workers: Vec<SocketAddr>,
        /// Whether a shared tier has the region.
        shared: bool,
    },
}

impl fmt::Debug for RegionOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Source(_) => f.write_str("Source"),
            Self::Elsewhere { workers, shared } => {
                f.debug_struct("Elsewhere").field("workers", workers).field("shared", shared).finish()
            }
        }
    }
}

/// Reason for a missing region, or for a missing result computed from it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RegionUnavailable {
    /// A permanent failure.
    Failed(TaskFailure),
    /// This worker cannot get the region. Other workers may.
    Lacks(RegionKey),
}

/// A region, or the reason for its absence.
pub type Fetched = Result<Arc<DataRegion>, RegionUnavailable>;

/// Requests a region. The answer follows once the region is in memory.
#[derive(Debug, Message)]
#[rtype(result = "Fetched")]
pub struct GetRegion(pub RegionKey);

/// Registers the origins of regions before their first use. Preparations start at once, in parallel with computation.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub struct ExpectRegions(pub Vec<(RegionKey, RegionOrigin)>);

/// Sets the preferred spill tiers of regions.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub struct SetPlacement(pub Vec<(RegionKey, TierKind)>);

/// Shares regions from files with other nodes from now on, and searches shared tiers before reading files.
#[derive(Clone, Copy, Debug, Message)]
#[rtype(result = "()")]
pub struct ShareInputs;

/// Releases regions without remaining readers.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub struct ReleaseRegions(pub Vec<RegionKey>);

/// Requests the number of held regions. The answer follows all earlier messages.
#[derive(Debug, Message)]
#[rtype(result = "usize")]
pub struct CountRegions;

/// Requests the memory statistics.
#[derive(Debug, Message)]
#[rtype(result = "RamStats")]
pub struct GetRamStats;

/// Memory statistics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, MessageResponse)]
pub struct RamStats {
    /// Requests for regions in memory.
    pub hits: u64,
    /// Requests for regions that had to be loaded.
    pub misses: u64,
}

#[derive(Message)]
#[rtype(result = "()")]
struct Loaded {
    key: RegionKey,
    result: Fetched,
    /// Remote source and duration of the load, for a region from another node.
    took: Option<(RemoteSource, Duration)>,
    /// Its identity by content, if known.
    identity: Option<RegionIdentity>,
}

impl Loaded {
    fn new(key: RegionKey, region: Arc<DataRegion>) -> Self {
        Self { key, result: Ok(region), took: None, identity: None }
    }

    fn failed(key: RegionKey, why: RegionUnavailable) -> Self {
        Self { key, result: Err(why), took: None, identity: None }
    }
}

/// A spilled region is missing at its promotion.
#[derive(Message)]
#[rtype(result = "()")]
struct Lost(RegionKey);

/// A region from a file is not in a shared tier yet.
#[derive(Message)]
#[rtype(result = "()")]
struct NotShared(RegionKey);

/// Actor that holds the data regions of one node.
pub struct StorageActor {
    ram: Arc<RamTier>,
    spill: Option<Arc<SpillStore>>,
    origins: HashMap<RegionKey, RegionOrigin>,
    exchange: Option<Exchange>,
    /// Change count of the memory at the last request of a region.
    requested: HashMap<RegionKey, u64>,
    /// Regions from files are shared with other nodes.
    shares_inputs: bool,
    /// Preferred spill tiers.
    wished: HashMap<RegionKey, TierKind>,
    /// Transfer rates of the remote sources.
    rates: FetchRates,
    /// Requests that wait for a running load.
    waiting: HashMap<RegionKey, Vec<oneshot::Sender<Fetched>>>,
    /// Regions that were released during their load.
    released: HashSet<RegionKey>,
    /// Failed loads. Each is tried once, because the same file gives the same error.
    failed: HashMap<RegionKey, TaskFailure>,
    pool: Arc<rayon::ThreadPool>,
    /// Indexes of queried regions.
    indexes: Arc<SpatialIndexes>,
    figures: RamStats,
}

impl fmt::Debug for StorageActor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StorageActor").field("ram", &self.ram).finish_non_exhaustive()
    }
}

impl StorageActor {
    /// Creates a storage that holds regions in `ram` and loads `sources` on `pool`.
    #[must_use]
    pub fn new(
        sources: HashMap<RegionKey, Arc<dyn Source>>,
        pool: Arc<rayon::ThreadPool>,
        ram: Arc<RamTier>,
    ) -> Self {
        let origins = sources.into_iter().map(|(key, source)| (key, RegionOrigin::Source(source))).collect();
        let (waiting, released, failed) = (HashMap::new(), HashSet::new(), HashMap::new());
        let (requested, wished, rates) = (HashMap::new(), HashMap::new(), FetchRates::default());
        Self {
            ram,
            spill: None,
            origins,
            exchange: None,
            requested,
            shares_inputs: false,
            wished,
            rates,
            waiting,
            released,
            failed,
            pool,
            indexes: Arc::default(),
            figures: RamStats::default(),
        }
    }

    /// Adds spill tiers.
    #[must_use]
    pub fn with_spill(self, spill: Option<Arc<SpillStore>>) -> Self {
        Self { spill, ..self }
    }

    /// Adds the exchange with other workers.
    #[must_use]
    pub fn with_exchange(self, exchange: Exchange) -> Self {
        Self { exchange: Some(exchange), ..self }
    }

    fn find(&self, key: RegionKey) -> Option<Fetched> {
        let stored = self.ram.get(key).map(Ok);
        stored.or_else(|| self.failed.get(&key).map(|cause| Err(RegionUnavailable::Failed(cause.clone()))))
    }

    /// Removes a region from memory and from all tiers.
    fn release(&mut self, key: RegionKey) {
        self.ram.remove(key);
        self.requested.remove(&key);
        self.wished.remove(&key);
        self.spill.iter().for_each(|below| below.release(key));
    }

    fn load(&self, key: RegionKey, ctx: &mut Context<Self>) {
        let storage = ctx.address();
        // The spill tier comes first: a spilled region that was computed on this node has no other origin.
        if let Some(below) = self.spill.as_ref().filter(|below| below.bytes(key).is_some()) {
            let from = Arc::clone(below);
            return below.send_read(key, move || match from.get(key) {
                Some(region) => storage.do_send(Loaded::new(key, region)),
                None => storage.do_send(Lost(key)),
            });
        }
        match self.origins.get(&key).cloned() {
            Some(RegionOrigin::Source(source)) => match self.spill.clone().filter(|_| self.shares_inputs) {
                Some(below) => self.find_shared(key, &below, ctx),
                None => self.read(key, source, ctx),
            },
            Some(RegionOrigin::Elsewhere { workers, shared }) => self.fetch(key, &workers, shared, ctx),
            None => storage.do_send(Loaded::failed(key, RegionUnavailable::Lacks(key))),
        }
    }
}

impl Actor for StorageActor {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        if let Some(exchange) = &self.exchange {
            exchange.attach_storage(ctx.address().downgrade().recipient());
        }
    }
}

impl Handler<GetRegion> for StorageActor {
    type Result = ResponseFuture<Fetched>;

    fn handle(&mut self, GetRegion(key): GetRegion, ctx: &mut Self::Context) -> Self::Result {
        if self.spill.is_some() {
            // Only spilling ranks regions by their last request.
            self.requested.insert(key, self.ram.changes());
        }
        let found = self.find(key);
        let is_hit = matches!(found, Some(Ok(_)));
        *if is_hit { &mut self.figures.hits } else { &mut self.figures.misses } += 1;
        if let Some(found) = found {
            return Box::pin(async move { found });
        }
        let (answer, answered) = oneshot::channel();
        let waiting = self.waiting.entry(key).or_default();
        waiting.push(answer);
        self.released.remove(&key);
        // Only the first request starts a load. Later ones share its result.
        if waiting.len() == 1 {
            self.load(key, ctx);
        }
        Box::pin(async move { answered.await.unwrap_or(Err(RegionUnavailable::Lacks(key))) })
    }
}

impl Handler<ExpectRegions> for StorageActor {
    type Result = ();

    fn handle(&mut self, ExpectRegions(regions): ExpectRegions, ctx: &mut Self::Context) {
        for (key, origin) in regions {
            let is_new = !self.origins.contains_key(&key) && self.ram.get(key).is_none();
            // Another node may have shared the region. Then its file is not needed.
            if let RegionOrigin::Source(source) = &origin
                && is_new
                && !self.shares_inputs
                && let Some(preparation) = source.prepare()
            {
                // A request for the region detects a failed preparation.
                ctx.spawn(async move { drop(preparation.await) }.into_actor(self));
            }
            // A failed input may have been repaired since, or another worker may have it.
            self.failed.remove(&key);
            self.origins.insert(key, origin);
        }
    }
}

impl Handler<Loaded> for StorageActor {
    type Result = ();

    fn handle(&mut self, Loaded { key, result, took, identity }: Loaded, _: &mut Self::Context) {
        if let (Ok(region), Some((way, time))) = (&result, took) {
            self.rates.observe(way, region.bytes(), time);
        }
        match &result {
            Ok(region) => {
                // A replica and a region computed on this node are equal.
                let _ = self.ram.insert_known(key, Arc::clone(region), identity);
                self.spill
                    .iter()
                    .filter(|below| below.bytes(key).is_some())
                    .for_each(|below| below.note_move(key));
            }
            Err(RegionUnavailable::Failed(cause)) => drop(self.failed.insert(key, cause.clone())),
            Err(RegionUnavailable::Lacks(_)) => {}
        }
        // After the insertion, so that a requester finds the region in memory.
        for answer in self.waiting.remove(&key).unwrap_or_default() {
            // The requester may have ended.
            let _ = answer.send(result.clone());
        }
        if self.released.remove(&key) {
            self.release(key);
        }
    }
}

impl Handler<Lost> for StorageActor {
    type Result = ();

    /// Loads a lost region from its origin again. Without an origin, the manager has it recomputed.
    fn handle(&mut self, Lost(key): Lost, ctx: &mut Self::Context) {
        // The store has removed its entry at the failed read, so this load does not choose the tier again.
        self.load(key, ctx);
    }
}

impl Handler<NotShared> for StorageActor {
    type Result = ();

    fn handle(&mut self, NotShared(key): NotShared, ctx: &mut Self::Context) {
        if let Some(RegionOrigin::Source(source)) = self.origins.get(&key).cloned() {
            self.read(key, source, ctx);
        }
    }
}

impl Handler<SetPlacement> for StorageActor {
    type Result = ();

    fn handle(&mut self, SetPlacement(wishes): SetPlacement, _: &mut Self::Context) {
        if self.spill.is_some() {
            self.wished.extend(wishes);
        }
    }
}

impl Handler<ShareInputs> for StorageActor {
    type Result = ();

    fn handle(&mut self, _: ShareInputs, _: &mut Self::Context) {
        self.shares_inputs = self.spill.as_ref().is_some_and(|below| below.is_shared());
    }
}

impl Handler<ReleaseRegions> for StorageActor {
    type Result = ();

    fn handle(&mut self, ReleaseRegions(keys): ReleaseRegions, _: &mut Self::Context) {
        for key in keys {
            self.release(key);
            if self.waiting.contains_key(&key) {
                self.released.insert(key);
            }
            // The copies of other workers are released as well. A file can be read again.
            if matches!(self.origins.get(&key), Some(RegionOrigin::Elsewhere { .. })) {
                self.origins.remove(&key);
            }
        }
    }
}

impl Handler<GetRamStats> for StorageActor {
    type Result = RamStats;

    fn handle(&mut self, GetRamStats: GetRamStats, _: &mut Self::Context) -> Self::Result {
        self.figures
    }
}

impl Handler<CountRegions> for StorageActor {
    type Result = usize;

    fn handle(&mut self, _: CountRegions, _: &mut Self::Context) -> Self::Result {
        self.ram.len()
    }
}

#[cfg(test)]
mod tests;
