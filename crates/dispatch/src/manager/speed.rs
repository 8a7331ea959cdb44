//! Relative speeds of workers, and the number of instances granted by them.
//!
//! A worker's speed is the expected time of its tasks divided by their measured time. The expected time of a
//! task is its mean over all workers (`study/throughput`). Slow workers get the first part of a bucket, so that
//! all workers need about the same time for a grant ([`Manager::max_instances`]). With similar speeds, no
//! bucket is split.

use super::{Manager, WorkerEntry};
use crate::message::{RegionTiers, TaskReport};
use crate::storage::TransferCost;
use crate::study::Study;
use crate::{BucketId, InstanceId, PlanId, WorkerId};

/// Speeds are integers in thousandths of the mean: their sums are exact and can be compared with a recount.
const MEAN: u64 = 1000;

/// Tasks until a worker's speed is known: single tasks vary as much as workers do.
const KNOWN_AFTER: u64 = 10;

/// Weight of the newest task: the speed of a machine with other users changes.
const NEWEST: f64 = 0.02;

/// Measured speeds are limited to this factor of the mean: beyond it, one instance more or less does not matter.
const MOST: u64 = 8;

/// Speeds within this ratio count as equal: estimates have the same error, and split buckets reuse less.
const ALIKE: (u64, u64) = (3, 2);

/// Maximum number of instances in a message to a worker. Each takes some 100 to 1,000 bytes, and a frame has 16 MiB.
/// Only buckets of a number or size that the user sets are larger: their parts are granted one after the other.
const MAX_GRANTED: usize = 8192;

/// Measured speed of one worker.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Speed {
    tasks: u64,
    /// Weighted sum, like `expected_seconds`. The newest task has the largest weight.
    seconds: f64,
    expected_seconds: f64,
}

impl Speed {
    pub(super) fn observe(&mut self, tasks: u32, seconds: f64, expected_seconds: f64) {
        let kept = (1.0 - NEWEST).powf(f64::from(tasks));
        self.tasks += u64::from(tasks);
        self.seconds = self.seconds * kept + seconds;
        self.expected_seconds = self.expected_seconds * kept + expected_seconds;
    }

    /// Returns the speed in thousandths of the mean.
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "bounded"
    )]
    pub(super) fn thousandths(&self) -> u64 {
        let ratio = self.expected_seconds / self.seconds;
        if self.tasks < KNOWN_AFTER || !ratio.is_finite() {
            return MEAN;
        }
        ((ratio * MEAN as f64).round() as u64).clamp(MEAN / MOST, MEAN * MOST)
    }
}

/// Slots of members that are not draining, and their sum weighted by speed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Speeds {
    slots: u64,
    thousandths: u64,
}

impl Speeds {
    pub(super) fn add(&mut self, slots: u32, speed: Speed) {
        self.slots += u64::from(slots);
        self.thousandths += u64::from(slots) * speed.thousandths();
    }

    pub(super) fn remove(&mut self, slots: u32, speed: Speed) {
        let slots = u64::from(slots);
        let thousandths = slots * speed.thousandths();
        assert!(self.slots >= slots, "{slots} slots leave, and {} are counted", self.slots);
        assert!(self.thousandths >= thousandths, "{thousandths} of {} thousandths leave", self.thousandths);
        self.slots -= slots;
        self.thousandths -= thousandths;
    }

    /// Returns a worker's speed relative to the mean, as a fraction.
    fn by_mean(self, speed: Speed) -> (u64, u64) {
        (speed.thousandths() * self.slots, self.thousandths.max(1))
    }

    /// Returns the relative speed if it differs from the mean by more than [`ALIKE`].
    fn by_mean_if_unlike(self, speed: Speed) -> Option<(u64, u64)> {
        let (speed, mean) = self.by_mean(speed);
        let (more, less) = ALIKE;
        let is_alike = speed * more >= mean * less && speed * less <= mean * more;
        (!is_alike).then_some((speed, mean))
    }
}

impl Manager {
    /// Handles the task timings of an instance of a study, or of its bucket. Call it with the report of the instance.
    pub fn handle_task_timings(
        &mut self,
        worker: WorkerId,
        id: PlanId,
        instance: InstanceId,
        tasks: &[TaskReport],
    ) {
        let Some(study) = self.studies.get_mut(&id).filter(|_| !tasks.is_empty()) else { return };
        let ran = study.handle_ran(instance, tasks);
        // A new speed changes the number of instances that workers with a time limit can finish.
        if self.members.record_tasks(worker, ran) && self.members.has_limits() {
            self.schedule();
        }
    }

    /// Records the cost of transfers to a worker, as it has measured it.
    pub fn handle_measured_link(&mut self, worker: WorkerId, cost: TransferCost) {
        self.members.set_link(worker, cost);
    }

    /// Records the tiers of a worker's regions, and the rates of its tiers. Later grants consider them.
    pub fn handle_region_tiers(&mut self, worker: WorkerId, tiers: &RegionTiers) {
        tiers.rates.iter().for_each(|(kind, rate)| self.members.set_tier_rate(worker, *kind, *rate));
        // A key names one content in all studies.
        self.studies.values_mut().for_each(|study| study.handle_region_tiers(worker, &tiers.regions));
    }

