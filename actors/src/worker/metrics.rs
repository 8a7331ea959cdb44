//! Metrics of a worker: counters updated by events, and values computed on request.

use super::WorkerActor;
use crate::directory::{DirectoryHandle, DirectoryMetrics};
use crate::storage::RamStats;
use crate::transport::LinkStats;
use actix::prelude::*;
use pleach_dispatch::PlanId;
use pleach_dispatch::SlotKind;
use pleach_dispatch::message::{TaskOutcome, TaskReport};
use pleach_dispatch::stage::GAIN_UNIT;
use pleach_telemetry::catalog;
use pleach_workflow::{Operation, Registry, Stage, Task};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Label of each kind of slot.
const fn device_label(kind: SlotKind) -> &'static str {
    match kind {
        SlotKind::Core => "cpu",
        SlotKind::Accelerator => "accelerator",
    }
}

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
    /// Slots of the worker on cores, and occupied slots of both kinds.
    pub slots: (usize, usize),
    /// State of the accelerators and of their slots.
    pub accelerators: AcceleratorMetrics,
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

/// State of accelerators and of slots by kind.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AcceleratorMetrics {
    /// Occupied slots of cores, and of accelerators.
    pub running: (usize, usize),
    /// Slots of accelerators.
    pub slots: usize,
    /// Slots of accelerators that are closed after errors.
    pub closed: usize,
    /// Name, bytes in use and limit of each device.
    pub devices: Vec<(String, u64, u64)>,
    /// Bytes that were uploaded to devices ahead of their tasks, and those of them that a task has used.
    pub prefetched_bytes: (u64, u64),
    /// Gain of each operation of the present studies that accelerators can run.
    pub gains: Vec<(&'static str, f64)>,
}

/// Histograms of a task on cores and on accelerators.
struct TaskMeters {
    cpu: metrics::Histogram,
    accelerator: metrics::Histogram,
}

/// Counters updated by events.
pub(super) struct WorkerCounters {
    /// By study, stage and task.
    task_seconds: HashMap<PlanId, Vec<Vec<TaskMeters>>>,
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
        // So that each series exists before its first error.
        for cause in ["lost", "memory", "compile", "timeout", "result", "other"] {
            catalog::DEVICE_ERRORS.with([cause]).increment(0);
        }
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
        let meter = |task: &Task, kind, is_executed| match is_executed {
            true => catalog::TASK_SECONDS.with([&task.operation, device_label(kind)]),
            false => metrics::Histogram::noop(),
        };
        let of = |stage: &Stage| {
            let tasks = stage.tasks.iter().map(|task| {
                let operation = registry.get(&task.operation, task.version);
                // Only operations with a device variant get a second histogram.
                let is_accelerated = operation.is_some_and(|operation| {
                    operation.accelerated().is_some() || operation.needs_accelerator()
                });
                TaskMeters {
                    cpu: meter(task, SlotKind::Core, operation.is_some()),
                    accelerator: meter(task, SlotKind::Accelerator, is_accelerated),
                }
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
            let meters = stages.get(task.stage as usize).and_then(|stage| stage.get(task.task as usize));
            if let (Some(meters), TaskOutcome::Ran { seconds, .. }) = (meters, task.done) {
                match task.provenance.device {
                    SlotKind::Core => meters.cpu.record(seconds),
                    SlotKind::Accelerator => meters.accelerator.record(seconds),
                }
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

impl WorkerActor {
    fn accelerator_metrics(&self) -> AcceleratorMetrics {
        let states = self.setup.resources.accelerators.states();
        AcceleratorMetrics {
            running: self.tasks.occupied_by_kind(),
            slots: states.len(),
            closed: self.tasks.closed_slots().len(),
            devices: states
                .iter()
                .map(|state| (state.name().to_owned(), state.used_bytes(), state.memory_bytes()))
                .collect(),
            prefetched_bytes: states
                .iter()
                .map(|state| state.prefetched_bytes())
                .fold((0, 0), |(uploaded, used), (more_uploaded, more_used)| {
                    (uploaded + more_uploaded, used + more_used)
                }),
            gains: if states.is_empty() { Vec::new() } else { self.gains() },
        }
    }

    /// Returns the gain of each operation with a device variant.
    fn gains(&self) -> Vec<(&'static str, f64)> {
        let costs = self.setup.costs.lock();
        let operations: BTreeMap<_, _> = self.studies.operations().map(|op| (op.name(), op)).collect();
        let gain = |(name, operation): (&'static str, &Arc<dyn Operation>)| {
            let declared = operation.accelerated()?.gain();
            let gain = costs.device_gain(&**operation, &[], declared);
            Some((name, f64::from(gain.thousandths) / f64::from(GAIN_UNIT)))
        };
        operations.into_iter().filter_map(gain).collect()
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
            accelerators: self.accelerator_metrics(),
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
