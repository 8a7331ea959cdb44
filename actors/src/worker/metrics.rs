//! Metrics of a worker: counters updated by events, and values computed on request.

use super::WorkerActor;
use crate::directory::{DirectoryHandle, DirectoryMetrics};
use crate::storage::RamStats;
use crate::transport::LinkStats;
use actix::prelude::*;
use pleach_dispatch::PlanId;
use pleach_dispatch::message::{TaskOutcome, TaskReport};
use pleach_telemetry::catalog;
use pleach_workflow::{Registry, Stage};
use std::collections::HashMap;
use std::sync::atomic::Ordering;

/// Device that executes operations. CPU is the only kind so far.
const DEVICE: &str = "cpu";

/// Requests the metrics.
#[derive(Debug, Message)]
#[rtype(result = "WorkerMetrics")]
pub struct GetWorkerMetrics;

/// Metrics computed on request.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WorkerMetrics {
    /// The worker has a link to a manager that has accepted it.
    pub is_connected: bool,
    /// The worker is draining.
    pub is_draining: bool,
    /// Slots of the worker, and occupied slots.
    pub slots: (usize, usize),
    /// Waiting buckets, and started buckets.
    pub buckets: (usize, usize),
    /// Instances of waiting and of started buckets whose results are not on the manager's disk yet.
    pub instances: (usize, usize),
    /// Memory limit.
    pub limit_bytes: u64,
    /// Bytes held and reserved.
    pub needed_bytes: u64,
    /// Peak bytes, including results kept only while memory is free.
    pub peak_bytes: u64,
    /// Statistics of the link, if it crosses a network.
    pub link: Option<LinkStats>,
    /// Statistics of requests to memory.
    pub ram: RamStats,
    /// Counters of the result directory.
    pub directory: DirectoryMetrics,
}

/// Counters updated by events.
pub(super) struct WorkerCounters {
    /// By study, stage and task.
    task_seconds: HashMap<PlanId, Vec<Vec<metrics::Histogram>>>,
    pub(super) pressure: PressureActions,
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
        let action = |action| catalog::MEMORY_PRESSURE_ACTIONS.with([action]);
        let pressure = PressureActions {
            shelf: action("evict_result"),
            room: action("spill"),
            replica: action("drop_replica"),
            call: action("sync_manager"),
        };
        Self { task_seconds: HashMap::new(), pressure }
    }

    /// Only linked operations get histograms, because others are never executed.
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

    /// Counts the tasks of a report.
    pub(super) fn count(&self, study: PlanId, tasks: &[TaskReport]) {
        let Some(stages) = self.task_seconds.get(&study) else { return };
        for task in tasks {
            let meter = stages.get(task.stage as usize).and_then(|stage| stage.get(task.task as usize));
            if let (Some(meter), TaskOutcome::Ran { seconds, .. }) = (meter, task.done) {
                meter.record(seconds);
            }
        }
    }
}

impl WorkerActor {
    /// Returns whether a manager has accepted the worker. The manager of an embedded run accepts it without a message.
    fn is_connected(&self) -> bool {
        self.connection.is_accepted() || (self.connection.is_open() && self.setup.remote.is_none())
    }
}

impl Handler<GetWorkerMetrics> for WorkerActor {
    type Result = ResponseActFuture<Self, WorkerMetrics>;

    fn handle(&mut self, GetWorkerMetrics: GetWorkerMetrics, _: &mut Self::Context) -> Self::Result {
        let (mut buckets, mut instances) = ((0, 0), (0, 0));
        for lease in self.running.leases() {
            let open = self.leases.open_instances(lease);
            if self.core.is_started(lease) {
                (buckets.1, instances.1) = (buckets.1 + 1, instances.1 + open);
            } else {
                (buckets.0, instances.0) = (buckets.0 + 1, instances.0 + open);
            }
        }
        let figures = WorkerMetrics {
            is_connected: self.is_connected(),
            is_draining: self.departure.is_draining(),
            slots: (self.setup.resources.slots.get() as usize, self.core.running()),
            buckets,
            instances,
            limit_bytes: self.setup.resources.memory_bytes,
            needed_bytes: self.core.needed_bytes(),
            peak_bytes: self.setup.peak_bytes.load(Ordering::Relaxed),
            link: self.connection.stats(),
            ram: RamStats::default(),
            directory: DirectoryMetrics::default(),
        };
        let ram = self.setup.storage.send(crate::storage::GetRamStats);
        let directory = self.tasks.directory().map(DirectoryHandle::metrics);
        let sampled = async move {
            let ram = ram.await.unwrap_or_default();
            let directory = match directory {
                Some(asked) => asked.await.unwrap_or_default(),
                None => DirectoryMetrics::default(),
            };
            WorkerMetrics { ram, directory, ..figures }
        };
        Box::pin(sampled.into_actor(self))
    }
}
