//! What a worker brings along.

use crate::exchange::Exchange;
use crate::input_files::InputFileStore;
use crate::spill::SpillStore;
use crate::stage::PriorResults;
use crate::storage::{Source, StorageActor};
use crate::task::Meter;
use actix::Addr;
use pleach_dispatch::cost_model::CostModel;
use pleach_dispatch::message::InputFile;
use pleach_regions::{MemoryCounter, RamTier};
use pleach_workflow::Registry;
use std::fmt;
use std::num::NonZeroU32;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};

/// What a worker may use.
#[derive(Clone, Copy, Debug)]
pub struct Resources {
    /// Tasks it can run at once.
    pub slots: NonZeroU32,
    /// Bytes of regions and of running tasks that it may hold.
    pub memory_bytes: u64,
    /// Tasks of one bucket that may run at once; `None`: as many as there are slots.
    pub active_paths: Option<NonZeroU32>,
    /// Measures what tasks take.
    pub meter: Meter,
}

/// What a worker brings along.
pub struct WorkerSetup {
    /// What it may use.
    pub resources: Resources,
    /// The operations linked in.
    pub registry: Registry,
    /// Its storage.
    pub storage: Addr<StorageActor>,
    /// As many threads as slots.
    pub pool: Arc<rayon::ThreadPool>,
    /// What its storage holds in memory.
    pub ram: Arc<RamTier>,
    /// The tiers below that, if there are any; the same as its storage's.
    pub below: Option<Arc<SpillStore>>,
    /// Bytes held on this node.
    pub ledger: Arc<MemoryCounter>,
    /// What operations are believed to cost; it learns from every task.
    pub costs: Arc<Mutex<CostModel>>,
    /// What is known from before the study.
    pub past: PriorResults,
    /// Is told of the most bytes ever held and reserved at once.
    pub peak_bytes: Arc<AtomicU64>,
    /// What a worker has that is not in its manager's process.
    pub remote: Option<RemoteSetup>,
}

impl fmt::Debug for WorkerSetup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorkerSetup").field("resources", &self.resources).finish_non_exhaustive()
    }
}

/// Reads input files: the application's part.
pub trait InputReader: Send + Sync {
    /// A region that is read from a file, which may have to be fetched first.
    fn source(&self, input: &InputFile, files: &Arc<InputFileStore>) -> Arc<dyn Source>;
}

/// See [`WorkerSetup::remote`].
pub struct RemoteSetup {
    /// This process: another number each time it is started.
    pub incarnation: u64,
    /// For regions of other workers.
    pub exchange: Exchange,
    /// Reads input files.
    pub opener: Arc<dyn InputReader>,
    /// Where input files are.
    pub files: Arc<InputFileStore>,
    /// Files that are to be asked for.
    pub asks: Option<UnboundedReceiver<[u8; 32]>>,
    /// Receives an event when the manager accepts the worker, when the link is gone, and when the worker has left.
    pub events: UnboundedSender<WorkerEvent>,
    /// Buckets that it asks for beyond what idle slots take.
    pub window: u32,
}

impl fmt::Debug for RemoteSetup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Remote").field("incarnation", &self.incarnation).finish_non_exhaustive()
    }
}

/// What the process of a worker is told by its actor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkerEvent {
    /// The manager has accepted the worker over the link.
    Welcomed,
    /// The link is gone: another one is needed.
    Disconnected,
    /// The worker has left, with everything that was needed handed over or told.
    Left,
}
