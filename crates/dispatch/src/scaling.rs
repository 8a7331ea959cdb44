//! Desired number of workers: one stateless step from the remaining work, its deadlines and budget, and the worker pools to
//! a number for each pool.
//!
//! The forecast treats work as a fluid: slots work from the arrival of their worker until the work is done, and then wait
//! for the last indivisible piece. `pleach-simulation` compares it with simulated clusters, and
//! `benches/calibration.py` with real studies.
//!
//! - [`WorkDemand`]: the remaining work, its deadlines and its budget;
//! - [`WorkerPool`]: a source of workers and its current size;
//! - [`decide`]: the step; the previous decision and its time are arguments, so that the numbers do not flap;
//! - [`PartitionForecast`]: the remaining work for several numbers of slots;
//! - [`RemainingWork`]: the remaining work of a study, from predicted and measured costs;
//! - [`fn@removal_order`]: the removal order of surplus workers.
//!
//! The step starts, drains and pays no worker, reads no clock, and keeps no state.

mod decision;
mod makespan;
mod partition;
mod pool;
mod remaining_work;
mod removal_order;
mod stabilization;

pub use decision::{FastestOption, Reason, ScalingDecision, decide};
pub use makespan::MakespanForecast;
pub use partition::{PartitionForecast, sum_cuts};
pub use pool::{WorkerPool, billed_seconds};
pub use remaining_work::RemainingWork;
pub use removal_order::{WorkerLoad, removal_order};
pub use stabilization::PreviousDecision;

/// Remaining work if it is partitioned for a number of slots: more slots need more buckets, which reuse less.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WorkByPartition {
    /// Maximum of slots for this partition.
    pub slots: u32,
    /// Remaining seconds of work, on one slot of mean speed.
    pub work_seconds: f64,
    /// The longest indivisible piece.
    pub longest_seconds: f64,
}

/// A part of the work with a deadline.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DeadlineGoal {
    /// Part of all work, 0–1, that is done by the time that this goal is met. See [`shares`].
    pub share: f64,
    /// Seconds from now. Not positive if the deadline has passed.
    pub deadline_seconds: f64,
}

/// Remaining work, its deadlines and its budget.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WorkDemand {
    /// Remaining work for ascending numbers of slots. The last entry also holds beyond its slots. Empty if no work remains.
    pub cuts: Vec<WorkByPartition>,
    /// Deadlines. Empty if the work has none.
    pub goals: Vec<DeadlineGoal>,
    /// Maximum cost from now on.
    pub budget: Option<f64>,
}

impl WorkDemand {
    /// Creates a demand for work that is the same for any partition.
    #[must_use]
    pub fn of(work_seconds: f64, longest_seconds: f64) -> Self {
        let cut = WorkByPartition { slots: u32::MAX, work_seconds, longest_seconds };
        let cuts = if work_seconds > 0.0 { vec![cut] } else { Vec::new() };
        Self { cuts, ..Self::default() }
    }

    /// Adds a deadline for all of the work, in seconds from now.
    #[must_use]
    pub fn by(self, deadline_seconds: f64) -> Self {
        Self { goals: vec![DeadlineGoal { share: 1.0, deadline_seconds }], ..self }
    }

    /// Adds a maximum cost.
    #[must_use]
    pub fn within(self, budget: f64) -> Self {
        Self { budget: Some(budget), ..self }
    }

    /// Returns whether no work remains.
    #[must_use]
    pub fn is_nothing(&self) -> bool {
        self.cuts.iter().all(|cut| cut.work_seconds <= 0.0)
    }

    /// Returns the work and the longest piece for a number of slots: interpolated between two partitions, constant below the
    /// first and beyond the last.
    pub(crate) fn cut_for(&self, slots: f64) -> (f64, f64) {
        Self::cut_in(&self.cuts, slots)
    }

    /// As [`cut_for`](Self::cut_for), for given partitions.
    fn cut_in(cuts: &[WorkByPartition], slots: f64) -> (f64, f64) {
        let of = |cut: &WorkByPartition| (cut.work_seconds, cut.longest_seconds);
        let after = cuts.iter().position(|cut| f64::from(cut.slots) >= slots);
        match after {
            None => cuts.last().map_or((0.0, 0.0), of),
            Some(0) => of(&cuts[0]),
            Some(after) => {
                let (low, high) = (&cuts[after - 1], &cuts[after]);
                let part = (slots - f64::from(low.slots)) / f64::from((high.slots - low.slots).max(1));
                let between = |low: f64, high: f64| low + part * (high - low);
                (
                    between(low.work_seconds, high.work_seconds),
                    between(low.longest_seconds, high.longest_seconds),
                )
            }
        }
    }
}

/// Returns, for each study, the part of all work that is done when it is, if the manager gives studies equal turns: by the
/// time a study with `w` left is done, all others have got `w`, or all they have left (processor sharing, Kleinrock 1967).
#[must_use]
pub fn shares(work_seconds: &[f64]) -> Vec<f64> {
    let all: f64 = work_seconds.iter().sum();
    let share = |own: &f64| {
        let by_then: f64 = work_seconds.iter().map(|other| other.min(*own)).sum();
        if all > 0.0 { by_then / all } else { 0.0 }
    };
    work_seconds.iter().map(share).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn studies_that_share_are_done_one_after_the_other() {
        // Of 10 s, 20 s and 30 s, the first is done when each has got 10 s, the second when two have got 20 s.
        assert_eq!(shares(&[10.0, 20.0, 30.0]), [30.0 / 60.0, 50.0 / 60.0, 1.0]);
        assert_eq!(shares(&[7.0]), [1.0]);
        assert_eq!(shares(&[0.0, 0.0]), [0.0, 0.0]);
    }

    #[test]
    fn between_two_cuts_work_grows_in_proportion() {
        let cut =
            |slots, work_seconds, longest_seconds| WorkByPartition { slots, work_seconds, longest_seconds };
        let need =
            WorkDemand { cuts: vec![cut(10, 100.0, 8.0), cut(30, 140.0, 4.0)], ..WorkDemand::default() };
        assert_eq!(need.cut_for(1.0), (100.0, 8.0));
        assert_eq!(need.cut_for(20.0), (120.0, 6.0));
        assert_eq!(need.cut_for(31.0), (140.0, 4.0));
        assert_eq!(WorkDemand::default().cut_for(5.0), (0.0, 0.0));
    }
}
