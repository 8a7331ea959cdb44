//! Throughput of each stage: the time per instance as seen by the manager, and the time per task as reported by
//! workers.
//!
//! Invariants: sums only grow, and contain no invalid time. A mean exists once it has a measurement.

use crate::plan::ExecutionPlan;
use std::time::Duration;

/// Measurements of one stage.
#[derive(Clone, Debug, Default)]
struct StageThroughput {
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

/// Measurements of all stages.
#[derive(Debug)]
pub(crate) struct Throughput(Vec<StageThroughput>);

impl Throughput {
    pub(crate) fn of(plan: &ExecutionPlan) -> Self {
        let stages = plan.stages.iter();
        let empty = stages.map(|stage| StageThroughput {
            tasks: vec![Rate::default(); stage.tasks.len()],
            ..StageThroughput::default()
        });
        Self(empty.collect())
    }

    /// Counts the stages.
    pub(crate) fn stages(&self) -> usize {
        self.0.len()
    }

    /// Records a reported instance and the time since the last report of its lease.
    pub(crate) fn record_report(&mut self, stage: usize, silent: Duration) {
        if let Some(stage) = self.0.get_mut(stage) {
            stage.instances += 1;
            stage.silent += silent;
        }
    }

    /// Records a run of a task on an image of this size. Returns the expected time: the mean over all runs up to this
    /// one. `None` for invalid times and unknown tasks, which are ignored, since workers report them.
    pub(crate) fn record_task(
        &mut self,
        stage: usize,
        task: usize,
        seconds: f64,
        pixels: f64,
    ) -> Option<f64> {
        let stage = self.0.get_mut(stage).filter(|_| seconds.is_finite() && seconds >= 0.0)?;
        let rate = stage.tasks.get_mut(task)?;
        stage.task_seconds += seconds;
        rate.seconds += seconds;
        rate.pixels += pixels;
        Some(rate.seconds / rate.pixels * pixels)
    }

    /// Returns the mean time between reports of instances of a stage. `None` until one has been finished.
    pub(crate) fn report_interval(&self, stage: usize) -> Option<Duration> {
        let stage = self.0.get(stage)?;
        stage.silent.checked_div(stage.instances)
    }

    /// Returns the mean task time of an instance of a stage. `None` until an instance has been finished and its task
    /// times have been reported.
    pub(crate) fn seconds_per_instance(&self, stage: usize) -> Option<f64> {
        let stage = self.0.get(stage).filter(|stage| stage.instances > 0 && stage.task_seconds > 0.0)?;
        Some(stage.task_seconds / f64::from(stage.instances))
    }
}
