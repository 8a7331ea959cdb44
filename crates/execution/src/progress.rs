//! Progress of a study that this process executes: counts for the manager's status, and a view for a display.
//!
//! The caller provides the [`ProgressDisplay`], which draws. This module writes nothing but the mark of a bar.

mod mark;

pub(crate) use mark::{Mark, NAME as MARK};
use parking_lot::Mutex;
use pleach_dispatch::message::{TaskOutcome, TaskReport};
use pleach_dispatch::scaling::RemainingWork;
use pleach_regions::MemoryCounter;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Run: evaluation and tile.
pub(crate) type Run = (usize, usize);

/// Totals of a study at the start of this process.
#[derive(Debug, Default)]
pub(crate) struct Totals {
    pub(crate) evaluations: usize,
    pub(crate) tiles: usize,
    /// Tasks that this process executes if none fails.
    pub(crate) tasks: u64,
    /// Tasks of responses known from the journal or earlier rounds. Not in `tasks`.
    pub(crate) known_tasks: u64,
    /// Tasks of one run without reuse.
    pub(crate) tasks_a_run: u64,
    /// Tasks saved by sharing in buckets. Not in `tasks`.
    pub(crate) shared_in_buckets: u64,
    /// Tasks saved by the task cache. Not in `tasks`.
    pub(crate) recalled: u64,
    /// Further runs that share an instance, by the run that represents it.
    pub(crate) shared_runs: HashMap<Run, Vec<Run>>,
    /// Remaining tasks with their predicted times.
    pub(crate) remaining_work: RemainingWork,
}

/// Progress of a study.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ProgressCounts {
    /// Evaluations with all runs known or failed.
    pub evaluations: usize,
    /// Number of failed runs, without those of evaluation 0.
    pub failed_runs: usize,
    /// Tasks that this process executed.
    pub tasks_run: u64,
    /// Number of tasks that this process still has to execute if none fails.
    pub remaining_tasks: u64,
    /// Tasks executed or reused.
    pub tasks_done: u64,
    /// Time since this process began the study.
    pub passed: Duration,
    /// Predicted time of the remaining tasks on one slot.
    pub work_seconds: f64,
    /// Predicted time of the most expensive remaining run.
    pub run_seconds: f64,
    /// Share of the predicted work that is done, 0–1. `None` if the study has no work.
    pub share: Option<f64>,
}

impl ProgressCounts {
    /// Returns the remaining time at the throughput so far. `None` before the first task is done.
    pub fn remaining_seconds(&self) -> Option<f64> {
        let pace = self.passed.as_secs_f64() / self.tasks_done as f64;
        (self.tasks_done > 0).then_some(pace * self.remaining_tasks as f64)
    }
}

/// Progress as a display shows it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ProgressView {
    /// Evaluations with all runs known or failed.
    pub evaluations: usize,
    /// All evaluations of the study.
    pub all_evaluations: usize,
    /// Runs that are known or failed.
    pub runs: usize,
    /// All runs of the study.
    pub all_runs: usize,
    /// Failed runs.
    pub failed: usize,
    /// Tasks that this process executed.
    pub tasks: u64,
    /// Tasks that the known runs would take without reuse, less those executed.
    pub reused: u64,
    /// Memory of the regions, bytes.
    pub held_bytes: u64,
    /// Share of the study that is done, 0–1. It never falls, and a resumed study continues from its old share.
    pub share: f64,
    /// Time since this process began the study.
    pub passed: Duration,
    /// Remaining time at the throughput so far. `None` before the first task is done.
    pub remaining: Option<Duration>,
}

/// Display of progress. The study calls it under a lock, after each change.
pub trait ProgressDisplay: Send {
    /// Shows the progress. The display limits its own rate.
    fn show(&mut self, view: &dyn Fn() -> ProgressView);

    /// Returns whether the position of this display is stored for the process that resumes the study.
    fn is_marked(&self) -> bool;

    /// Removes the display from the screen.
    fn clear(&mut self);
}

/// Returns the displayed percentage: 100 only at the end.
pub fn percent(share: f64) -> f64 {
    // 0.15 is slightly less than 15 hundredths in binary.
    (share * 100.0 + 1e-9).floor()
}

struct State {
    display: Option<Box<dyn ProgressDisplay>>,
    mark: Mark,
    totals: Totals,
    ledger: Arc<MemoryCounter>,
    start: Instant,
    /// Initial share of the bar of this process, 0–1.
    share_before: f64,
    /// Percentage in the last mark.
    marked: f64,
    /// Tasks executed or reused.
    done: u64,
    /// Tasks executed.
    tasks: u64,
    runs: usize,
    failed: usize,
    /// Open runs of each evaluation.
    open: Vec<usize>,
    evaluations: usize,
}

/// Progress of a study, updated by several threads.
#[derive(Clone)]
pub struct Progress(Arc<Mutex<State>>);

