//! Context of stage actors: slots and storage of the worker, shared models and results, and results of earlier studies.

use super::StageEvent;
use crate::directory::{DirectoryHandle, OwnTile};
use crate::spill::SpillStore;
use crate::storage::StorageActor;
use crate::task::{DeviceExclusions, TaskActor};
use crate::task_cache::InputIdentities;
use crate::task_results::TaskResults;
use actix::prelude::*;
use parking_lot::Mutex;
use pleach_cache::PriorResults;
use pleach_dispatch::cost_model::CostModel;
use pleach_dispatch::memory_estimates::MemoryEstimates;
use pleach_regions::{MemoryCounter, RamTier};
use pleach_workflow::{Operation, Stage};
use std::fmt;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use tracing::Span;

/// Context shared by all stage actors of a worker.
#[derive(Clone)]
pub struct StageContext {
    /// The worker it belongs to.
    pub worker: Recipient<StageEvent>,
    /// Source of stage inputs and destination of stage outputs.
    pub storage: Addr<StorageActor>,
    /// The worker's slots: first the cores, then the accelerators.
    pub slots: Vec<Addr<TaskActor>>,
    /// Slots of cores.
    pub cores: usize,
    /// Operations that the accelerators cannot run.
    pub exclusions: Arc<DeviceExclusions>,
    /// Memory tier of the storage actor. Stage actors insert outputs directly, so that every byte is counted at all times.
    pub ram: Arc<RamTier>,
    /// Spill tiers, if any.
    pub spill: Option<Arc<SpillStore>>,
    /// Bytes held on this node.
    pub ledger: Arc<MemoryCounter>,
    /// Task results of this worker's buckets.
    pub results: Arc<Mutex<TaskResults>>,
    /// Result directory, for a worker of a cluster.
    pub(crate) directory: Option<DirectoryHandle>,
    /// Whether the bucket's tile is this worker's own.
    pub(crate) own_tile: OwnTile,
    /// Memory estimates of operations, updated by all stages of a worker.
    pub estimates: Arc<Mutex<MemoryEstimates>>,
    /// Cost model of operations, updated by all stages of a worker.
    pub costs: Arc<Mutex<CostModel>>,
    /// Results of earlier studies.
    pub prior: PriorResults,
    /// Identities of input files.
    pub(crate) input_identities: Arc<InputIdentities>,
    /// Default durability of outputs without a setting in their stage: whether they must outlive the worker. `None` if no
    /// other place can store them.
    pub durable: Option<bool>,
    /// Tasks of one bucket that may run at once.
    pub active_paths: Option<NonZeroU32>,
    /// The worker has a time limit and needs predicted durations.
    pub has_time_limit: Arc<AtomicBool>,
    /// Parent span of the bucket's log events.
    pub span: Span,
}

impl fmt::Debug for StageContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StageContext").field("slots", &self.slots.len()).finish_non_exhaustive()
    }
}

/// A stage of the study with its operations.
#[derive(Clone)]
pub struct ResolvedStage {
    /// The stage.
    pub stage: Arc<Stage>,
    /// Operations of its tasks, in order.
    pub operations: Vec<Arc<dyn Operation>>,
    /// Operations of other stages that read each output of the stage.
    pub readers: Vec<Vec<Arc<dyn Operation>>>,
}

impl fmt::Debug for ResolvedStage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResolvedStage").field("stage", &self.stage.name).finish_non_exhaustive()
    }
}
