//! How fast a study goes: what leases take for an instance as the manager sees it, and what tasks take as workers report it.
//!
//! From the first follows who is far behind, from the second how fast each worker is and whether it has the time for more.
//! Nothing is predicted before it has been measured.

use super::{Lease, Study};
use crate::message::{TaskOutcome, TaskReport};
use crate::{BucketId, InstanceId, LeaseId, WorkerId};
use std::time::Duration;

/// What has been measured of one stage.
#[derive(Clone, Debug, Default)]
pub(super) struct StageThroughput {
    /// Instances that were finished.
    instances: u32,
    /// The time that leases took for them, one after the other.
    silent: Duration,
    /// What its tasks took, on all workers.
    task_seconds: f64,
    /// By task.
    tasks: Vec<Rate>,
}

/// What runs of one task took, by the size of the images: tiles may differ much.
#[derive(Clone, Copy, Debug, Default)]
struct Rate {
    seconds: f64,
    pixels: f64,
}

/// What some tasks of one worker took, and what they take on average over all workers.
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
    /// An instance of a lease is about to be reported: what it took tells what is slow. Reports that will not count tell
    /// nothing.
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

    /// What an instance of a stage takes from one report to the next; `None`: nobody has finished one.
    pub(super) fn report_interval(&self, stage: usize) -> Option<Duration> {
        let pace = self.pace.get(stage)?;
        pace.silent.checked_div(pace.instances)
    }

    /// Tasks were run for an instance, or for others of its bucket. Times that cannot be, and tasks that there are not, are
    /// passed over: they come from outside.
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

    /// What the tasks of an instance of a stage take on average, on workers of average speed and with what they share;
    /// `None`: nobody has finished one, or said what it took.
    #[must_use]
    pub fn seconds_per_instance(&self, stage: usize) -> Option<f64> {
        let pace = self.pace.get(stage).filter(|pace| pace.instances > 0 && pace.task_seconds > 0.0)?;
        Some(pace.task_seconds / f64::from(pace.instances))
    }

    /// The stage of a bucket, and its instances as it was planned.
    pub(crate) fn planned(&self, bucket: BucketId) -> (usize, usize) {
        let instances = &self.plan.buckets[bucket.index()].instances;
        (self.plan.instances[instances[0].index()].stage, instances.len())
    }
}
