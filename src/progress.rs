//! Progress on stderr: a bar on a terminal, a plain line now and then elsewhere.

use indicatif::{HumanDuration, ProgressBar, ProgressDrawTarget, ProgressStyle};
use pleach_dispatch::message::{TaskDone, TaskReport};
use pleach_dispatch::scaling::Left;
use pleach_regions::Ledger;
use std::collections::HashMap;
use std::io::IsTerminal;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Between two plain lines: often enough to see that it goes on, seldom enough for a log.
const LINE_EVERY: Duration = Duration::from_secs(10);

/// A run: evaluation and tile.
type Run = (usize, usize);

/// What there is to do.
#[derive(Debug, Default)]
pub(crate) struct Totals {
    pub(crate) evaluations: usize,
    pub(crate) tiles: usize,
    /// Tasks that this process will do if none fails.
    pub(crate) tasks: u64,
    /// Tasks of one run without any reuse.
    pub(crate) tasks_a_run: u64,
    /// Tasks that buckets share, and that a cache had: not among those.
    pub(crate) shared_in_buckets: u64,
    pub(crate) recalled: u64,
    /// The runs that share an instance, by the run that stands for it.
    pub(crate) runs_of: HashMap<Run, Vec<Run>>,
    /// The tasks, and what they are believed to take.
    pub(crate) left: Left,
}

/// How far a study is.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Counts {
    /// Evaluations of which every run is known or has failed.
    pub(crate) evaluations: usize,
    pub(crate) failed_runs: usize,
    /// Tasks that this process had run.
    pub(crate) tasks_run: u64,
    pub(crate) tasks_left: u64,
    /// Tasks that were run, or did not have to be.
    pub(crate) tasks_done: u64,
    /// Since this process began with the study.
    pub(crate) passed: Duration,
    /// What the tasks that are left are believed to take, one after the other.
    pub(crate) work_seconds: f64,
    /// What one run of those that are left is.
    pub(crate) run_seconds: f64,
    /// The share of the predicted work that is done; none where there is nothing to do.
    pub(crate) share: Option<f64>,
}

impl Counts {
    /// What is left, at the pace so far.
    pub(crate) fn seconds_left(&self) -> Option<f64> {
        let pace = self.passed.as_secs_f64() / self.tasks_done as f64;
        (self.tasks_done > 0).then_some(pace * self.tasks_left as f64)
    }
}

/// How progress is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shown {
    /// A bar where stderr is a terminal, else lines.
    Fitting,
    /// Nothing.
    Nothing,
}

enum Style {
    Bar(ProgressBar),
    Lines { last: Instant },
    Nothing,
}

struct State {
    style: Style,
    totals: Totals,
    ledger: Arc<Ledger>,
    start: Instant,
    /// Tasks done, whether or not they had to be run.
    done: u64,
    /// Tasks run.
    tasks: u64,
    runs: usize,
    failed: usize,
    /// Runs that each evaluation still waits for.
    open: Vec<usize>,
    evaluations: usize,
}

/// A study's progress, told from several threads.
#[derive(Clone)]
pub(crate) struct Progress(Arc<Mutex<State>>);

