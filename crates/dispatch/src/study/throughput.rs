//! Throughput of a study: the time per instance as seen by the manager, and the time per task as reported by workers.
//!
//! The first identifies stragglers, the second measures the speed of each worker and the work it can finish before its time
//! limit. Nothing is predicted without a measurement.

use super::Study;
use crate::message::{TaskOutcome, TaskReport};
use crate::{BucketId, InstanceId, LeaseId, WorkerId};
use std::time::Duration;

/// Measured time of some tasks of one worker, and their expected time, which is the mean over all workers.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct TaskTimings {
    pub(crate) tasks: u32,
    pub(crate) seconds: f64,
    pub(crate) expected_seconds: f64,
}

impl TaskTimings {
    /// Adds the timings of other tasks of the same worker.
    pub(crate) fn add(&mut self, other: Self) {
        self.tasks += other.tasks;
        self.seconds += other.seconds;
        self.expected_seconds += other.expected_seconds;
    }
}

impl Study {
    /// Records the time of an instance that is about to be reported. Ignores reports that will not
    /// count.
    pub(super) fn record_report(
        &mut self,
        worker: WorkerId,
        lease: LeaseId,
        instance: InstanceId,
        now: Duration,
    ) {
        if let Some(silent) = self.leases.record_report(worker, lease, instance, now) {
            self.throughput.record_report(self.plan.instances.at(instance).stage, silent);
            self.clocks.report(worker, lease, instance, now);
        }
    }

    /// Records tasks that were run for an instance or for its bucket. Ignores invalid times and unknown tasks, since workers
    /// report them.
    #[expect(clippy::cast_precision_loss, reason = "a weight")]
    pub(crate) fn handle_ran(&mut self, instance: InstanceId, tasks: &[TaskReport]) -> TaskTimings {
        self.clocks.handle_tasks(instance, tasks);
        let mut ran = TaskTimings::default();
        let Some(bucket) = self.instances.find_bucket_of(instance) else { return ran };
        let pixels = self.plan.buckets[bucket.index()].pixels.max(1) as f64;
        for report in tasks {
            let TaskOutcome::Ran { seconds, .. } = report.done else { continue };
            let (stage, task) = (report.stage as usize, report.task as usize);
            let Some(expected) = self.throughput.record_task(stage, task, seconds, pixels) else { continue };
            ran.tasks += 1;
            ran.seconds += seconds;
            ran.expected_seconds += expected;
        }
        ran
    }

    /// Returns the mean task time of an instance of a stage, on workers of mean speed and with its reuse.
    /// `None` until an instance has been finished and its task times have been reported.
    #[must_use]
    pub fn seconds_per_instance(&self, stage: usize) -> Option<f64> {
        self.throughput.seconds_per_instance(stage)
    }

    /// Returns the stage of a bucket and its planned number of instances.
    pub(crate) fn planned(&self, bucket: BucketId) -> (usize, usize) {
        let instances = &self.plan.buckets[bucket.index()].instances;
        (self.plan.instances.at(instances[0]).stage, instances.len())
    }
}
