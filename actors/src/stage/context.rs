//! What stage actors work with: a worker's slots and storage, what is learned and shared, and what the past has left.

use super::StageEvent;
use crate::spill::SpillStore;
use crate::storage::StorageActor;
use crate::task::TaskActor;
use crate::task_results::TaskResults;
use actix::prelude::*;
use pleach_cache::Cache;
use pleach_dispatch::cost_model::CostModel;
use pleach_dispatch::memory_estimates::MemoryEstimates;
use pleach_regions::{MemoryCounter, RamTier, RegionIdentity, RegionKey};
use pleach_workflow::{Operation, Stage};
use std::collections::HashMap;
use std::fmt;
use std::num::NonZeroU32;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use tracing::Span;

/// What every stage actor of a worker works with.
#[derive(Clone)]
pub struct StageContext {
    /// The worker it belongs to.
    pub worker: Recipient<StageEvent>,
    /// Where stage inputs come from and stage outputs go.
    pub storage: Addr<StorageActor>,
    /// The worker's slots.
    pub slots: Vec<Addr<TaskActor>>,
    /// What storage holds in memory: stage outputs are put there from here, so that there is no moment on the way at
    /// which nobody counts them.
    pub ram: Arc<RamTier>,
    /// The tiers below that, if there are any.
    pub below: Option<Arc<SpillStore>>,
    /// Bytes held on this node.
    pub ledger: Arc<MemoryCounter>,
    /// What the buckets of this worker have computed.
    pub results: Arc<Mutex<TaskResults>>,
    /// What operations are believed to take; all stages of a worker learn together.
    pub estimates: Arc<Mutex<MemoryEstimates>>,
    /// What operations are believed to cost, likewise.
    pub costs: Arc<Mutex<CostModel>>,
    /// What earlier studies have computed.
    pub past: PriorResults,
    /// Whether what others read of its instances is to outlive the worker, where the stage does not say so; `None` where
    /// nothing can.
    pub durable: Option<bool>,
    /// Tasks of one bucket that may run at once.
    pub active_paths: Option<NonZeroU32>,
    /// The worker has to end at some time: it asks how long things take.
    pub ends: Arc<AtomicBool>,
    /// What is said of the bucket.
    pub span: Span,
}

/// What is known from before the study.
#[derive(Clone, Debug, Default)]
pub struct PriorResults {
    /// What earlier studies have computed, if that is to be used.
    pub cache: Option<Arc<Cache>>,
    /// For inputs of the study: what they hold. Equal identities mean equal regions, wherever they lie.
    pub identities: Arc<HashMap<RegionKey, RegionIdentity>>,
}

impl fmt::Debug for StageContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Surroundings").field("slots", &self.slots.len()).finish_non_exhaustive()
    }
}

/// A stage of the study, with the operations that it takes.
#[derive(Clone)]
pub struct ResolvedStage {
    /// The stage.
    pub stage: Arc<Stage>,
    /// Those of its tasks, in order.
    pub operations: Vec<Arc<dyn Operation>>,
    /// For each output of the stage: the operations of other stages that read it.
    pub readers: Vec<Vec<Arc<dyn Operation>>>,
}

impl fmt::Debug for ResolvedStage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Runnable").field("stage", &self.stage.name).finish_non_exhaustive()
    }
}
