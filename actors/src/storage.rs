//! The storage actor: the data regions of one node.
//!
//! Inputs of the study are loaded when first asked for, each once, off this thread; stage actors put stage outputs into
//! the same memory. Regions go when the manager says that nobody will read them again.

use actix::prelude::*;
use pleach_dispatch::message::TaskFailure;
use pleach_regions::{DataRegion, RamTier, RegionKey};
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use tokio::sync::oneshot;

/// A region that comes from outside the study, such as the image file of a tile.
pub trait Source: Send + Sync {
    /// Reads and decodes it.
    ///
    /// # Errors
    /// What it is and what is wrong with it.
    fn load(&self) -> Result<DataRegion, TaskFailure>;
}

/// A region, or why there is none.
pub type Fetched = Result<Arc<DataRegion>, TaskFailure>;

/// Asks for a region; answered as soon as it is there.
#[derive(Debug, Message)]
#[rtype(result = "Fetched")]
pub struct Get(pub RegionKey);

/// Nobody will read these regions again.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub struct Release(pub Vec<RegionKey>);

/// Asks how many regions are held, once all that was said before is done.
#[derive(Debug, Message)]
#[rtype(result = "usize")]
pub struct Held;

#[derive(Message)]
#[rtype(result = "()")]
struct Loaded {
    key: RegionKey,
    result: Result<DataRegion, TaskFailure>,
}

/// See the module.
pub struct StorageActor {
    ram: Arc<RamTier>,
    sources: HashMap<RegionKey, Arc<dyn Source>>,
    /// Those who wait for a load that is under way.
    waiting: HashMap<RegionKey, Vec<oneshot::Sender<Fetched>>>,
    /// Loads that failed: tried once, since the same file gives the same error.
    failed: HashMap<RegionKey, TaskFailure>,
    pool: Arc<rayon::ThreadPool>,
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
        Self { ram, sources, waiting: HashMap::new(), failed: HashMap::new(), pool }
    }

    fn find(&self, key: RegionKey) -> Option<Fetched> {
        let stored = self.ram.get(key).map(Ok);
        stored.or_else(|| self.failed.get(&key).map(|cause| Err(cause.clone())))
    }

    fn load(&self, key: RegionKey, ctx: &Context<Self>) {
        let Some(source) = self.sources.get(&key).map(Arc::clone) else {
            let at = "storage".to_owned();
            let result = Err(TaskFailure { at, cause: format!("region {key} is not here") });
            ctx.address().do_send(Loaded { key, result });
            return;
        };
        let storage = ctx.address();
        self.pool.spawn(move || {
            let result = crate::task::guarded("input", || source.load());
            storage.do_send(Loaded { key, result });
        });
    }
}

impl Actor for StorageActor {
    type Context = Context<Self>;
}

impl Handler<Get> for StorageActor {
    type Result = ResponseFuture<Fetched>;

    fn handle(&mut self, Get(key): Get, ctx: &mut Self::Context) -> Self::Result {
        if let Some(found) = self.find(key) {
            return Box::pin(async move { found });
        }
        let (answer, answered) = oneshot::channel();
        let waiting = self.waiting.entry(key).or_default();
        waiting.push(answer);
        if waiting.len() == 1 {
            self.load(key, ctx);
        }
        Box::pin(async move {
            let gone =
                || TaskFailure { at: "storage".to_owned(), cause: "the storage actor is gone".to_owned() };
            answered.await.unwrap_or_else(|_| Err(gone()))
        })
    }
}

impl Handler<Loaded> for StorageActor {
    type Result = ();

    fn handle(&mut self, Loaded { key, result }: Loaded, _: &mut Self::Context) {
        let fetched = result.map(Arc::new);
        match &fetched {
            // One load a key is under way at most, so the key is free.
            Ok(region) => drop(self.ram.insert(key, Arc::clone(region))),
            Err(cause) => drop(self.failed.insert(key, cause.clone())),
        }
        for answer in self.waiting.remove(&key).unwrap_or_default() {
            // Whoever asked may be gone by now.
            let _ = answer.send(fetched.clone());
        }
    }
}

impl Handler<Release> for StorageActor {
    type Result = ();

    fn handle(&mut self, Release(keys): Release, _: &mut Self::Context) {
        for key in keys {
            self.ram.remove(key);
        }
    }
}

impl Handler<Held> for StorageActor {
    type Result = usize;

    fn handle(&mut self, _: Held, _: &mut Self::Context) -> Self::Result {
        self.ram.len()
    }
}