    /// Takes the overheads of the buckets of a study measured since the last call, in seconds
    /// ([`Study::take_bucket_overheads`]). Empty if the study is unknown.
    pub fn take_bucket_overheads(&mut self, id: PlanId) -> Vec<f64> {
        self.studies.get_mut(&id).map(Study::take_bucket_overheads).unwrap_or_default()
    }

    /// Updates the overhead of a bucket of a study, in seconds ([`Study::handle_bucket_overhead`]).
    pub fn handle_bucket_overhead(&mut self, id: PlanId, seconds: f64) {
        if let Some(study) = self.studies.get_mut(&id) {
            study.handle_bucket_overhead(seconds);
        }
    }

    /// Counts the slots of workers that are not draining, weighted by speed.
    #[must_use]
    pub fn slots_by_speed(&self) -> u32 {
        let thousandths = self.members.staying().map(|(_, member)| {
            let (speed, mean) = self.members.speeds().by_mean_if_unlike(member.speed()).unwrap_or((1, 1));
            u128::from(member.facts().slots) * u128::from(MEAN * speed) / u128::from(mean)
        });
        let all = (thousandths.sum::<u128>() + u128::from(MEAN / 2)) / u128::from(MEAN);
        // Rounding must not make slow slots disappear.
        u32::try_from(all).unwrap_or(u32::MAX).max(self.slots().min(1))
    }

    /// Returns the maximum of a bucket's instances to grant to a worker. `None` if the study is unknown.
    ///
    /// A worker gets as many as it finishes in the time that the planned bucket takes a worker of mean speed, no more
    /// than it finishes before its time limit, and no more than a message carries.
    #[expect(clippy::cast_possible_truncation, reason = "at most as many as there are")]
    pub(super) fn max_instances(&self, worker: WorkerId, id: PlanId, bucket: BucketId) -> Option<usize> {
        let (member, study) = (self.members.get(worker)?, self.studies.get(&id)?);
        let (stage, planned) = study.planned(bucket);
        let unlike = self.members.speeds().by_mean_if_unlike(member.speed());
        let slow = unlike.filter(|(speed, mean)| speed < mean);
        let by_speed = slow.map(|(speed, mean)| ((planned as u64 * speed + mean / 2) / mean) as usize);
        let by_end = self.instances_before_limit(worker, id, stage);
        let most = by_speed.into_iter().chain(by_end).fold(MAX_GRANTED, usize::min);
        Some(most.max(1))
    }

    /// Returns a worker's speed relative to the mean over all tasks of all workers.
    #[expect(clippy::cast_precision_loss, reason = "a ratio")]
    pub(super) fn speed_of(&self, worker: WorkerId) -> f64 {
        let speed = self.members.get(worker).map(WorkerEntry::speed).unwrap_or_default();
        speed.thousandths() as f64 / MEAN as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn speed(tasks: u32, seconds: f64, expected_seconds: f64) -> Speed {
        let mut speed = Speed::default();
        (0..tasks).for_each(|_| speed.observe(1, seconds, expected_seconds));
        speed
    }

    #[test]
    fn speed_is_estimated_after_ten_tasks_and_clamped() {
        assert_eq!(speed(9, 4.0, 1.0).thousandths(), 1000);
        assert_eq!(speed(10, 4.0, 1.0).thousandths(), 250);
        assert_eq!(speed(10, 1.0, 2.0).thousandths(), 2000);
        assert_eq!(speed(10, 100.0, 1.0).thousandths(), 125);
        assert_eq!(speed(10, 1.0, 100.0).thousandths(), 8000);
        // Tasks without a measurable time do not count.
        assert_eq!(speed(50, 0.0, 0.0).thousandths(), 1000);
        // Recent tasks weigh more than old ones.
        let mut slower = speed(1000, 1.0, 1.0);
        (0..200).for_each(|_| slower.observe(1, 4.0, 1.0));
        assert!(slower.thousandths() < 260, "{}", slower.thousandths());
    }

    #[test]
    fn speeds_within_1_5_of_the_mean_count_as_equal() {
        let mut speeds = Speeds::default();
        let (fast, slow) = (speed(10, 1.0, 1.6), speed(10, 4.0, 1.6));
        for _ in 0..5 {
            speeds.add(2, fast);
            speeds.add(2, slow);
        }
        // The mean is 1: 1.6 and 0.4 of it.
        assert_eq!(speeds.by_mean(slow), (400 * 20, 20_000));
        assert_eq!(speeds.by_mean_if_unlike(slow), Some((8_000, 20_000)));
        assert_eq!(speeds.by_mean_if_unlike(fast), Some((32_000, 20_000)));
        assert_eq!(speeds.by_mean_if_unlike(speed(10, 3.0, 2.0)), None);
        assert_eq!(speeds.by_mean_if_unlike(speed(10, 2.0, 3.0)), None);
        speeds.remove(2, slow);
        assert_eq!(speeds, Speeds { slots: 18, thousandths: 20_000 - 800 });
    }
}
