//! How many workers a cluster should have: one stateless step from what is left to do, what it may take and cost, and the
//! pools that workers come from, to the number that each pool should have.
//!
//! The forecast is a fluid one: slots work from the moment their worker is there, until what is left is done, and the last
//! piece that cannot be divided is waited for. It is compared with simulated clusters in `pleach-simulation`, and with real
//! studies in `benches/calibration.py`.
//!
//! - [`WorkDemand`]: what is left, by when, and for how much;
//! - [`WorkerPool`]: where workers come from, and how many there are;
//! - [`decide`]: the step; what it answered before, and when, are arguments of the next one, so that numbers do not flap;
//! - [`RemainingWork`]: what is left of a study, from the costs foreseen and those measured;
//! - [`fn@removal_order`]: who goes first where there are more than wanted.
//!
//! Nobody is started, drained or paid here, no clock is read, and nothing is kept from one step to the next.

mod decision;
mod makespan;
mod pool;
mod remaining_work;
mod removal_order;
mod stabilization;

pub use decision::{FastestOption, Reason, ScalingDecision, decide};
pub use makespan::MakespanForecast;
pub use pool::WorkerPool;
pub use remaining_work::RemainingWork;
pub use removal_order::{WorkerLoad, removal_order};
pub use stabilization::PreviousDecision;

/// What is left if it is cut for so many slots: more slots take more buckets, which share less.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WorkByPartition {
    /// It is cut for at most so many slots.
    pub slots: u32,
    /// Seconds of work that are left then, of one slot of mean speed.
    pub work_seconds: f64,
    /// The longest piece that nobody divides any further.
    pub longest_seconds: f64,
}

/// A part of the work that has to be done by some time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DeadlineGoal {
    /// The part of all work, 0 to 1, that is done when this is; see [`shares`].
    pub share: f64,
    /// From now; not positive where that time is over.
    pub deadline_seconds: f64,
}

/// What is left to do, by when, and for how much.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WorkDemand {
    /// The work left, for ever more slots; beyond the last one as there. None: nothing is left.
    pub cuts: Vec<WorkByPartition>,
    /// What has to be done by when; none where nobody waits.
    pub goals: Vec<DeadlineGoal>,
    /// What may be spent from now on.
    pub budget: Option<f64>,
}

impl WorkDemand {
    /// So much work that shares the same however it is cut.
    #[must_use]
    pub fn of(work_seconds: f64, longest_seconds: f64) -> Self {
        let cut = WorkByPartition { slots: u32::MAX, work_seconds, longest_seconds };
        let cuts = if work_seconds > 0.0 { vec![cut] } else { Vec::new() };
        Self { cuts, ..Self::default() }
    }

    /// The same, all of it to be done by some time from now.
    #[must_use]
    pub fn by(self, deadline_seconds: f64) -> Self {
        Self { goals: vec![DeadlineGoal { share: 1.0, deadline_seconds }], ..self }
    }

    /// The same, for no more than so much.
    #[must_use]
    pub fn within(self, budget: f64) -> Self {
        Self { budget: Some(budget), ..self }
    }

    /// Whether nothing is left.
    #[must_use]
    pub fn is_nothing(&self) -> bool {
        self.cuts.iter().all(|cut| cut.work_seconds <= 0.0)
    }

    /// The work and the longest piece for so many slots: between two cuts in proportion, below the first and beyond the last
    /// one as there.
    pub(crate) fn cut_for(&self, slots: f64) -> (f64, f64) {
        let of = |cut: &WorkByPartition| (cut.work_seconds, cut.longest_seconds);
        let after = self.cuts.iter().position(|cut| f64::from(cut.slots) >= slots);
        match after {
            None => self.cuts.last().map_or((0.0, 0.0), of),
            Some(0) => of(&self.cuts[0]),
            Some(after) => {
                let (low, high) = (&self.cuts[after - 1], &self.cuts[after]);
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

/// The part of all work that is done when each of some studies is, if the manager gives them equal turns: by the time that
/// one with `w` left is done, all others have got `w`, or what they have left (processor sharing, Kleinrock 1967).
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
        // Of 10, 20 and 30 seconds, the first is done when each has got 10, the second when two have got 20.
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