impl Progress {
    /// Creates the progress of a study. `mark` stores the position of the bar for a resumed study. Nothing is shown
    /// without a display.
    pub(crate) fn new(
        display: Option<Box<dyn ProgressDisplay>>,
        totals: Totals,
        ledger: Arc<MemoryCounter>,
        mark: Mark,
    ) -> Self {
        let start = Instant::now();
        let all = totals.known_tasks + totals.tasks;
        let known = if all > 0 { totals.known_tasks as f64 / all as f64 } else { 0.0 };
        // Tasks of unfinished responses are lost with the earlier process. The bar continues from its old position, and
        // its rest represents all remaining tasks.
        let share_before = mark.share(all).map_or(known, |marked| marked.max(known));
        let open = vec![totals.tiles; totals.evaluations + 1];
        let counts = (0, 0, 0, 0);
        let (tasks, runs, failed, evaluations) = counts;
        Self(Arc::new(Mutex::new(State {
            display,
            mark,
            totals,
            ledger,
            start,
            share_before,
            marked: percent(share_before),
            done: 0,
            tasks,
            runs,
            failed,
            open,
            evaluations,
        })))
    }

    /// Counts finished tasks, executed or reused.
    pub(crate) fn done<'a>(&self, tasks: impl IntoIterator<Item = &'a TaskReport>) {
        let mut state = self.0.lock();
        for task in tasks {
            state.done += 1;
            state.tasks += u64::from(matches!(task.done, TaskOutcome::Ran { .. }));
            state.totals.remaining_work.done([task]);
        }
        state.show();
    }

    /// Counts journaled responses of instances. Each instance is named by the run that represents it.
    pub(crate) fn count_journaled(&self, runs: impl IntoIterator<Item = Run>) {
        let mut state = self.0.lock();
        runs.into_iter().for_each(|run| state.count(run, false));
        state.show();
        let next_mark = state.next_mark();
        drop(state);
        // Write the mark after releasing the lock: reports of finished tasks wait for it.
        if let Some((mark, share, all)) = next_mark {
            mark.write(share, all);
        }
    }

    /// Counts a failed instance.
    pub(crate) fn failed(&self, run: Run) {
        let mut state = self.0.lock();
        state.count(run, true);
        state.show();
    }

    /// Returns the progress so far.
    pub fn counts(&self) -> ProgressCounts {
        let state = self.0.lock();
        ProgressCounts {
            evaluations: state.evaluations,
            failed_runs: state.failed,
            tasks_run: state.tasks,
            // Saturates: instances whose outputs were lost run again and count twice.
            remaining_tasks: state.totals.tasks.saturating_sub(state.done),
            tasks_done: state.done,
            passed: state.start.elapsed(),
            work_seconds: state.totals.remaining_work.work_seconds(),
            run_seconds: state.totals.remaining_work.run_seconds(),
            share: state.totals.remaining_work.share_done(),
        }
    }

    /// Returns the tasks saved by sharing in buckets and by the task cache.
    pub fn spared(&self) -> (u64, u64) {
        let state = self.0.lock();
        (state.totals.shared_in_buckets, state.totals.recalled)
    }

    /// Ends the display.
    pub(crate) fn finish(&self) {
        let mut state = self.0.lock();
        let next_mark = state.next_mark();
        if let Some(mut display) = state.display.take() {
            display.clear();
        }
        drop(state);
        if let Some((mark, share, all)) = next_mark {
            mark.write(share, all);
        }
    }
}

impl State {
    fn count(&mut self, run: Run, failed: bool) {
        let shared = self.totals.shared_runs.get(&run).into_iter().flatten();
        // Evaluation 0 is the baseline or the reference and does not count as an evaluation.
        for &(evaluation, _) in [run].iter().chain(shared).filter(|(evaluation, _)| *evaluation > 0) {
            self.runs += 1;
            self.failed += usize::from(failed);
            self.open[evaluation] -= 1;
            self.evaluations += usize::from(self.open[evaluation] == 0);
        }
    }

    /// Returns the tasks that the known runs would take without reuse, less those executed.
    fn reused(&self) -> u64 {
        (self.totals.tasks_a_run * (self.runs - self.failed) as u64).saturating_sub(self.tasks)
    }

    /// Returns the share of the study that is done, 0–1. It never falls. A resumed study continues from its old share.
    fn share(&self) -> f64 {
        let done = if self.totals.tasks > 0 { self.done as f64 / self.totals.tasks as f64 } else { 1.0 };
        self.share_before + (1.0 - self.share_before) * done.min(1.0)
    }

    /// Returns the next mark once the displayed percentage has risen.
    fn next_mark(&mut self) -> Option<(Mark, f64, u64)> {
        self.display.as_ref().filter(|display| display.is_marked())?;
        let share = self.share();
        if percent(share) <= self.marked {
            return None;
        }
        self.marked = percent(share);
        Some((self.mark.clone(), share, self.totals.known_tasks + self.totals.tasks))
    }

