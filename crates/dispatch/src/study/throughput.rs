//! Throughput of a study: the time per instance as seen by the manager, and the time per task as reported by workers.
//!
//! The first identifies stragglers, the second measures the speed of each worker and the work it can finish before its time
//! limit. Nothing is predicted without a measurement.

use super::{Lease, Study};
use crate::message::{TaskOutcome, TaskReport};
use crate::{BucketId, InstanceId, LeaseId, WorkerId};
use std::time::Duration;

/// Measurements of one stage.
#[derive(Clone, Debug, Default)]
pub(super) struct StageThroughput {
    /// Finished instances.
    instances: u32,
    /// Sum of the times from one report of a lease to the next.
    silent: Duration,
    /// Sum of the times of its tasks, on all workers.
    task_seconds: f64,
    /// By task.
    tasks: Vec<Rate>,
}

/// Time of all runs of one task, in relation to the size of the images: tiles may differ much.
#[derive(Clone, Copy, Debug, Default)]
struct Rate {
    seconds: f64,
    pixels: f64,
}

/// Measured time of some tasks of one worker, and their expected time, which is the mean over all workers.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct TaskTimings {
    pub(crate) tasks: u32,
    pub(crate) seconds: f64,
    pub(crate) expected_seconds: f64,
}

impl StageThroughput {
    pub(super) fn of(tasks: usize) -> Self {
        Self { tasks: vec![Rate::default(); tasks], ..Self::default() }
    }
}

impl Study {
    /// Records the time of an instance that is about to be reported. Ignores reports that will not
    /// count.
    pub(super) fn keep_pace(
        &mut self,
        worker: WorkerId,
        lease: LeaseId,
        instance: InstanceId,
        now: Duration,
    ) {
        let own = |lease: &&mut Lease| lease.worker == worker && lease.open.contains(&instance);
        let Some(lease) = self.leases.get_mut(&lease).filter(own) else { return };
        let took = now.saturating_sub(std::mem::replace(&mut lease.since, now));
        let stage = self.plan.instances.get(instance.index()).map_or(0, |plan| plan.stage);
        if let Some(pace) = self.pace.get_mut(stage) {
            pace.instances += 1;
            pace.silent += took;
        }
    }

    /// Returns the mean time between reports of instances of a stage. `None` until one has been finished.
    pub(super) fn report_interval(&self, stage: usize) -> Option<Duration> {
        let pace = self.pace.get(stage)?;
        pace.silent.checked_div(pace.instances)
    }

    /// Records tasks that were run for an instance or for its bucket. Ignores invalid times and unknown tasks, since workers
    /// report them.
    #[expect(clippy::cast_precision_loss, reason = "a weight")]
    pub(crate) fn handle_ran(&mut self, instance: InstanceId, tasks: &[TaskReport]) -> TaskTimings {
        let mut ran = TaskTimings::default();
        let Some(instance) = self.instances.get(instance.index()) else { return ran };
        let pixels = self.plan.buckets[instance.bucket.index()].pixels.max(1) as f64;
        for report in tasks {
            let TaskOutcome::Ran { seconds, .. } = report.done else { continue };
            let pace = self.pace.get_mut(report.stage as usize);
            let Some(pace) = pace.filter(|_| seconds.is_finite() && seconds >= 0.0) else { continue };
            let Some(rate) = pace.tasks.get_mut(report.task as usize) else { continue };
            pace.task_seconds += seconds;
            rate.seconds += seconds;
            rate.pixels += pixels;
            ran.tasks += 1;
            ran.seconds += seconds;
            ran.expected_seconds += rate.seconds / rate.pixels * pixels;
        }
        ran
    }

    /// Returns the mean task time of an instance of a stage, on workers of mean speed and with its reuse.
    /// `None` until an instance has been finished and its task times have been reported.
    #[must_use]
    pub fn seconds_per_instance(&self, stage: usize) -> Option<f64> {
        let pace = self.pace.get(stage).filter(|pace| pace.instances > 0 && pace.task_seconds > 0.0)?;
        Some(pace.task_seconds / f64::from(pace.instances))
    }

    /// Returns the stage of a bucket and its planned number of instances.
    pub(crate) fn planned(&self, bucket: BucketId) -> (usize, usize) {
        let instances = &self.plan.buckets[bucket.index()].instances;
        (self.plan.instances[instances[0].index()].stage, instances.len())
    }
}
