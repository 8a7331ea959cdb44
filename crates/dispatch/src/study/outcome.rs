//! Outcome of a study: reported results, failures, and totals of its tasks.
//!
//! The manager's shell collects it from the effects and reports of a study. `pleach-results` computes responses from it.

mod results;

use crate::SlotKind;
use crate::directory::MemberId;
use crate::message::{ReuseSource, TaskFailure, TaskOutcome, TaskReport};
use crate::{InstanceId, LeaseId};
pub use results::ReportedResults;
use std::collections::{BTreeMap, HashMap};

/// A failed instance, with the origin and cause of the failure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstanceFailure {
    /// The instance whose task failed: this one or an ancestor.
    pub origin: InstanceId,
    /// Cause of the failure.
    pub cause: TaskFailure,
}

/// Reports of one worker, in their order.
#[derive(Clone, Copy, Debug)]
pub struct WorkerReports<'a> {
    /// Name of the worker.
    pub worker: &'a str,
    /// Names of the present workers, by their number in the result directory.
    pub members: &'a HashMap<MemberId, String>,
    /// The reports.
    pub reports: &'a [InstanceReport<'a>],
}

impl<'a> WorkerReports<'a> {
    /// Returns the tasks of all reports.
    pub fn tasks(&self) -> impl Iterator<Item = &'a TaskReport> {
        self.reports.iter().flat_map(|report| report.tasks)
    }
}

/// A worker's report on an instance, with the tasks done since its last report.
#[derive(Clone, Copy, Debug)]
pub struct InstanceReport<'a> {
    /// The lease that it reports under.
    pub lease: LeaseId,
    /// The instance.
    pub instance: InstanceId,
    /// End of the instance under this lease.
    pub end: InstanceEnd,
    /// Tasks, for any instances of the bucket.
    pub tasks: &'a [TaskReport],
}

/// End of an instance under a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InstanceEnd {
    /// The instance is finished.
    Finished,
    /// A task failed.
    Failed,
    /// An input region was missing: the instance is granted again.
    MissingInput,
    /// Another report was first, or the lease had expired.
    Late,
    /// The instance went back to the manager, after tasks of it were done.
    Returned,
}

/// Outcome of a study.
#[derive(Debug, Default)]
pub struct StudyOutcome {
    /// Reported tables of finished instances.
    pub results: ReportedResults,
    /// Instances that failed.
    pub failures: BTreeMap<InstanceId, InstanceFailure>,
    /// Tasks run and the seconds they took, by (stage, task).
    pub tasks: BTreeMap<(usize, usize), TaskTotal>,
    /// Stage instances finished.
    pub finished: usize,
    /// The study was stopped before it was complete.
    pub stopped: bool,
}

/// Runs, times and reuses of a task.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TaskTotal {
    /// Runs.
    pub runs: u64,
    /// Wall seconds, summed over runs.
    pub seconds: f64,
    /// Runs on accelerators, which `runs` includes.
    pub accelerator_runs: u64,
    /// Wall seconds of these runs, transfers included, which `seconds` includes.
    pub accelerator_seconds: f64,
    /// Wall seconds predicted just before each run, summed over runs.
    pub predicted_seconds: f64,
    /// Absolute prediction error in seconds, summed over runs.
    pub error_seconds: f64,
    /// Digests computed of regions that the task wrote.
    pub digests: u64,
    /// Wall seconds spent on those digests.
    pub digest_seconds: f64,
    /// Reuses because another bucket had run the same task.
    pub reused_by_dataflow: u64,
    /// Reuses because the inputs had content equal to those of another task.
    pub reused_by_value: u64,
    /// Reuses because an earlier study had run the task.
    pub reused_by_cache: u64,
    /// Reuses because an earlier plan of the study had run the task.
    pub reused_from_before: u64,
    /// Runs avoided because another worker had run the task.
    pub reused_from_peers: u64,
    /// Tasks that did not run because of their guard, in loops and choices.
    pub skipped: u64,
    /// Wall seconds of task cache lookups and writes.
    pub cache_seconds: f64,
}

