//! The storage actor: the data regions of one node.
//!
//! What a bucket reads is loaded when first asked for, each region once, off this thread: from a file, from another worker, or
//! from a tier that all workers share (`storage/remote.rs`). Stage actors put stage outputs into the same memory. Regions go when the manager says that nobody will read
//! them again.
//!
//! Where memory is short, the worker has room made (`storage/eviction.rs`): what came from files is let go of, and read again
//! when it is asked for; the rest goes to the tiers below, if there are any.

mod eviction;
mod file;
mod prefetch;
mod remote;
mod replica;

use crate::exchange::Exchange;
use crate::spill::SpillStore;
use actix::prelude::*;
pub use eviction::{FreeMemory, MemoryFreed};
use pleach_dispatch::message::TaskFailure;
use pleach_regions::{DataRegion, RamTier, RegionKey};
use pleach_workflow::TierKind;
pub use prefetch::Prefetch;
use remote::{FetchRates, RemoteSource};
pub use replica::FetchReplica;
use std::collections::HashMap;
use std::fmt;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;

/// What has to be done before a source can be read.
pub type Preparation = Pin<Box<dyn Future<Output = Result<(), TaskFailure>> + Send>>;

/// A region that comes from outside the study, such as the image file of a tile.
pub trait Source: Send + Sync {
    /// Has what is to be read brought here, if it has to be.
    fn prepare(&self) -> Option<Preparation> {
        None
    }

    /// Reads and decodes it.
    ///
    /// # Errors
    /// What it is and what is wrong with it.
    fn load(&self) -> Result<DataRegion, TaskFailure>;
}

/// Where a region is to be had that is not here.
#[derive(Clone)]
pub enum RegionOrigin {
    /// From outside the study.
    Source(Arc<dyn Source>),
    /// From one of these workers, or, if it is `shared`, from a tier that all workers share.
    Elsewhere {
        /// The workers.
        workers: Vec<SocketAddr>,
        /// Whether it is in a shared tier.
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

/// Why a region, or what is made of it, is not there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RegionUnavailable {
    /// It never will be.
    Failed(TaskFailure),
    /// This region is not to be had here; elsewhere it may be.
    Lacks(RegionKey),
}

/// A region, or why there is none.
pub type Fetched = Result<Arc<DataRegion>, RegionUnavailable>;

/// Asks for a region; answered as soon as it is there.
#[derive(Debug, Message)]
#[rtype(result = "Fetched")]
pub struct GetRegion(pub RegionKey);

/// Says where regions are to be had, before they are asked for. What is prepared is prepared now: while others compute.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub struct ExpectRegions(pub Vec<(RegionKey, RegionOrigin)>);

/// Says where regions are to go when they leave memory.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub struct SetPlacement(pub Vec<(RegionKey, TierKind)>);

/// From now on, what comes from files is shared with other nodes, and looked for there first.
#[derive(Clone, Copy, Debug, Message)]
#[rtype(result = "()")]
pub struct ShareInputs;

/// Nobody will read these regions again.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub struct ReleaseRegions(pub Vec<RegionKey>);

/// Asks how many regions are held, once all that was said before is done.
#[derive(Debug, Message)]
#[rtype(result = "usize")]
pub struct CountRegions;

/// Asks what has been asked of memory.
#[derive(Debug, Message)]
#[rtype(result = "RamStats")]
pub struct GetRamStats;

/// What has been asked of memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, MessageResponse)]
pub struct RamStats {
    /// Regions that were there when they were asked for.
    pub hits: u64,
    /// Regions that had to be brought first.
    pub misses: u64,
}

#[derive(Message)]
#[rtype(result = "()")]
struct Loaded {
    key: RegionKey,
    result: Fetched,
    /// From elsewhere: by which way, and how long that took.
    took: Option<(RemoteSource, Duration)>,
}

/// A region was to come back from below, and is not there any more.
#[derive(Message)]
#[rtype(result = "()")]
struct Lost(RegionKey);

/// A region that comes from a file has not been shared yet.
#[derive(Message)]
#[rtype(result = "()")]
struct NotShared(RegionKey);

/// See the module.
pub struct StorageActor {
    ram: Arc<RamTier>,
    below: Option<Arc<SpillStore>>,
    origins: HashMap<RegionKey, RegionOrigin>,
    exchange: Option<Exchange>,
    /// The memory's count of changes when a region was last asked for.
    asked: HashMap<RegionKey, u64>,
    /// What comes from files is shared with other nodes.
    shares_inputs: bool,
    /// Where regions are to go when they leave memory.
    wished: HashMap<RegionKey, TierKind>,
    /// How fast regions come from elsewhere.
    rates: FetchRates,
    /// Those who wait for a load that is under way.
    waiting: HashMap<RegionKey, Vec<oneshot::Sender<Fetched>>>,
    /// Loads that failed: tried once, since the same file gives the same error.
    failed: HashMap<RegionKey, TaskFailure>,
    pool: Arc<rayon::ThreadPool>,
    figures: RamStats,
}

impl fmt::Debug for StorageActor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StorageActor").field("ram", &self.ram).finish_non_exhaustive()
    }
}

