//! What a study comes to, and what is told on the way.

use pleach_dispatch::InstanceId;
use pleach_dispatch::message::{ReuseSource, TaskFailure, TaskOutcome, TaskReport};
use pleach_regions::Table;
use std::collections::{BTreeMap, HashMap};

/// A failed instance: the one whose task failed, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstanceFailure {
    /// The instance whose task failed: this one or an ancestor.
    pub origin: InstanceId,
    /// Why.
    pub cause: TaskFailure,
}

/// What a study came to.
#[derive(Debug, Default)]
pub struct StudyOutcome {
    /// Reported tables of finished instances.
    pub results: HashMap<InstanceId, Vec<Table>>,
    /// Instances that failed.
    pub failures: BTreeMap<InstanceId, InstanceFailure>,
    /// Tasks run and the seconds they took, by (stage, task).
    pub tasks: BTreeMap<(usize, usize), TaskTotal>,
    /// Stage instances finished.
    pub finished: usize,
    /// The study was stopped before it was complete.
    pub stopped: bool,
}

/// How often a task ran, for how long, and how often it did not have to.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TaskTotal {
    /// Runs.
    pub runs: u64,
    /// Wall seconds, summed over runs.
    pub seconds: f64,
    /// Wall seconds that they were believed to take, each just before it ran.
    pub predicted_seconds: f64,
    /// By how much those were wrong, summed over runs.
    pub error_seconds: f64,
    /// Regions that it wrote of which the digest was taken.
    pub digests: u64,
    /// Wall seconds that took.
    pub digest_seconds: f64,
    /// How often it did not have to run, since another bucket had run the same.
    pub reused_by_dataflow: u64,
    /// How often it did not have to run, since its inputs had turned out equal to others'.
    pub reused_by_value: u64,
    /// How often it did not have to run, since an earlier study had run it.
    pub reused_by_cache: u64,
    /// How often it did not have to run, since an earlier plan of the study had run it.
    pub reused_from_before: u64,
    /// Wall seconds of finding and keeping among what earlier studies have computed.
    pub cache_seconds: f64,
}

/// How far a study is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Stage instances finished or failed.
    pub instances: usize,
    /// Stage instances in all.
    pub all_instances: usize,
    /// Tasks run.
    pub tasks: u64,
    /// Stage instances failed.
    pub failed: usize,
}

/// What an observer is told.
#[derive(Clone, Copy, Debug)]
pub enum StudyEvent<'a> {
    /// An instance that reports results is finished. It is told before anything that follows from it.
    Reported {
        /// The instance.
        instance: InstanceId,
        /// Its results.
        results: &'a [Table],
    },
    /// An instance failed.
    Failed(InstanceId),
    /// Tasks were done, for whichever instances.
    Done(&'a [TaskReport]),
    /// How far the study is, after each report of a worker.
    Progress(Progress),
}

/// Follows a study.
pub type Observer = Box<dyn FnMut(StudyEvent<'_>) + Send>;

impl TaskTotal {
    /// Adds what it came to elsewhere.
    pub fn add(&mut self, other: &Self) {
        self.runs += other.runs;
        self.seconds += other.seconds;
        self.predicted_seconds += other.predicted_seconds;
        self.error_seconds += other.error_seconds;
        self.digests += other.digests;
        self.digest_seconds += other.digest_seconds;
        self.reused_by_dataflow += other.reused_by_dataflow;
        self.reused_by_value += other.reused_by_value;
        self.reused_by_cache += other.reused_by_cache;
        self.reused_from_before += other.reused_from_before;
        self.cache_seconds += other.cache_seconds;
    }
}

impl StudyOutcome {
    /// What all tasks came to until now.
    pub(super) fn all_tasks(&self) -> TaskTotal {
        let mut all = TaskTotal::default();
        self.tasks.values().for_each(|task| all.add(task));
        all
    }

    /// Tasks are counted whether or not the report was in time: they were run.
    pub(super) fn count(&mut self, tasks: &[TaskReport]) {
        for task in tasks {
            let total = self.tasks.entry((task.stage as usize, task.task as usize)).or_default();
            match task.done {
                TaskOutcome::Ran { seconds, predicted_seconds, digests, digest_seconds } => {
                    total.runs += 1;
                    total.seconds += seconds;
                    total.predicted_seconds += predicted_seconds;
                    total.error_seconds += (predicted_seconds - seconds).abs();
                    total.digests += u64::from(digests);
                    total.digest_seconds += digest_seconds;
                }
                TaskOutcome::Reused(ReuseSource::Dataflow) => total.reused_by_dataflow += 1,
                TaskOutcome::Reused(ReuseSource::Value) => total.reused_by_value += 1,
                TaskOutcome::Reused(ReuseSource::Cache) => total.reused_by_cache += 1,
                TaskOutcome::Reused(ReuseSource::Before) => total.reused_from_before += 1,
            }
            total.cache_seconds += task.cache_seconds;
        }
    }
}