    fn view(&self) -> ProgressView {
        let passed = self.start.elapsed();
        let open = self.totals.tasks.saturating_sub(self.done) as f64;
        ProgressView {
            evaluations: self.evaluations,
            all_evaluations: self.totals.evaluations,
            runs: self.runs,
            all_runs: self.totals.evaluations * self.totals.tiles,
            failed: self.failed,
            tasks: self.tasks,
            reused: self.reused(),
            held_bytes: self.ledger.held_bytes(),
            share: self.share(),
            passed,
            remaining: (self.done > 0).then(|| passed.mul_f64(open / self.done as f64)),
        }
    }

    fn show(&mut self) {
        // Taken out, because the view borrows the state during the call.
        if let Some(mut display) = self.display.take() {
            display.show(&|| self.view());
            self.display = Some(display);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pleach_dispatch::SlotKind;
    use pleach_dispatch::message::TaskProvenance;

    /// Two evaluations on two tiles, with three tasks per run. Both share one instance on the second tile.
    fn progress() -> Progress {
        let shared_runs = HashMap::from([((1, 1), vec![(2, 1)])]);
        let remaining_work = RemainingWork::new([((0, 0), 9, 2.0)]);
        let totals = Totals {
            evaluations: 2,
            tiles: 2,
            tasks: 9,
            tasks_a_run: 3,
            shared_runs,
            remaining_work,
            ..Totals::default()
        };
        let ledger = Arc::new(MemoryCounter::default());
        ledger.add(12_900_000);
        Progress::new(None, totals, ledger, Mark::nowhere())
    }

    const HERE: TaskProvenance =
        TaskProvenance { instance: 0, started_micros: 0, source: None, device: SlotKind::Core };

    const RAN: TaskReport = TaskReport {
        task: 0,
        stage: 0,
        done: TaskOutcome::Ran { seconds: 4.0, predicted_seconds: 2.0, digests: 0, digest_seconds: 0.0 },
        cache_seconds: 0.0,
        provenance: HERE,
    };

    const REUSED: TaskReport =
        TaskReport { done: TaskOutcome::Reused(pleach_dispatch::message::ReuseSource::Dataflow), ..RAN };

    #[test]
    fn an_evaluation_counts_when_all_its_tiles_do() {
        let progress = progress();
        let expect = |evaluations, runs, failed, tasks, reused| {
            let view = progress.0.lock().view();
            assert_eq!((view.evaluations, view.all_evaluations), (evaluations, 2));
            assert_eq!((view.runs, view.all_runs, view.failed), (runs, 4, failed));
            assert_eq!((view.tasks, view.reused, view.held_bytes), (tasks, reused, 12_900_000));
        };
        expect(0, 0, 0, 0, 0);
        progress.done(&[RAN, RAN, RAN, RAN, REUSED]);
        // Each of the four executed tasks took twice its predicted time. The reused task makes the rest cheaper.
        let counts = progress.counts();
        assert_eq!(counts.work_seconds, 4.0 * (16.0 + 4.0 * 4.0) / (5.0 + 4.0));
        assert_eq!(counts.run_seconds, 4.0);
        progress.count_journaled([(0, 0), (1, 0)]);
        expect(0, 1, 0, 4, 0);
        progress.done(&[RAN, RAN]);
        progress.count_journaled([(1, 1)]);
        expect(1, 3, 0, 6, 3);
        progress.failed((2, 0));
        expect(2, 4, 1, 6, 3);
    }

    /// Returns the progress of a study of 100 tasks. Of these, `known` are done.
    fn of_a_hundred(known: u64, mark: &Mark) -> Progress {
        let totals = Totals { tasks: 100 - known, known_tasks: known, ..Totals::default() };
        Progress::new(None, totals, Arc::new(MemoryCounter::default()), mark.clone())
    }

    #[test]
    fn resumed_study_bar_never_falls() {
        let place = tempfile::tempdir().unwrap();
        let mark = Mark::in_folder(place.path());
        let first = of_a_hundred(0, &mark);
        first.done(&[RAN; 15]);
        let had = first.0.lock().share();
        assert_eq!(had, 0.15);
        mark.write(had, 100);
        // The response of 6 of the 15 tasks is known. The other 9 tasks are lost with the process.
        let resumed = of_a_hundred(6, &mark);
        assert_eq!(resumed.0.lock().share(), had);
        let mut last = had;
        for _ in 0..94 {
            resumed.done(&[RAN]);
            let share = resumed.0.lock().share();
            assert!(share > last, "{share} after {last}");
            last = share;
        }
        assert_eq!(last, 1.0);
        // With a mark of another plan, or without a mark, the bar starts at the known tasks.
        mark.write(had, 99);
        assert_eq!(of_a_hundred(6, &mark).0.lock().share(), 0.06);
        assert_eq!(of_a_hundred(100, &Mark::nowhere()).0.lock().share(), 1.0);
    }
}