impl Progress {
    pub(crate) fn new(shown: Shown, totals: Totals, ledger: Arc<Ledger>) -> Self {
        let start = Instant::now();
        let style = match shown {
            Shown::Nothing => Style::Nothing,
            Shown::Fitting if std::io::stderr().is_terminal() => Style::Bar(bar(totals.tasks)),
            Shown::Fitting => Style::Lines { last: start },
        };
        let open = vec![totals.tiles; totals.evaluations + 1];
        let counts = (0, 0, 0, 0);
        let (tasks, runs, failed, evaluations) = counts;
        Self(Arc::new(Mutex::new(State {
            style,
            totals,
            ledger,
            start,
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

    /// Tasks are done, some of them because they were run.
    pub(crate) fn done(&self, tasks: &[TaskReport]) {
        let mut state = self.state();
        let ran = tasks.iter().filter(|task| matches!(task.done, TaskDone::Ran { .. })).count();
        state.done += tasks.len() as u64;
        state.tasks += ran as u64;
        state.totals.left.done(tasks);
        state.show();
    }

    /// The responses of instances are known for good; each is named by the run that stands for it.
    pub(crate) fn known(&self, runs: impl IntoIterator<Item = Run>) {
        let mut state = self.state();
        runs.into_iter().for_each(|run| state.count(run, false));
        state.show();
    }

    /// An instance has failed.
    pub(crate) fn failed(&self, run: Run) {
        let mut state = self.state();
        state.count(run, true);
        state.show();
    }

    /// How far the study is.
    pub(crate) fn counts(&self) -> Counts {
        let state = self.state();
        Counts {
            evaluations: state.evaluations,
            failed_runs: state.failed,
            tasks_run: state.tasks,
            tasks_left: state.totals.tasks.saturating_sub(state.done),
            tasks_done: state.done,
            passed: state.start.elapsed(),
            work_seconds: state.totals.left.work_seconds(),
            run_seconds: state.totals.left.run_seconds(),
            share: state.totals.left.share_done(),
        }
    }

    /// Tasks that need not be executed since buckets share them, and since a cache had them.
    pub(crate) fn spared(&self) -> (u64, u64) {
        let state = self.state();
        (state.totals.shared_in_buckets, state.totals.recalled)
    }

    /// Nothing more will be shown.
    pub(crate) fn finish(&self) {
        let mut state = self.state();
        if let Style::Bar(bar) = std::mem::replace(&mut state.style, Style::Nothing) {
            bar.finish_and_clear();
        }
    }
}

fn bar(tasks: u64) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(tasks), ProgressDrawTarget::stderr());
    // Two lines that fit 80 columns with six digits of runs and seven of tasks.
    let template = "{bar:26} {percent:>3} %  {prefix}\n{msg}, {elapsed} passed, {eta} left";
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style.progress_chars("=> "));
    }
    bar
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

    /// What would have run without reuse for the runs that are known, less what has run.
    fn reused(&self) -> u64 {
        (self.totals.tasks_a_run * (self.runs - self.failed) as u64).saturating_sub(self.tasks)
    }

    fn counts(&self) -> String {
        let all = self.totals.evaluations * self.totals.tiles;
        let failed = if self.failed > 0 { format!(", {} failed", self.failed) } else { String::new() };
        format!(
            "{}/{} evaluations, {}/{all} runs{failed}",
            self.evaluations, self.totals.evaluations, self.runs
        )
    }

    fn work(&self) -> String {
        let held = self.ledger.held_bytes() / 1_000_000;
        format!("{} tasks run, {} reused, {held} MB held", self.tasks, self.reused())
    }

    fn show(&mut self) {
        let now = Instant::now();
        let due = match &self.style {
            Style::Bar(bar) => {
                bar.set_prefix(self.counts());
                bar.set_message(self.work());
                bar.set_position(self.done.min(self.totals.tasks));
                false
            }
            Style::Lines { last } => now.duration_since(*last) >= LINE_EVERY,
            Style::Nothing => false,
        };
        if due {
            self.style = Style::Lines { last: now };
            self.print_line(now.duration_since(self.start));
        }
    }

    #[expect(clippy::print_stderr, reason = "this is where progress is shown")]
    fn print_line(&self, passed: Duration) {
        let open = self.totals.tasks.saturating_sub(self.done) as f64;
        let left = passed.mul_f64(open / self.done.max(1) as f64);
        let (passed, left) = (HumanDuration(passed), HumanDuration(left));
        eprintln!("{}; {}; {passed} passed, about {left} left", self.counts(), self.work());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two evaluations on two tiles of three tasks a run; on the second tile they share one instance.
    fn progress() -> Progress {
        let runs_of = HashMap::from([
            ((0, 0), Vec::new()),
            ((1, 0), vec![(1, 0)]),
            ((2, 0), vec![(2, 0)]),
            ((1, 1), vec![(1, 1), (2, 1)]),
        ]);
        let left = Left::new([((0, 0), 9, 2.0)]);
        let totals =
            Totals { evaluations: 2, tiles: 2, tasks: 9, tasks_a_run: 3, runs_of, left, ..Totals::default() };
        let ledger = Arc::new(Ledger::default());
        ledger.add(12_900_000);
        Progress::new(Shown::Nothing, totals, ledger)
    }

    const RAN: TaskReport = TaskReport {
        task: 0,
        stage: 0,
        done: TaskDone::Ran { seconds: 4.0, predicted_seconds: 2.0, digests: 0, digest_seconds: 0.0 },
        cache_seconds: 0.0,
    };

    const REUSED: TaskReport =
        TaskReport { done: TaskDone::Reused(pleach_dispatch::message::Reused::Dataflow), ..RAN };

    fn said(progress: &Progress) -> (String, String) {
        let state = progress.state();
        (state.counts(), state.work())
    }

    #[test]
    fn an_evaluation_counts_when_all_its_tiles_do() {
        let progress = progress();
        let expect =
            |counts: &str, work: &str| assert_eq!(said(&progress), (counts.to_owned(), work.to_owned()));
        expect("0/2 evaluations, 0/4 runs", "0 tasks run, 0 reused, 12 MB held");
        progress.done(&[RAN, RAN, RAN, RAN, REUSED]);
        // Of four, each took twice what was foreseen; what is reused makes the rest cheaper.
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
}
