//! What is measured of a manager: counted as it happens, or looked up when somebody asks.

use super::view::ManagerView;
use super::{ManagerActor, TaskTotal};
use crate::transport::LinkFigures;
use actix::prelude::*;
use pleach_dispatch::StudyId;
use pleach_dispatch::message::{Reused, TaskDone, TaskReport};
use pleach_dispatch::study::Census;
use pleach_telemetry::catalogue;
use std::time::Duration;

/// Asks for what is measured. Instances are counted for it, which takes some ten milliseconds for a million: it is not
/// for every second.
#[derive(Debug, Message)]
#[rtype(result = "ManagerFigures")]
pub struct Measure;

/// What is measured when somebody asks.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ManagerFigures {
    /// Studies and workers.
    pub view: ManagerView,
    /// Studies that run, in numbers.
    pub studies: Vec<StudyFigures>,
    /// What the links to workers have carried, by the workers' names; of those that have any.
    pub links: Vec<(String, LinkFigures)>,
}

/// A study in numbers.
#[derive(Clone, Debug, PartialEq)]
pub struct StudyFigures {
    /// Its number.
    pub id: StudyId,
    /// Where its instances stand.
    pub census: Census,
    /// Buckets that a worker could be given.
    pub ready_buckets: usize,
    /// What its tasks came to until now, all of them together.
    pub tasks: TaskTotal,
    /// What is left, if it has all slots.
    pub seconds_left: Option<f64>,
}

/// What is counted as it happens.
pub(super) struct Meters {
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

impl Meters {
    pub(super) fn new() -> Self {
        Self {
            executed: catalogue::TASKS_EXECUTED.with([]),
            reused: ["dataflow", "value", "cache", "earlier"]
                .map(|level| catalogue::TASKS_REUSED.with([level])),
            finished: catalogue::INSTANCES_FINISHED.with([]),
            failed: catalogue::INSTANCES_FAILED.with([]),
            reopened: catalogue::INSTANCES_REOPENED.with([]),
            wait: catalogue::BUCKET_WAIT.with([]),
            replans: catalogue::REPLANS.with([]),
            replanned: catalogue::REPLANNED_INSTANCES.with([]),
            joins: catalogue::WORKER_JOINS.with([]),
            duplicates: catalogue::DUPLICATE_WORKERS.with([]),
            left: catalogue::WORKER_LEAVES.with(["left"]),
            lost: catalogue::WORKER_LEAVES.with(["lost"]),
        }
    }

    pub(super) fn count(&self, tasks: &[TaskReport]) {
        for task in tasks {
            match task.done {
                TaskDone::Ran { .. } => &self.executed,
                TaskDone::Reused(Reused::Dataflow) => &self.reused[0],
                TaskDone::Reused(Reused::Value) => &self.reused[1],
                TaskDone::Reused(Reused::Cache) => &self.reused[2],
                TaskDone::Reused(Reused::Before) => &self.reused[3],
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

impl Handler<Measure> for ManagerActor {
    type Result = MessageResult<Measure>;

    fn handle(&mut self, Measure: Measure, _: &mut Self::Context) -> Self::Result {
        let slots = self.core.slots_by_speed();
        let studies = self.studies.iter().filter_map(|(id, running)| {
            let study = self.core.study(*id)?;
            Some(StudyFigures {
                id: *id,
                census: study.census(),
                ready_buckets: study.ready_buckets(),
                tasks: running.outcome.all_tasks(),
                seconds_left: study.seconds_left(slots),
            })
        });
        let workers = self.connections.values().filter(|connection| connection.worker.is_some());
        let links = workers
            .filter_map(|connection| Some((connection.newcomer.name.clone(), connection.link.figures()?)));
        MessageResult(ManagerFigures {
            view: self.look(),
            studies: studies.collect(),
            links: links.collect(),
        })
    }
}
