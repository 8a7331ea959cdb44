//! Speeds and remaining capacity of workers in the audit's model, recomputed from all reports each time.

use super::Audit;
use pleach_dispatch::message::{TaskOutcome, TaskReport};
use pleach_dispatch::{InstanceId, LeaseId, PlanId, WorkerId};

/// The manager's parameters: tasks until a speed is known, and the maximum factor from the mean.
const KNOWN_AFTER: usize = 10;
const MOST: f64 = 8.0;

/// Weight of each task relative to the next one.
const FADES: f64 = 0.98;

/// Tolerance for the manager's incremental sums and its rounding to thousandths.
const ROUNDED: f64 = 1.01;

/// Reports of one worker: tasks, measured seconds, and expected seconds.
#[derive(Clone, Debug, Default)]
pub(super) struct ThroughputModel(Vec<(u32, f64, f64)>);

impl ThroughputModel {
    fn value(&self) -> f64 {
        let tasks: usize = self.0.iter().map(|(tasks, ..)| *tasks as usize).sum();
        let (mut seconds, mut expected, mut weight) = (0.0, 0.0, 1.0);
        for (tasks, took, should) in self.0.iter().rev() {
            seconds += weight * took;
            expected += weight * should;
            weight *= FADES.powi(*tasks as i32);
        }
        let ratio = expected / seconds;
        if tasks < KNOWN_AFTER || !ratio.is_finite() { 1.0 } else { ratio.clamp(1.0 / MOST, MOST) }
    }
}

impl Audit {
    /// Returns whether an instance is reported by the worker that has it.
    pub(super) fn is_reported_by_holder(
        &self,
        worker: WorkerId,
        study: PlanId,
        lease: LeaseId,
        id: InstanceId,
    ) -> bool {
        let granted = self.studies.get(&study).and_then(|model| model.leases.get(&lease));
        granted.is_some_and(|granted| granted.worker == worker && granted.open.contains(&id))
    }

    pub(super) fn note_finished(&mut self, study: PlanId, id: InstanceId) {
        if let Some(model) = self.studies.get_mut(&study) {
            *model.finished.entry(model.stage(id)).or_default() += 1;
        }
    }

    pub(super) fn note_ran(&mut self, worker: WorkerId, study: PlanId, id: InstanceId, tasks: &[TaskReport]) {
        let Some(model) = self.studies.get_mut(&study) else { return };
        let Some(instance) = model.plan.instances.get(id) else { return };
        // In simulations, all buckets of a stage have images of one size.
        let bucket = model.plan.buckets.iter().find(|bucket| bucket.instances.contains(&id));
        let pixels = bucket.map_or(1, |bucket| bucket.pixels.max(1)) as f64;
        let stage = instance.stage;
        let mut timings = (0, 0.0, 0.0);
        for report in tasks {
            let TaskOutcome::Ran { seconds, .. } = report.done else { continue };
            let is_there = model.plan.stages[stage].tasks.len() > report.task as usize;
            if report.stage as usize != stage || !is_there || !seconds.is_finite() || seconds < 0.0 {
                continue;
            }
            let ran = model.ran.entry(stage).or_default();
            ran.push((report.task, seconds, pixels));
            let same = ran.iter().filter(|(task, ..)| *task == report.task);
            let (sum, all) =
                same.fold((0.0, 0.0), |(sum, all), (_, seconds, pixels)| (sum + seconds, all + pixels));
            timings = (timings.0 + 1, timings.1 + seconds, timings.2 + sum / all * pixels);
        }
        if let Some(worker) = self.workers.get_mut(&worker) {
            worker.speed.0.push(timings);
        }
    }

    /// Records a return without a steal request by a worker with a time limit.
    pub(super) fn note_late(&mut self, worker: WorkerId, study: PlanId, lease: LeaseId, back: &[InstanceId]) {
        let Some(model) = self.studies.get(&study) else { return };
        let granted = model
            .leases
            .get(&lease)
            .filter(|granted| granted.worker == worker && granted.requested.is_none());
        let first = granted.and_then(|granted| granted.open.first()).filter(|_| !back.is_empty());
        let Some(stage) = first.map(|first| model.stage(*first)) else { return };
        if let Some(there) = self.workers.get_mut(&worker)
            && there.end.is_some()
            && !there.draining
        {
            there.late.insert((study, stage));
        }
    }

    pub(super) fn is_late(&self, worker: WorkerId, study: PlanId, stage: usize) -> bool {
        self.workers.get(&worker).is_some_and(|model| model.late.contains(&(study, stage)))
    }

    /// Returns the maximum of instances of a stage to grant to a worker. `None` without a time limit or measurements.
    pub(super) fn instances_left(&self, worker: WorkerId, study: PlanId, stage: usize) -> Option<usize> {
        let there = self.workers.get(&worker)?;
        let left = there.end?.saturating_sub(self.now).as_secs_f64();
        if left == 0.0 {
            return Some(0);
        }
        let model = self.studies.get(&study)?;
        let finished = f64::from(*model.finished.get(&stage)?);
        let seconds: f64 = model.ran.get(&stage).into_iter().flatten().map(|(_, seconds, _)| seconds).sum();
        if seconds <= 0.0 {
            return None;
        }
        let fit = left * there.speed.value() * ROUNDED / (seconds / finished);
        // One instance is allowed if the time suffices for one, whatever the tolerance.
        Some(if fit < 1.0 { 0 } else { (fit as usize).max(1) })
    }
}
