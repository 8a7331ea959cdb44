//! Progress of client commands on stderr: bars on a terminal, else occasional lines.

use super::line_on_stderr;
use crate::live::{self, LiveArea, Stream, bar_width};
use indicatif::{HumanDuration, ProgressBar, ProgressDrawTarget, ProgressStyle};
use pleach_api::schema::{StudyState, StudyStatus};
use pleach_client::{TransferProgress, plain};
use std::io::IsTerminal;
use std::time::{Duration, Instant};

/// Interval between plain lines: short enough to show progress, long enough for a log.
pub(super) const LINE_EVERY: Duration = Duration::from_secs(10);

/// Progress bar of an upload or download.
#[derive(Clone, Debug)]
pub(in crate::command) struct TransferBar(ProgressBar);

impl TransferBar {
    /// Creates a bar. It is hidden if `is_quiet` or if stderr is not a terminal.
    pub(in crate::command) fn new(what: &'static str, is_quiet: bool) -> Self {
        if is_quiet || !std::io::stderr().is_terminal() {
            return Self(ProgressBar::hidden());
        }
        let bar = ProgressBar::with_draw_target(Some(0), ProgressDrawTarget::stderr());
        // One line that fits 60 columns. On a narrower terminal the bar shrinks away.
        if let Ok(style) = ProgressStyle::with_template("{msg} {wide_bar} {bytes} {bytes_per_sec}") {
            bar.set_style(style.progress_chars("=> "));
        }
        bar.set_message(what);
        Self(bar)
    }
}

impl TransferProgress for TransferBar {
    fn begin(&self, bytes: u64) {
        self.0.set_length(bytes);
    }

    fn position(&self) -> u64 {
        self.0.position()
    }

    fn advance(&self, bytes: u64) {
        self.0.inc(bytes);
    }

    fn back_to(&self, position: u64) {
        self.0.set_position(position);
    }

    /// Removes the bar.
    fn finish(&self) {
        self.0.finish_and_clear();
    }
}

/// Returns the progress of a study in one line.
pub(super) fn progress(study: &StudyStatus) -> String {
    let percent = percent(study).map_or_else(String::new, |percent| format!("{percent} done, "));
    format!("{}, {percent}{}", heading(study), details(study))
}

/// Returns the share of the predicted work that is done. It rises steadily, whereas most evaluations of a merged plan
/// end late.
pub(super) fn percent(study: &StudyStatus) -> Option<String> {
    let share = study.progress.filter(|share| (0.0..=1.0).contains(share))?;
    // 100 % is reserved for studies that have ended.
    let most = if study.state.is_over() { 100.0 } else { 99.0 };
    Some(format!("{:.0} %", (100.0 * share).floor().min(most)))
}

fn heading(study: &StudyStatus) -> String {
    let phase = study.phase_of().map_or_else(String::new, |phase| format!(", {phase}"));
    format!("{} {}: {}{phase}", plain(&study.id), plain(&study.name), study.state)
}

fn details(study: &StudyStatus) -> String {
    let mut text = format!(
        "{}/{} evaluations, {} tasks run, {} left",
        study.evaluations_done, study.evaluations, study.tasks_executed, study.remaining_tasks,
    );
    if study.failed > 0 {
        text.push_str(&format!(", {} runs failed", study.failed));
    }
    if let Some(left) = time_left(study) {
        text.push_str(&format!(", about {left} left"));
    }
    for remark in &study.remarks {
        text.push_str(&format!(", {}", plain(remark)));
    }
    if let Some(message) = &study.message {
        text.push_str(&format!(": {}", plain(message)));
    }
    text
}

/// Returns the predicted remaining time of a study in words.
pub(super) fn time_left(study: &StudyStatus) -> Option<String> {
    let left = study.remaining_seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    left.filter(|_| !study.state.is_over()).map(|left| HumanDuration(left).to_string())
}

/// Progress display of a study that a command waits for.
pub(in crate::command) struct StudyBar {
    area: Option<LiveArea>,
    last: Option<Instant>,
    state: Option<StudyState>,
    is_quiet: bool,
}

impl StudyBar {
    pub(in crate::command) fn new(is_quiet: bool) -> Self {
        let area = if is_quiet { None } else { LiveArea::new(Stream::Stderr) };
        Self { area, last: None, state: None, is_quiet }
    }

    pub(in crate::command) fn show(&mut self, study: &StudyStatus) {
        if let Some(area) = &mut self.area {
            area.show(|width| frame(study, width));
            return;
        }
        let is_due = self.last.is_none_or(|last| last.elapsed() >= LINE_EVERY);
        let is_new = self.state.replace(study.state) != Some(study.state);
        if !self.is_quiet && (is_due || is_new) {
            self.last = Some(Instant::now());
            line_on_stderr(&progress(study));
        }
    }

    pub(in crate::command) fn finish(&mut self) {
        if let Some(area) = &mut self.area {
            area.clear();
        }
    }
}

/// Returns the progress of a study as a bar and a line below it.
pub(super) fn frame(study: &StudyStatus, width: usize) -> Vec<String> {
    // With much reuse, evaluations end late. Tasks measure progress better.
    let tasks = study.tasks_executed.saturating_add(study.remaining_tasks).max(1);
    let share = study.tasks_executed as f64 / tasks as f64;
    let bar = live::bar(bar_width(width), share);
    vec![format!("{bar} {:>3.0} %  {}", (share * 100.0).floor(), heading(study)), details(study)]
}
