//! Remaining work of a study: its open tasks, each kind at its predicted time and, as more of them
//! finish, at the measured time.

use crate::message::{TaskOutcome, TaskReport};
use std::collections::BTreeMap;

/// Weight of the prediction of a kind of task, in finished tasks: single measurements vary.
const FORESEEN_COUNTS: f64 = 4.0;

/// One task of one stage.
#[derive(Clone, Copy, Debug, Default)]
struct Kind {
    remaining: u64,
    /// Seconds of one task, as predicted by the cost model.
    foreseen_seconds: f64,
    /// Reported tasks, including those that did not have to run.
    done: u64,
    ran: u64,
    ran_seconds: f64,
}

/// Remaining work by stage and task.
#[derive(Clone, Debug, Default)]
pub struct RemainingWork {
    /// By stage and task.
    kinds: BTreeMap<(u32, u32), Kind>,
}

impl RemainingWork {
    /// Creates the remaining work from the number of tasks of each stage and task, and the predicted seconds of one.
    #[must_use]
    pub fn new(kinds: impl IntoIterator<Item = ((u32, u32), u64, f64)>) -> Self {
        let kind = |(place, remaining, foreseen_seconds): (_, _, f64)| {
            let foreseen_seconds = if foreseen_seconds.is_finite() { foreseen_seconds.max(0.0) } else { 0.0 };
            (place, Kind { remaining, foreseen_seconds, ..Kind::default() })
        };
        Self { kinds: kinds.into_iter().map(kind).collect() }
    }

    /// Counts finished tasks. Ignores invalid times, since workers report them.
    pub fn done<'a>(&mut self, tasks: impl IntoIterator<Item = &'a TaskReport>) {
        for report in tasks {
            let Some(kind) = self.kinds.get_mut(&(report.stage, report.task)) else { continue };
            // Saturates: an instance that is executed again reports its tasks again.
            kind.remaining = kind.remaining.saturating_sub(1);
            kind.done += 1;
            if let TaskOutcome::Ran { seconds, .. } = report.done
                && seconds.is_finite()
                && seconds >= 0.0
            {
                kind.ran += 1;
                kind.ran_seconds += seconds;
            }
        }
    }

    /// Returns the remaining seconds of work on one slot.
    #[must_use]
    pub fn work_seconds(&self) -> f64 {
        let ratio = self.ratio();
        self.kinds.values().map(|kind| kind.remaining as f64 * kind.each(ratio)).sum()
    }

    /// Returns the share of the predicted work that is done, 0–1. `None` if the study has no work. It never falls: measured
    /// times do not change it.
    #[must_use]
    pub fn share_done(&self) -> Option<f64> {
        let sums = |of: fn(&Kind) -> f64| {
            let done: f64 = self.kinds.values().map(|kind| kind.done as f64 * of(kind)).sum();
            let all: f64 =
                self.kinds.values().map(|kind| (kind.done + kind.remaining) as f64 * of(kind)).sum();
            (all > 0.0).then_some(done / all)
        };
        // Without any predicted time, all tasks count alike.
        sums(|kind| kind.foreseen_seconds).or_else(|| sums(|_| 1.0))
    }

    /// Returns the seconds of the most expensive run that may be left: one task of each open kind, one after the other.
    #[must_use]
    pub fn run_seconds(&self) -> f64 {
        let ratio = self.ratio();
        self.kinds.values().filter(|kind| kind.remaining > 0).map(|kind| kind.each_run(ratio)).sum()
    }

    /// Returns the ratio of measured to predicted time. Kinds that have not run are assumed to be off by the same factor.
    fn ratio(&self) -> f64 {
        let ran = self.kinds.values().filter(|kind| kind.foreseen_seconds > 0.0);
        let (mut took, mut foreseen) = (0.0, 0.0);
        for kind in ran {
            took += kind.ran_seconds;
            foreseen += kind.ran as f64 * kind.foreseen_seconds;
        }
        if foreseen > 0.0 { took / foreseen } else { 1.0 }
    }
}

impl Kind {
    /// Returns the expected seconds of a remaining task, given the share of its kind that did not have to run.
    fn each(&self, ratio: f64) -> f64 {
        let foreseen = self.foreseen_seconds * ratio;
        (self.ran_seconds + FORESEEN_COUNTS * foreseen) / (self.done as f64 + FORESEEN_COUNTS)
    }

    /// Returns the expected seconds of a task that has to run.
    fn each_run(&self, ratio: f64) -> f64 {
        let foreseen = self.foreseen_seconds * ratio;
        (self.ran_seconds + FORESEEN_COUNTS * foreseen) / (self.ran as f64 + FORESEEN_COUNTS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{ReuseSource, TaskProvenance};

    fn report(task: u32, done: TaskOutcome) -> TaskReport {
        TaskReport { task, stage: 0, done, cache_seconds: 0.0, provenance: TaskProvenance::default() }
    }

    fn ran(task: u32, seconds: f64) -> TaskReport {
        report(task, TaskOutcome::Ran { seconds, predicted_seconds: 0.0, digests: 0, digest_seconds: 0.0 })
    }

    #[test]
    fn share_done_grows_by_predicted_work_whatever_tasks_took() {
        let mut left = RemainingWork::new([((0, 0), 2, 1.0), ((0, 1), 2, 9.0)]);
        assert_eq!(left.share_done(), Some(0.0));
        left.done(&[ran(0, 500.0)]);
        assert_eq!(left.share_done(), Some(0.05));
        left.done(&[ran(0, 0.0), report(1, TaskOutcome::Reused(ReuseSource::Value)), ran(1, 1.0)]);
        assert_eq!(left.share_done(), Some(1.0));
        assert_eq!(RemainingWork::new([]).share_done(), None);
        let mut unpredicted = RemainingWork::new([((0, 0), 4, 0.0)]);
        unpredicted.done(&[ran(0, 1.0)]);
        assert_eq!(unpredicted.share_done(), Some(0.25));
    }

    #[test]
    fn measured_times_replace_predicted_times() {
        let mut left = RemainingWork::new([((0, 0), 100, 2.0), ((0, 1), 50, 4.0)]);
        assert_eq!(left.work_seconds(), 400.0);
        assert_eq!(left.run_seconds(), 6.0);
        // Everything takes twice as long, and kinds that have not run are predicted to as well.
        left.done(&vec![ran(0, 4.0); 60]);
        assert!((left.work_seconds() - (40.0 * 4.0 + 50.0 * 8.0)).abs() < 1e-9);
        // Reused tasks take no time, and the rest of their kind is predicted to be reused as often.
        let mut left = RemainingWork::new([((0, 0), 100, 2.0)]);
        left.done(&vec![ran(0, 2.0); 25]);
        left.done(&vec![report(0, TaskOutcome::Reused(ReuseSource::Dataflow)); 25]);
        assert!((left.work_seconds() - 50.0 * (25.0 * 2.0 + 8.0) / 54.0).abs() < 1e-9);
        assert!((left.run_seconds() - 2.0).abs() < 1e-9);
    }

    #[test]
    fn finished_study_has_no_remaining_work() {
        let mut left = RemainingWork::new([((0, 0), 1, 1.0)]);
        left.done(&[ran(0, 1.0), ran(0, 1.0), ran(7, 1.0), ran(0, f64::NAN), ran(0, -1.0)]);
        assert_eq!((left.work_seconds(), left.run_seconds()), (0.0, 0.0));
        assert_eq!(RemainingWork::default().work_seconds(), 0.0);
    }
}
