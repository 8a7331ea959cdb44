//! Progress of a study on stderr: a bar on a terminal, else occasional lines.

mod mark;

use crate::live::{LiveArea, Ranked, Stream, bar, bar_width, cut, fitting};
use indicatif::HumanDuration;
pub(crate) use mark::{Mark, NAME as MARK};
use pleach_dispatch::message::{TaskOutcome, TaskReport};
use pleach_dispatch::scaling::RemainingWork;
use pleach_regions::MemoryCounter;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Interval between plain lines: short enough to show progress, long enough for a log.
const LINE_EVERY: Duration = Duration::from_secs(10);

/// Maximum width of a bar's line. A terminal of 80 or more columns then never wraps it, even if it reports its new size
/// only after rewrapping, as tmux does during rapid resizes.
const WIDEST: usize = 79;

/// Run: evaluation and tile.
type Run = (usize, usize);

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
    /// Runs that share an instance, by the run that represents it.
    pub(crate) runs_of: HashMap<Run, Vec<Run>>,
    /// Remaining tasks with their predicted times.
    pub(crate) left: RemainingWork,
}

/// Progress of a study.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct ProgressCounts {
    /// Evaluations with all runs known or failed.
    pub(crate) evaluations: usize,
    pub(crate) failed_runs: usize,
    /// Tasks that this process executed.
    pub(crate) tasks_run: u64,
    pub(crate) remaining_tasks: u64,
    /// Tasks executed or reused.
    pub(crate) tasks_done: u64,
    /// Time since this process began the study.
    pub(crate) passed: Duration,
    /// Predicted time of the remaining tasks on one slot.
    pub(crate) work_seconds: f64,
    /// Predicted time of the most expensive remaining run.
    pub(crate) run_seconds: f64,
    /// Share of the predicted work that is done, 0–1. `None` if the study has no work.
    pub(crate) share: Option<f64>,
}

impl ProgressCounts {
    /// Returns the remaining time at the throughput so far. `None` before the first task is done.
    pub(crate) fn remaining_seconds(&self) -> Option<f64> {
        let pace = self.passed.as_secs_f64() / self.tasks_done as f64;
        (self.tasks_done > 0).then_some(pace * self.remaining_tasks as f64)
    }
}

/// Display of progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProgressMode {
    /// A bar if stderr is a terminal, else lines.
    Fitting,
    /// No display.
    Nothing,
}

enum Style {
    Bar { area: LiveArea, mark: Mark },
    Lines { last: Instant },
    Nothing,
}

