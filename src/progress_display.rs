//! Displays of a study's progress on stderr: a bar on a terminal, else occasional lines.

use crate::live::{LiveArea, Ranked, Stream, bar, bar_width, cut, fitting};
use indicatif::HumanDuration;
use pleach_execution::progress::{ProgressDisplay, ProgressView, percent};
use std::time::{Duration, Instant};

/// Interval between plain lines: short enough to show progress, long enough for a log.
const LINE_EVERY: Duration = Duration::from_secs(10);

/// Maximum width of a bar's line. A terminal of 80 or more columns then never wraps it, even if it reports its new size
/// only after rewrapping, as tmux does during rapid resizes.
const WIDEST: usize = 79;

/// Returns the display for stderr: a bar if it is a terminal, else lines.
pub(crate) fn fitting_stderr() -> Box<dyn ProgressDisplay> {
    match LiveArea::new(Stream::Stderr) {
        Some(area) => Box::new(Bar(area)),
        None => Box::new(Lines { last: Instant::now() }),
    }
}

/// Bar that is redrawn in place.
struct Bar(LiveArea);

impl ProgressDisplay for Bar {
    fn show(&mut self, view: &dyn Fn() -> ProgressView) {
        self.0.show(|width| frame(&view(), width));
    }

    fn is_marked(&self) -> bool {
        true
    }

    fn clear(&mut self) {
        self.0.clear();
    }
}

/// Plain lines, one every 10 s.
struct Lines {
    last: Instant,
}

impl ProgressDisplay for Lines {
    #[expect(clippy::print_stderr, reason = "progress is printed here")]
    fn show(&mut self, view: &dyn Fn() -> ProgressView) {
        let now = Instant::now();
        if now.duration_since(self.last) < LINE_EVERY {
            return;
        }
        self.last = now;
        let view = view();
        let left =
            view.remaining.map_or_else(String::new, |left| format!(", about {} left", HumanDuration(left)));
        let passed = HumanDuration(view.passed);
        let whole = |parts: &[Ranked]| fitting(parts, usize::MAX);
        eprintln!("{}; {}; {passed} elapsed{left}", whole(&counts(&view)), whole(&work(&view)));
    }

    fn is_marked(&self) -> bool {
        false
    }

    fn clear(&mut self) {}
}

fn counts(view: &ProgressView) -> Vec<Ranked> {
    let mut counts = vec![
        (0, format!("{}/{} evaluations", view.evaluations, view.all_evaluations)),
        (2, format!("{}/{} runs", view.runs, view.all_runs)),
    ];
    if view.failed > 0 {
        counts.push((1, format!("{} failed", view.failed)));
    }
    counts
}

fn work(view: &ProgressView) -> Vec<Ranked> {
    vec![
        (1, format!("{} tasks run", view.tasks)),
        (3, format!("{} reused", view.reused)),
        (4, format!("{} MB in memory", view.held_bytes / 1_000_000)),
    ]
}

/// Returns the two lines of the bar.
fn frame(view: &ProgressView, width: usize) -> Vec<String> {
    let width = width.min(WIDEST);
    let bar = format!("{} {:>3.0} %  ", bar(bar_width(width), view.share), percent(view.share));
    let counts = fitting(&counts(view), width.saturating_sub(bar.len()));
    let mut work = work(view);
    work.push((2, format!("{:#} elapsed", HumanDuration(view.passed))));
    work.extend(view.remaining.map(|left| (0, format!("{:#} left", HumanDuration(left)))));
    vec![cut(&format!("{bar}{counts}"), width), fitting(&work, width)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bar_fits_its_terminal() {
        let view = ProgressView {
            all_evaluations: 160_000,
            runs: 12,
            all_runs: 3_200_000,
            failed: 12,
            tasks: 4,
            held_bytes: 12_900_000,
            share: 5.0 / 9.0,
            passed: Duration::from_secs(15),
            remaining: Some(Duration::from_secs(12)),
            ..ProgressView::default()
        };
        for width in [119, 79, 59, 39, 25, 10] {
            for line in frame(&view, width) {
                assert!(line.chars().count() <= width.min(WIDEST), "{width}: {line}");
            }
        }
        assert_eq!(
            frame(&view, 79),
            [
                "=========>           55 %  0/160000 evaluations, 12/3200000 runs, 12 failed",
                "4 tasks run, 0 reused, 12 MB in memory, 15s elapsed, 12s left"
            ]
        );
        assert_eq!(
            frame(&view, 39),
            ["====>      55 %  0/160000 evaluations", "4 tasks run, 15s elapsed, 12s left"]
        );
    }
}
