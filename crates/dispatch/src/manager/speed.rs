//! How fast workers are, beside each other, and what follows for how much each is granted.
//!
//! A worker's speed is what its tasks should have taken by what they did take: what a task should take is the mean over all
//! workers (`study/pace`). Slow workers get the first part of a bucket, so that all take about as long for what they have
//! ([`Manager::max_instances`]); where speeds are alike, nothing is cut.

use super::Manager;
use crate::message::TaskReport;
use crate::{BucketId, InstanceId, PlanId, WorkerId};

/// Speeds are counted in thousandths of the mean: whole numbers can be summed up again and give the same.
const MEAN: u64 = 1000;

/// Tasks of which a worker's speed is known: single ones differ by as much as workers do.
const KNOWN_AFTER: u64 = 10;

/// The share of the newest task: a machine that others use as well is fast at one time and slow at another.
const NEWEST: f64 = 0.02;

/// Measured speeds are believed within this factor of the mean: an instance more or less is no matter beyond it.
const MOST: u64 = 8;

/// Speeds that differ by less than this ratio count as the same: estimates are off by as much, and what is cut shares less.
const ALIKE: (u64, u64) = (3, 2);

/// What is known of one worker's speed.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Speed {
    tasks: u64,
    /// Weighted sums: the newest count most.
    seconds: f64,
    expected_seconds: f64,
}

impl Speed {
    fn observe(&mut self, tasks: u32, seconds: f64, expected_seconds: f64) {
        let kept = (1.0 - NEWEST).powf(f64::from(tasks));
        self.tasks += u64::from(tasks);
        self.seconds = self.seconds * kept + seconds;
        self.expected_seconds = self.expected_seconds * kept + expected_seconds;
    }

    /// In thousandths of the mean.
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

/// Slots of members that are not about to leave, and the same weighted by speed.
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
        self.slots -= u64::from(slots);
        self.thousandths -= u64::from(slots) * speed.thousandths();
    }

    /// A worker's speed by the mean, as a fraction.
    fn by_mean(self, speed: Speed) -> (u64, u64) {
        (speed.thousandths() * self.slots, self.thousandths.max(1))
    }

    /// The same where it differs by so much that it matters.
    fn by_mean_if_unlike(self, speed: Speed) -> Option<(u64, u64)> {
        let (speed, mean) = self.by_mean(speed);
        let (more, less) = ALIKE;
        let is_alike = speed * more >= mean * less && speed * less <= mean * more;
        (!is_alike).then_some((speed, mean))
    }
}

impl Manager {
    /// A worker has run tasks for an instance of a study, or for others of its bucket: said with the report of the instance.
    pub fn handle_task_timings(
        &mut self,
        worker: WorkerId,
        id: PlanId,
        instance: InstanceId,
        tasks: &[TaskReport],
    ) {
        let Some(study) = self.studies.get_mut(&id).filter(|_| !tasks.is_empty()) else { return };
        let ran = study.handle_ran(instance, tasks);
        let Some(member) = self.members.get_mut(&worker) else { return };
        let before = member.speed;
        member.speed.observe(ran.tasks, ran.seconds, ran.expected_seconds);
        if !member.draining {
            self.speeds.remove(member.facts.slots, before);
            self.speeds.add(member.facts.slots, member.speed);
        }
        // Whoever seemed to have no time left may have it.
        if !self.ending.is_empty() {
            self.schedule();
        }
    }

    /// Processors of workers that are not about to leave, those of slow and fast ones as what they are worth.
    #[must_use]
    pub fn slots_by_speed(&self) -> u32 {
        let members = self.members.values().filter(|member| !member.draining);
        let thousandths = members.map(|member| {
            let (speed, mean) = self.speeds.by_mean_if_unlike(member.speed).unwrap_or((1, 1));
            u128::from(member.facts.slots) * u128::from(MEAN * speed) / u128::from(mean)
        });
        let all = (thousandths.sum::<u128>() + u128::from(MEAN / 2)) / u128::from(MEAN);
        // No slots are none, but slow ones are some.
        u32::try_from(all).unwrap_or(u32::MAX).max(self.slots().min(1))
    }

    /// How many instances of a bucket a worker is to get at most; `None`: all.
    ///
    /// As many as take it the time that the bucket, as it was planned, takes a worker of mean speed; and no more than it has
    /// the time for.
    #[expect(clippy::cast_possible_truncation, reason = "at most as many as there are")]
    pub(super) fn max_instances(&self, worker: WorkerId, id: PlanId, bucket: BucketId) -> Option<usize> {
        let (member, study) = (self.members.get(&worker)?, self.studies.get(&id)?);
        let (stage, planned) = study.planned(bucket);
        let unlike = self.speeds.by_mean_if_unlike(member.speed);
        let slow = unlike.filter(|(speed, mean)| speed < mean);
        let by_speed = slow.map(|(speed, mean)| ((planned as u64 * speed + mean / 2) / mean) as usize);
        let by_end = self.instances_left(worker, id, stage);
        let most = by_speed.into_iter().chain(by_end).min()?;
        Some(most.max(1))
    }

    /// A worker's speed by the mean over all tasks of all workers.
    #[expect(clippy::cast_precision_loss, reason = "a ratio")]
    pub(super) fn speed_of(&self, worker: WorkerId) -> f64 {
        let speed = self.members.get(&worker).map(|member| member.speed).unwrap_or_default();
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
    fn a_speed_is_known_after_ten_tasks_and_bounded() {
        assert_eq!(speed(9, 4.0, 1.0).thousandths(), 1000);
        assert_eq!(speed(10, 4.0, 1.0).thousandths(), 250);
        assert_eq!(speed(10, 1.0, 2.0).thousandths(), 2000);
        assert_eq!(speed(10, 100.0, 1.0).thousandths(), 125);
        assert_eq!(speed(10, 1.0, 100.0).thousandths(), 8000);
        // What takes no time tells nothing.
        assert_eq!(speed(50, 0.0, 0.0).thousandths(), 1000);
        // What a machine has become counts more than what it was.
        let mut slower = speed(1000, 1.0, 1.0);
        (0..200).for_each(|_| slower.observe(1, 4.0, 1.0));
        assert!(slower.thousandths() < 260, "{}", slower.thousandths());
    }

    #[test]
    fn speeds_within_one_and_a_half_of_the_mean_are_alike() {
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