impl StorageActor {
    /// A node that holds regions in `ram`, and can load `sources` on `pool`.
    #[must_use]
    pub fn new(
        sources: HashMap<RegionKey, Arc<dyn Source>>,
        pool: Arc<rayon::ThreadPool>,
        ram: Arc<RamTier>,
    ) -> Self {
        let origins = sources.into_iter().map(|(key, source)| (key, RegionOrigin::Source(source))).collect();
        let (waiting, failed) = (HashMap::new(), HashMap::new());
        let (asked, wished, rates) = (HashMap::new(), HashMap::new(), FetchRates::default());
        Self {
            ram,
            below: None,
            origins,
            exchange: None,
            asked,
            shares_inputs: false,
            wished,
            rates,
            waiting,
            failed,
            pool,
            figures: RamStats::default(),
        }
    }

    /// The same, which has tiers below its memory.
    #[must_use]
    pub fn with_spill(self, below: Option<Arc<SpillStore>>) -> Self {
        Self { below, ..self }
    }

    /// The same, which can fetch from other workers.
    #[must_use]
    pub fn with_exchange(self, exchange: Exchange) -> Self {
        Self { exchange: Some(exchange), ..self }
    }

    fn find(&self, key: RegionKey) -> Option<Fetched> {
        let stored = self.ram.get(key).map(Ok);
        stored.or_else(|| self.failed.get(&key).map(|cause| Err(RegionUnavailable::Failed(cause.clone()))))
    }

    fn load(&self, key: RegionKey, ctx: &mut Context<Self>) {
        let storage = ctx.address();
        if let Some(below) = self.below.as_ref().filter(|below| below.bytes(key).is_some()) {
            let from = Arc::clone(below);
            return below.spawn(move || match from.get(key) {
                Some(region) => storage.do_send(Loaded { key, result: Ok(region), took: None }),
                None => storage.do_send(Lost(key)),
            });
        }
        match self.origins.get(&key).cloned() {
            Some(RegionOrigin::Source(source)) => match self.below.clone().filter(|_| self.shares_inputs) {
                Some(below) => self.look_shared(key, &below, ctx),
                None => self.read(key, source, ctx),
            },
            Some(RegionOrigin::Elsewhere { workers, shared }) => self.fetch(key, &workers, shared, ctx),
            None => storage.do_send(Loaded { key, result: Err(RegionUnavailable::Lacks(key)), took: None }),
        }
    }
}

impl Actor for StorageActor {
    type Context = Context<Self>;
}

impl Handler<GetRegion> for StorageActor {
    type Result = ResponseFuture<Fetched>;

    fn handle(&mut self, GetRegion(key): GetRegion, ctx: &mut Self::Context) -> Self::Result {
        if self.below.is_some() {
            self.asked.insert(key, self.ram.changes());
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
            // Somebody may have shared it: then its file is not needed.
            if let RegionOrigin::Source(source) = &origin
                && is_new
                && !self.shares_inputs
                && let Some(preparation) = source.prepare()
            {
                // Whoever asks for the region finds out what came of it.
                ctx.spawn(async move { drop(preparation.await) }.into_actor(self));
            }
            // What failed may have been repaired since, or be had from somebody else.
            self.failed.remove(&key);
            self.origins.insert(key, origin);
        }
    }
}

impl Handler<Loaded> for StorageActor {
    type Result = ();

    fn handle(&mut self, Loaded { key, result, took }: Loaded, _: &mut Self::Context) {
        if let (Ok(region), Some((way, time))) = (&result, took) {
            self.rates.observe(way, region.bytes(), time);
        }
        match &result {
            // Another worker's copy and one that was made here are the same.
            Ok(region) => drop(self.ram.insert(key, Arc::clone(region))),
            Err(RegionUnavailable::Failed(cause)) => drop(self.failed.insert(key, cause.clone())),
            Err(RegionUnavailable::Lacks(_)) => {}
        }
        for answer in self.waiting.remove(&key).unwrap_or_default() {
            // Whoever asked may be gone by now.
            let _ = answer.send(result.clone());
        }
    }
}

impl Handler<Lost> for StorageActor {
    type Result = ();

    /// Where it came from it may be had again; if nowhere, the manager has it made again.
    fn handle(&mut self, Lost(key): Lost, ctx: &mut Self::Context) {
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
        if self.below.is_some() {
            self.wished.extend(wishes);
        }
    }
}

impl Handler<ShareInputs> for StorageActor {
    type Result = ();

    fn handle(&mut self, _: ShareInputs, _: &mut Self::Context) {
        self.shares_inputs = self.below.as_ref().is_some_and(|below| below.is_shared());
    }
}

impl Handler<ReleaseRegions> for StorageActor {
    type Result = ();

    fn handle(&mut self, ReleaseRegions(keys): ReleaseRegions, _: &mut Self::Context) {
        for key in keys {
            self.ram.remove(key);
            self.asked.remove(&key);
            self.wished.remove(&key);
            if let Some(below) = self.below.as_ref().filter(|below| below.may_have(key)) {
                let from = Arc::clone(below);
                below.spawn(move || from.remove(key));
            }
            // Where other workers had it, it is gone as well; a file can be read again.
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
