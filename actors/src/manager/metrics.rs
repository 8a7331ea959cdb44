//! What is measured of a manager: counted as it happens, or looked up when somebody asks.

use super::view::ManagerView;
use super::{ManagerActor, TaskTotal};
use crate::transport::LinkStats;
use actix::prelude::*;
use pleach_dispatch::PlanId;
use pleach_dispatch::message::{ReuseSource, TaskOutcome, TaskReport};
use pleach_dispatch::study::InstanceCounts;
use pleach_telemetry::catalog;
use std::time::Duration;

/// Asks for what is measured. Instances are counted for it, which takes some ten milliseconds for a million: it is not
/// for every second.
#[derive(Debug, Message)]
#[rtype(result = "ManagerMetrics")]
pub struct GetManagerMetrics;

/// What is measured when somebody asks.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ManagerMetrics {
    /// Studies and workers.
    pub view: ManagerView,
    /// Studies that run, in numbers.
    pub studies: Vec<StudyMetrics>,
    /// What the links to workers have carried, by the workers' names; of those that have any.
    pub links: Vec<(String, LinkStats)>,
}

/// A study in numbers.
#[derive(Clone, Debug, PartialEq)]
pub struct StudyMetrics {
    /// Its number.
    pub id: PlanId,
    /// Where its instances stand.
    pub census: InstanceCounts,
    /// Buckets that a worker could be given.
    pub ready_buckets: usize,
    /// What its tasks came to until now, all of them together.
    pub tasks: TaskTotal,
    /// What is left, if it has all slots.
    pub remaining_seconds: Option<f64>,
}

/// What is counted as it happens.
pub(super) struct ManagerCounters {
    executed: metrics::Counter,
    reused: [metrics::Counter; 4],
    pub(super) finished: metrics::Counter,
    pub(super) failed: metrics::Counter,
    pub(super) reopened: metrics::Counter,
    wait: metrics::Histogram,
    pub(super) replans: metrics::Counter,
    pub(super) replanned: metrics::Counter,
    pub(super) joins: metrics::Counter,
    pub(super) duplicates: metrics::Counter,
    left: metrics::Counter,
    lost: metrics::Counter,
}

impl ManagerCounters {
    pub(super) fn new() -> Self {
        Self {
            executed: catalog::TASKS_EXECUTED.with([]),
            reused: ["dataflow", "value", "cache", "earlier_round"]
                .map(|level| catalog::TASKS_REUSED.with([level])),
            finished: catalog::INSTANCES_FINISHED.with([]),
            failed: catalog::INSTANCES_FAILED.with([]),
            reopened: catalog::INSTANCES_REOPENED.with([]),
            wait: catalog::BUCKET_WAIT.with([]),
            replans: catalog::REPLANS.with([]),
            replanned: catalog::REPLANNED_INSTANCES.with([]),
            joins: catalog::WORKER_JOINS.with([]),
            duplicates: catalog::DUPLICATE_WORKERS.with([]),
            left: catalog::WORKER_LEAVES.with(["drained"]),
            lost: catalog::WORKER_LEAVES.with(["lost"]),
        }
    }

    pub(super) fn count(&self, tasks: &[TaskReport]) {
        for task in tasks {
            match task.done {
                TaskOutcome::Ran { .. } => &self.executed,
                TaskOutcome::Reused(ReuseSource::Dataflow) => &self.reused[0],
                TaskOutcome::Reused(ReuseSource::Value) => &self.reused[1],
                TaskOutcome::Reused(ReuseSource::Cache) => &self.reused[2],
                TaskOutcome::Reused(ReuseSource::Before) => &self.reused[3],
            }
            .increment(1);
        }
    }

    pub(super) fn waited(&self, wait: Option<Duration>) {
        if let Some(wait) = wait {
            self.wait.record(wait.as_secs_f64());
        }
    }

    pub(super) fn gone(&self, lost: bool) {
        if lost { &self.lost } else { &self.left }.increment(1);
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
        let workers = self.connections.values().filter(|connection| connection.worker.is_some());
        let links = workers
            .filter_map(|connection| Some((connection.newcomer.name.clone(), connection.link.figures()?)));
        MessageResult(ManagerMetrics {
            view: self.look(),
            studies: studies.collect(),
            links: links.collect(),
        })
    }
}
