//! Metrics of a manager: counters updated by events, and values computed on request.

use super::ManagerActor;
use super::view::ManagerView;
use crate::transport::LinkStats;
use actix::prelude::*;
use pleach_dispatch::message::{ReuseSource, TaskOutcome, TaskReport};
use pleach_dispatch::storage::CopyPlace;
use pleach_dispatch::study::{InstanceCounts, Study, TaskTotal};
use pleach_dispatch::{BucketId, LeaseId, PlanId, WorkerId};
use pleach_telemetry::catalog;

/// Requests the metrics. Counting instances takes about 10 ms per million, so callers must not request them every
/// second.
#[derive(Debug, Message)]
#[rtype(result = "ManagerMetrics")]
pub struct GetManagerMetrics;

/// Metrics computed on request.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ManagerMetrics {
    /// Studies and workers.
    pub view: ManagerView,
    /// Metrics of running studies.
    pub studies: Vec<StudyMetrics>,
    /// Statistics of the links to workers, by worker name. Links without statistics are omitted.
    pub links: Vec<(String, LinkStats)>,
}

/// Metrics of one study.
#[derive(Clone, Debug, PartialEq)]
pub struct StudyMetrics {
    /// Plan id.
    pub id: PlanId,
    /// Instances by state.
    pub census: InstanceCounts,
    /// Buckets ready to be leased.
    pub ready_buckets: usize,
    /// Totals over all its tasks so far.
    pub tasks: TaskTotal,
    /// Predicted remaining time if the study gets all slots.
    pub remaining_seconds: Option<f64>,
}

/// Counters updated by events.
pub(super) struct ManagerCounters {
    executed: metrics::Counter,
    reused: [metrics::Counter; 5],
    pub(super) finished: metrics::Counter,
    pub(super) failed: metrics::Counter,
    pub(super) reopened: metrics::Counter,
    wait: metrics::Histogram,
    input_bytes: [metrics::Counter; CopyPlace::ALL.len()],
    pub(super) overhead: metrics::Histogram,
    pub(super) replans: [metrics::Counter; 2],
    pub(super) replanned: metrics::Counter,
    pub(super) joins: metrics::Counter,
    pub(super) duplicates: metrics::Counter,
    drained: metrics::Counter,
    lost: metrics::Counter,
}

impl ManagerCounters {
    pub(super) fn new() -> Self {
        Self {
            executed: catalog::TASKS_EXECUTED.with([]),
            reused: ["dataflow", "value", "cache", "earlier_round", "peer"]
                .map(|level| catalog::TASKS_REUSED.with([level])),
            finished: catalog::INSTANCES_FINISHED.with([]),
            failed: catalog::INSTANCES_FAILED.with([]),
            reopened: catalog::INSTANCES_REOPENED.with([]),
            wait: catalog::BUCKET_WAIT.with([]),
            input_bytes: CopyPlace::ALL.map(|place| catalog::GRANTED_INPUT_BYTES.with([place.name()])),
            overhead: catalog::BUCKET_OVERHEAD.with([]),
            replans: ["workers", "costs"].map(|cause| catalog::REPLANS.with([cause])),
            replanned: catalog::REPLANNED_INSTANCES.with([]),
            joins: catalog::WORKER_JOINS.with([]),
            duplicates: catalog::DUPLICATE_WORKERS.with([]),
            drained: catalog::WORKER_LEAVES.with(["drained"]),
            lost: catalog::WORKER_LEAVES.with(["lost"]),
        }
    }

    /// Counts the tasks of reports.
    pub(super) fn count<'a>(&self, tasks: impl Iterator<Item = &'a TaskReport>) {
        // Summed first: each increment is an atomic operation behind a lock.
        let (mut executed, mut reused) = (0, [0; 5]);
        for task in tasks {
            match task.done {
                TaskOutcome::Ran { .. } => executed += 1,
                TaskOutcome::Skipped => {}
                TaskOutcome::Reused(ReuseSource::Dataflow) => reused[0] += 1,
                TaskOutcome::Reused(ReuseSource::Value) => reused[1] += 1,
                TaskOutcome::Reused(ReuseSource::Cache) => reused[2] += 1,
                TaskOutcome::Reused(ReuseSource::Before) => reused[3] += 1,
                TaskOutcome::Reused(ReuseSource::Peer) => reused[4] += 1,
            }
        }
        let counters = [&self.executed].into_iter().chain(&self.reused);
        for (counter, tasks) in
            counters.zip([executed].into_iter().chain(reused)).filter(|(_, tasks)| *tasks > 0)
        {
            counter.increment(tasks);
        }
    }

    /// Counts a replan for other workers, or for measured costs alone.
    pub(super) fn count_replan(&self, for_workers: bool) {
        self.replans[usize::from(!for_workers)].increment(1);
    }

    /// Counts a bucket of a study that was leased to a worker.
    pub(super) fn count_grant(&self, study: &Study, lease: LeaseId, bucket: BucketId, worker: WorkerId) {
        if let Some(wait) = study.queue_wait(lease) {
            self.wait.record(wait.as_secs_f64());
        }
        let input_bytes = study.input_bytes(bucket, worker);
        for (counter, bytes) in self.input_bytes.iter().zip(input_bytes).filter(|(_, bytes)| *bytes > 0) {
            counter.increment(bytes);
        }
    }

    pub(super) fn record_departure(&self, lost: bool) {
        if lost { &self.lost } else { &self.drained }.increment(1);
    }
}

impl Handler<GetManagerMetrics> for ManagerActor {
    type Result = MessageResult<GetManagerMetrics>;

    fn handle(&mut self, GetManagerMetrics: GetManagerMetrics, _: &mut Self::Context) -> Self::Result {
        let slots = self.core.slots_by_speed();
        let studies = self.studies.iter().filter_map(|(id, running)| {
            let study = self.core.study(*id)?;
            Some(StudyMetrics {
                id: *id,
                census: study.census(),
                ready_buckets: study.ready_buckets(),
                tasks: running.outcome.all_tasks(),
                remaining_seconds: study.predicted_remaining_seconds(slots),
            })
        });
        let links = self.connections.joined().filter_map(|(_, connection)| {
            Some((connection.newcomer.name.clone(), connection.link.figures()?))
        });
        MessageResult(ManagerMetrics {
            view: self.snapshot(),
            studies: studies.collect(),
            links: links.collect(),
        })
    }
}