impl TaskTotal {
    /// Adds the totals of `other`.
    pub fn add(&mut self, other: &Self) {
        self.runs += other.runs;
        self.seconds += other.seconds;
        self.accelerator_runs += other.accelerator_runs;
        self.accelerator_seconds += other.accelerator_seconds;
        self.predicted_seconds += other.predicted_seconds;
        self.error_seconds += other.error_seconds;
        self.digests += other.digests;
        self.digest_seconds += other.digest_seconds;
        self.reused_by_dataflow += other.reused_by_dataflow;
        self.reused_by_value += other.reused_by_value;
        self.reused_by_cache += other.reused_by_cache;
        self.reused_from_before += other.reused_from_before;
        self.reused_from_peers += other.reused_from_peers;
        self.skipped += other.skipped;
        self.cache_seconds += other.cache_seconds;
    }
}

impl StudyOutcome {
    /// Returns the totals over all tasks so far.
    #[must_use]
    pub fn all_tasks(&self) -> TaskTotal {
        let mut all = TaskTotal::default();
        self.tasks.values().for_each(|task| all.add(task));
        all
    }

    /// Counts the tasks of a report. Tasks of late reports count too, because they ran.
    pub fn count<'a>(&mut self, tasks: impl IntoIterator<Item = &'a TaskReport>) {
        for task in tasks {
            let total = self.tasks.entry((task.stage as usize, task.task as usize)).or_default();
            match task.done {
                TaskOutcome::Ran { seconds, predicted_seconds, digests, digest_seconds } => {
                    total.runs += 1;
                    total.seconds += seconds;
                    if task.provenance.device == SlotKind::Accelerator {
                        total.accelerator_runs += 1;
                        total.accelerator_seconds += seconds;
                    }
                    total.predicted_seconds += predicted_seconds;
                    total.error_seconds += (predicted_seconds - seconds).abs();
                    total.digests += u64::from(digests);
                    total.digest_seconds += digest_seconds;
                }
                TaskOutcome::Reused(ReuseSource::Dataflow) => total.reused_by_dataflow += 1,
                TaskOutcome::Reused(ReuseSource::Value) => total.reused_by_value += 1,
                TaskOutcome::Reused(ReuseSource::Cache) => total.reused_by_cache += 1,
                TaskOutcome::Reused(ReuseSource::Before) => total.reused_from_before += 1,
                TaskOutcome::Reused(ReuseSource::Peer) => total.reused_from_peers += 1,
                TaskOutcome::Skipped => total.skipped += 1,
            }
            total.cache_seconds += task.cache_seconds;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::TaskProvenance;

    #[test]
    fn reports_add_up_by_task() {
        let provenance = TaskProvenance::default();
        let report =
            |stage, task, done, cache_seconds| TaskReport { stage, task, done, cache_seconds, provenance };
        let ran = |seconds, predicted_seconds| TaskOutcome::Ran {
            seconds,
            predicted_seconds,
            digests: 1,
            digest_seconds: 0.125,
        };
        let mut outcome = StudyOutcome::default();
        outcome.count(&[
            report(0, 1, ran(1.0, 1.5), 0.25),
            report(0, 1, ran(2.0, 1.0), 0.0),
            report(0, 1, TaskOutcome::Reused(ReuseSource::Cache), 0.5),
        ]);
        outcome.count(&[
            report(1, 0, TaskOutcome::Reused(ReuseSource::Dataflow), 0.0),
            report(1, 0, TaskOutcome::Reused(ReuseSource::Value), 0.0),
            report(1, 0, TaskOutcome::Reused(ReuseSource::Before), 0.0),
            report(1, 0, TaskOutcome::Skipped, 0.0),
        ]);
        let first = TaskTotal {
            runs: 2,
            seconds: 3.0,
            predicted_seconds: 2.5,
            error_seconds: 1.5,
            digests: 2,
            digest_seconds: 0.25,
            reused_by_cache: 1,
            cache_seconds: 0.75,
            ..TaskTotal::default()
        };
        let second = TaskTotal {
            reused_by_dataflow: 1,
            reused_by_value: 1,
            reused_from_before: 1,
            skipped: 1,
            ..TaskTotal::default()
        };
        assert_eq!(outcome.tasks, BTreeMap::from([((0, 1), first), ((1, 0), second)]));
        let all = TaskTotal {
            reused_by_dataflow: 1,
            reused_by_value: 1,
            reused_from_before: 1,
            skipped: 1,
            ..first
        };
        assert_eq!(outcome.all_tasks(), all);
    }
}