struct State {
    style: Style,
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
pub(crate) struct Progress(Arc<Mutex<State>>);

impl Progress {
    /// Creates the progress of a study. `mark` stores the position of the bar for a resumed study.
    pub(crate) fn new(shown: ProgressMode, totals: Totals, ledger: Arc<MemoryCounter>, mark: Mark) -> Self {
        let start = Instant::now();
        let all = totals.known_tasks + totals.tasks;
        let known = if all > 0 { totals.known_tasks as f64 / all as f64 } else { 0.0 };
        // Tasks of unfinished responses are lost with the earlier process. The bar continues from its old position, and
        // its rest represents all remaining tasks.
        let share_before = mark.share(all).map_or(known, |marked| marked.max(known));
        let style = match shown {
            ProgressMode::Nothing => Style::Nothing,
            ProgressMode::Fitting => match LiveArea::new(Stream::Stderr) {
                Some(area) => Style::Bar { area, mark },
                None => Style::Lines { last: start },
            },
        };
        let open = vec![totals.tiles; totals.evaluations + 1];
        let counts = (0, 0, 0, 0);
        let (tasks, runs, failed, evaluations) = counts;
        Self(Arc::new(Mutex::new(State {
            style,
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

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts finished tasks, executed or reused.
    pub(crate) fn done(&self, tasks: &[TaskReport]) {
        let mut state = self.state();
        let ran = tasks.iter().filter(|task| matches!(task.done, TaskOutcome::Ran { .. })).count();
        state.done += tasks.len() as u64;
        state.tasks += ran as u64;
        state.totals.left.done(tasks);
        state.show();
    }

    /// Counts journaled responses of instances. Each instance is named by the run that represents it.
    pub(crate) fn known(&self, runs: impl IntoIterator<Item = Run>) {
        let mut state = self.state();
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
        let mut state = self.state();
        state.count(run, true);
        state.show();
    }

    /// Returns the progress so far.
    pub(crate) fn counts(&self) -> ProgressCounts {
        let state = self.state();
        ProgressCounts {
            evaluations: state.evaluations,
            failed_runs: state.failed,
            tasks_run: state.tasks,
            remaining_tasks: state.totals.tasks.saturating_sub(state.done),
            tasks_done: state.done,
            passed: state.start.elapsed(),
            work_seconds: state.totals.left.work_seconds(),
            run_seconds: state.totals.left.run_seconds(),
            share: state.totals.left.share_done(),
        }
    }

    /// Returns the tasks saved by sharing in buckets and by the task cache.
    pub(crate) fn spared(&self) -> (u64, u64) {
        let state = self.state();
        (state.totals.shared_in_buckets, state.totals.recalled)
    }

    /// Ends the display.
    pub(crate) fn finish(&self) {
        let mut state = self.state();
        let next_mark = state.next_mark();
        if let Style::Bar { mut area, .. } = std::mem::replace(&mut state.style, Style::Nothing) {
            area.clear();
        }
        drop(state);
        if let Some((mark, share, all)) = next_mark {
            mark.write(share, all);
        }
    }
}

/// Returns the displayed percentage: 100 only at the end.
fn percent(share: f64) -> f64 {
    // 0.15 is slightly less than 15 hundredths in binary.
    (share * 100.0 + 1e-9).floor()
}

impl State {
    fn count(&mut self, run: Run, failed: bool) {
        for &(evaluation, _) in self.totals.runs_of.get(&run).into_iter().flatten() {
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
        let Style::Bar { mark, .. } = &self.style else { return None };
        let share = self.share();
        if percent(share) <= self.marked {
            return None;
        }
        self.marked = percent(share);
        Some((mark.clone(), share, self.totals.known_tasks + self.totals.tasks))
    }

    fn counts(&self) -> Vec<Ranked> {
        let all = self.totals.evaluations * self.totals.tiles;
        let mut counts = vec![
            (0, format!("{}/{} evaluations", self.evaluations, self.totals.evaluations)),
            (2, format!("{}/{all} runs", self.runs)),
        ];
        if self.failed > 0 {
            counts.push((1, format!("{} failed", self.failed)));
        }
        counts
    }

    fn work(&self) -> Vec<Ranked> {
        let held = self.ledger.held_bytes() / 1_000_000;
        vec![
            (1, format!("{} tasks run", self.tasks)),
            (3, format!("{} reused", self.reused())),
            (4, format!("{held} MB held")),
        ]
    }

    /// Returns the elapsed time, and the remaining time at the throughput so far. `None` before the first task is done.
    fn times(&self, passed: Duration) -> (Duration, Option<Duration>) {
        let open = self.totals.tasks.saturating_sub(self.done) as f64;
        (passed, (self.done > 0).then(|| passed.mul_f64(open / self.done as f64)))
    }

    /// Returns the two lines of the bar.
    fn frame(&self, width: usize, passed: Duration) -> Vec<String> {
        let width = width.min(WIDEST);
        let share = self.share();
        let bar = format!("{} {:>3.0} %  ", bar(bar_width(width), share), percent(share));
        let counts = fitting(&self.counts(), width.saturating_sub(bar.len()));
        let (passed, left) = self.times(passed);
        let mut work = self.work();
        work.push((2, format!("{:#} passed", HumanDuration(passed))));
        work.extend(left.map(|left| (0, format!("{:#} left", HumanDuration(left)))));
        vec![cut(&format!("{bar}{counts}"), width), fitting(&work, width)]
    }

    fn show(&mut self) {
        let now = Instant::now();
        let passed = now.duration_since(self.start);
        match std::mem::replace(&mut self.style, Style::Nothing) {
            Style::Bar { mut area, mark } => {
                area.show(|width| self.frame(width, passed));
                self.style = Style::Bar { area, mark };
            }
            Style::Lines { last } if now.duration_since(last) >= LINE_EVERY => {
                self.style = Style::Lines { last: now };
                self.print_line(passed);
            }
            style => self.style = style,
        }
    }

    #[expect(clippy::print_stderr, reason = "this is where progress is shown")]
    fn print_line(&self, passed: Duration) {
        let (passed, left) = self.times(passed);
        let left = left.map_or_else(String::new, |left| format!(", about {} left", HumanDuration(left)));
        let passed = HumanDuration(passed);
        let whole = |parts: &[Ranked]| fitting(parts, usize::MAX);
        eprintln!("{}; {}; {passed} passed{left}", whole(&self.counts()), whole(&self.work()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two evaluations on two tiles, with three tasks per run. Both share one instance on the second tile.
    fn progress() -> Progress {
        let runs_of = HashMap::from([
            ((0, 0), Vec::new()),
            ((1, 0), vec![(1, 0)]),
            ((2, 0), vec![(2, 0)]),
            ((1, 1), vec![(1, 1), (2, 1)]),
        ]);
        let left = RemainingWork::new([((0, 0), 9, 2.0)]);
        let totals =
            Totals { evaluations: 2, tiles: 2, tasks: 9, tasks_a_run: 3, runs_of, left, ..Totals::default() };
        let ledger = Arc::new(MemoryCounter::default());
        ledger.add(12_900_000);
        Progress::new(ProgressMode::Nothing, totals, ledger, Mark::nowhere())
    }

    const RAN: TaskReport = TaskReport {
        task: 0,
        stage: 0,
        done: TaskOutcome::Ran { seconds: 4.0, predicted_seconds: 2.0, digests: 0, digest_seconds: 0.0 },
        cache_seconds: 0.0,
    };

    const REUSED: TaskReport =
        TaskReport { done: TaskOutcome::Reused(pleach_dispatch::message::ReuseSource::Dataflow), ..RAN };

    fn said(progress: &Progress) -> (String, String) {
        let state = progress.state();
        (fitting(&state.counts(), 200), fitting(&state.work(), 200))
    }

    #[test]
    fn an_evaluation_counts_when_all_its_tiles_do() {
        let progress = progress();
        let expect =
            |counts: &str, work: &str| assert_eq!(said(&progress), (counts.to_owned(), work.to_owned()));
        expect("0/2 evaluations, 0/4 runs", "0 tasks run, 0 reused, 12 MB held");
        progress.done(&[RAN, RAN, RAN, RAN, REUSED]);
        // Each of the four executed tasks took twice its predicted time. The reused task makes the rest cheaper.
        let counts = progress.counts();
        assert_eq!(counts.work_seconds, 4.0 * (16.0 + 4.0 * 4.0) / (5.0 + 4.0));
        assert_eq!(counts.run_seconds, 4.0);
        progress.known([(0, 0), (1, 0)]);
        expect("0/2 evaluations, 1/4 runs", "4 tasks run, 0 reused, 12 MB held");
        progress.done(&[RAN, RAN]);
        progress.known([(1, 1)]);
        expect("1/2 evaluations, 3/4 runs", "6 tasks run, 3 reused, 12 MB held");
        progress.failed((2, 0));
        expect("2/2 evaluations, 4/4 runs, 1 failed", "6 tasks run, 3 reused, 12 MB held");
    }

    /// Returns the progress of a study of 100 tasks. Of these, `known` are done.
    fn of_a_hundred(known: u64, mark: &Mark) -> Progress {
        let totals = Totals { tasks: 100 - known, known_tasks: known, ..Totals::default() };
        Progress::new(ProgressMode::Nothing, totals, Arc::new(MemoryCounter::default()), mark.clone())
    }

    #[test]
    fn resumed_study_bar_never_falls() {
        let place = tempfile::tempdir().unwrap();
        let mark = Mark::in_folder(place.path());
        let first = of_a_hundred(0, &mark);
        first.done(&[RAN; 15]);
        let had = first.state().share();
        assert_eq!(had, 0.15);
        mark.write(had, 100);
        // The response of 6 of the 15 tasks is known. The other 9 tasks are lost with the process.
        let resumed = of_a_hundred(6, &mark);
        assert_eq!(resumed.state().share(), had);
        let mut last = had;
        for _ in 0..94 {
            resumed.done(&[RAN]);
            let share = resumed.state().share();
            assert!(share > last, "{share} after {last}");
            last = share;
        }
        assert_eq!(last, 1.0);
        // With a mark of another plan, or without a mark, the bar starts at the known tasks.
        mark.write(had, 99);
        assert_eq!(of_a_hundred(6, &mark).state().share(), 0.06);
        assert_eq!(of_a_hundred(100, &Mark::nowhere()).state().share(), 1.0);
    }

    #[test]
    fn bar_fits_its_terminal() {
        let progress = progress();
        progress.done(&[RAN, RAN, RAN, RAN, REUSED]);
        let mut state = progress.state();
        state.totals.evaluations = 160_000;
        state.totals.tiles = 20;
        (state.runs, state.failed) = (12, 12);
        for width in [119, 79, 59, 39, 25, 10] {
            for line in state.frame(width, Duration::from_secs(15)) {
                assert!(line.chars().count() <= width.min(WIDEST), "{width}: {line}");
            }
        }
        let frame = |width| state.frame(width, Duration::from_secs(15));
        assert_eq!(
            frame(79),
            [
                "=========>           55 %  0/160000 evaluations, 12/3200000 runs, 12 failed",
                "4 tasks run, 0 reused, 12 MB held, 15s passed, 12s left"
            ]
        );
        assert_eq!(frame(39), ["====>      55 %  0/160000 evaluations", "4 tasks run, 15s passed, 12s left"]);
    }
}
