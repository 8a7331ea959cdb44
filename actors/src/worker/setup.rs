//! Resources and connections of a worker.

use super::code::CodeLoader;
use crate::exchange::Exchange;
use crate::input_files::InputFileStore;
use crate::spill::SpillStore;
use crate::storage::{Source, StorageActor};
use crate::task::Accelerators;
use actix::Addr;
use parking_lot::Mutex;
use pleach_cache::PriorResults;
use pleach_dispatch::cost_model::CostModel;
use pleach_dispatch::message::InputFile;
use pleach_dispatch::worker::WorkerSlots;
use pleach_regions::{MemoryCounter, RamTier, RegionIdentity};
use pleach_workflow::{Meter, Registry};
use std::fmt;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};

/// Resource limits of a worker.
#[derive(Clone, Debug)]
pub struct Resources {
    /// Maximum number of concurrent tasks on cores.
    pub slots: NonZeroU32,
    /// Accelerators: one further task on each.
    pub accelerators: Accelerators,
    /// Memory limit for regions and running tasks.
    pub memory_bytes: u64,
    /// Maximum concurrent tasks of one bucket. `None` allows as many as slots.
    pub active_paths: Option<NonZeroU32>,
    /// Measures the memory of tasks.
    pub meter: Meter,
    /// Measures the processes.
    pub process_bytes: ProcessBytes,
}

impl Resources {
    /// Returns the slots by kind.
    #[must_use]
    pub fn worker_slots(&self) -> WorkerSlots {
        WorkerSlots {
            cores: self.slots.get(),
            accelerators: self.accelerators.len(),
            device_bytes: self.accelerators.min_device_bytes(),
            policy: self.accelerators.policy(),
        }
    }
}

/// Measured memory of a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessMemory {
    /// Bytes that this process has allocated. Results that wait for reuse give way, so that plans and other memory without a
    /// budget of their own stay within that of the worker.
    pub own_bytes: u64,
    /// Resident bytes of the processes that run external operations. Tasks and results give way.
    pub external_bytes: u64,
}

/// Returns the memory of the worker's processes. `None` if it is not measured.
pub type ProcessBytes = fn() -> Option<ProcessMemory>;

/// [`ProcessBytes`] without measurement.
#[must_use]
pub fn unmeasured() -> Option<ProcessMemory> {
    None
}

/// Resources and connections of a worker.
pub struct WorkerSetup {
    /// Resource limits.
    pub resources: Resources,
    /// Linked operations.
    pub registry: Registry,
    /// Storage actor.
    pub storage: Addr<StorageActor>,
    /// Thread pool with one thread per slot.
    pub pool: Arc<rayon::ThreadPool>,
    /// Memory tier of the storage actor.
    pub ram: Arc<RamTier>,
    /// Spill tiers, if any. The storage actor uses the same ones.
    pub spill: Option<Arc<SpillStore>>,
    /// Bytes held on this node.
    pub ledger: Arc<MemoryCounter>,
    /// Cost model of operations, updated after every task.
    pub costs: Arc<Mutex<CostModel>>,
    /// Results and identities from before the study.
    pub prior: PriorResults,
    /// Receives the peak of held and reserved bytes.
    pub peak_bytes: Arc<AtomicU64>,
    /// Parts that only a worker in its own process has.
    pub remote: Option<RemoteSetup>,
}

impl fmt::Debug for WorkerSetup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorkerSetup").field("resources", &self.resources).finish_non_exhaustive()
    }
}

/// Reads input files. The application implements it.
pub trait InputReader: Send + Sync {
    /// Returns the source of a region read from a file. Its preparation may fetch the file.
    fn source(&self, input: &InputFile, files: &Arc<InputFileStore>) -> Arc<dyn Source>;

    /// Returns the identity of the region's content, derived from the digests of its files: the same in every study and on
    /// every worker. `None` if they do not determine it.
    fn identity(&self, _input: &InputFile) -> Option<RegionIdentity> {
        None
    }
}

/// Parts of a worker in its own process. See [`WorkerSetup::remote`].
pub struct RemoteSetup {
    /// Number of this process, new at each start.
    pub incarnation: u64,
    /// Exchange with peers for their regions.
    pub exchange: Exchange,
    /// Reads input files.
    pub opener: Arc<dyn InputReader>,
    /// Loads code packages of clients. `None` on a worker that runs its own operations only.
    pub code: Option<Arc<dyn CodeLoader>>,
    /// Store of input files.
    pub files: Arc<InputFileStore>,
    /// Digests of files to request from the manager.
    pub asks: Option<UnboundedReceiver<[u8; 32]>>,
    /// Receives an event when the manager accepts the worker, when the link is lost, and when the worker has left.
    pub events: UnboundedSender<WorkerEvent>,
    /// Buckets to request beyond those that idle slots take.
    pub window: u32,
}

impl fmt::Debug for RemoteSetup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RemoteSetup").field("incarnation", &self.incarnation).finish_non_exhaustive()
    }
}

/// Event that the actor sends to its process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkerEvent {
    /// The manager has accepted the worker over the link.
    Welcomed,
    /// The link is lost. The worker needs a new one.
    Disconnected,
    /// The worker has left, after it handed over or reported everything needed.
    Left,
}
