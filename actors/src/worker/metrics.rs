//! What is measured of a worker: counted as it happens, or looked up when somebody asks.

use super::WorkerActor;
use crate::storage::RamStats;
use crate::transport::LinkStats;
use actix::prelude::*;
use pleach_dispatch::PlanId;
use pleach_dispatch::message::{TaskOutcome, ToManager};
use pleach_telemetry::catalog;
use pleach_workflow::{Registry, Stage};
use std::collections::HashMap;
use std::sync::atomic::Ordering;

/// What executes operations. There is nothing else yet.
const DEVICE: &str = "cpu";

/// Asks for what is measured.
#[derive(Debug, Message)]
#[rtype(result = "WorkerMetrics")]
pub struct GetWorkerMetrics;

/// What is measured when somebody asks.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WorkerMetrics {
    /// There is a link to a manager that has accepted this worker.
    pub is_connected: bool,
    /// It is to leave.
    pub is_draining: bool,
    /// Tasks it can run at once, and those that have a slot.
    pub slots: (usize, usize),
    /// Buckets that wait, and those of which a task has begun.
    pub buckets: (usize, usize),
    /// Of the same, instances whose results the manager has not on disk yet.
    pub instances: (usize, usize),
    /// What it may hold.
    pub limit_bytes: u64,
    /// What is held and reserved.
    pub needed_bytes: u64,
    /// The most that ever was, what is kept as long as there is room included.
    pub peak_bytes: u64,
    /// What the link has carried, if it crosses a network.
    pub link: Option<LinkStats>,
    /// What has been asked of memory.
    pub ram: RamStats,
}

/// What is counted as it happens.
pub(super) struct WorkerCounters {
    /// By study, stage and task.
    task_seconds: HashMap<PlanId, Vec<Vec<metrics::Histogram>>>,
    pub(super) steps: PressureActions,
}

/// See [`catalog::MEMORY_PRESSURE_ACTIONS`].
pub(super) struct PressureActions {
    pub(super) shelf: metrics::Counter,
    pub(super) room: metrics::Counter,
    pub(super) replica: metrics::Counter,
    pub(super) call: metrics::Counter,
}

impl WorkerCounters {
    pub(super) fn new() -> Self {
        let step = |step| catalog::MEMORY_PRESSURE_ACTIONS.with([step]);
        let steps = PressureActions {
            shelf: step("evict_result"),
            room: step("spill"),
            replica: step("drop_replica"),
            call: step("sync_manager"),
        };
        Self { task_seconds: HashMap::new(), steps }
    }

    /// Operations that are not linked in are never executed, whatever their names.
    pub(super) fn begin(&mut self, study: PlanId, stages: &[Stage], registry: &Registry) {
        let of = |stage: &Stage| {
            let tasks = stage.tasks.iter().map(|task| match registry.get(&task.operation, task.version) {
                Some(_) => catalog::TASK_SECONDS.with([&task.operation, DEVICE]),
                None => metrics::Histogram::noop(),
            });
            tasks.collect()
        };
        self.task_seconds.insert(study, stages.iter().map(of).collect());
    }

    pub(super) fn end(&mut self, study: PlanId) {
        self.task_seconds.remove(&study);
    }

    /// Tasks that are reported.
    pub(super) fn count(&self, message: &ToManager) {
        let (ToManager::Done { study, tasks, .. }
        | ToManager::Failed { study, tasks, .. }
        | ToManager::MissingInput { study, tasks, .. }) = message
        else {
            return;
        };
        let Some(stages) = self.task_seconds.get(study) else { return };
        for task in tasks {
            let meter = stages.get(task.stage as usize).and_then(|stage| stage.get(task.task as usize));
            if let (Some(meter), TaskOutcome::Ran { seconds, .. }) = (meter, task.done) {
                meter.record(seconds);
            }
        }
    }
}

impl Handler<GetWorkerMetrics> for WorkerActor {
    type Result = ResponseActFuture<Self, WorkerMetrics>;

    fn handle(&mut self, GetWorkerMetrics: GetWorkerMetrics, _: &mut Self::Context) -> Self::Result {
        let (mut buckets, mut instances) = ((0, 0), (0, 0));
        for lease in self.running.keys() {
            let open = self.unsafe_reports.open(*lease);
            if self.core.is_under_way(*lease) {
                (buckets.1, instances.1) = (buckets.1 + 1, instances.1 + open);
            } else {
                (buckets.0, instances.0) = (buckets.0 + 1, instances.0 + open);
            }
        }
        let figures = WorkerMetrics {
            is_connected: self.link.is_some() && (self.is_welcome || self.setup.remote.is_none()),
            is_draining: self.draining,
            slots: (self.setup.resources.slots.get() as usize, self.core.running()),
            buckets,
            instances,
            limit_bytes: self.setup.resources.memory_bytes,
            needed_bytes: self.core.needed_bytes(),
            peak_bytes: self.setup.peak_bytes.load(Ordering::Relaxed),
            link: self.link.as_deref().and_then(|link| link.figures()),
            ram: RamStats::default(),
        };
        let asked = self.setup.storage.send(crate::storage::GetRamStats).into_actor(self);
        Box::pin(asked.map(move |ram, _, _| WorkerMetrics { ram: ram.unwrap_or_default(), ..figures }))
    }
}
