//! Progress on a terminal: a bar on stderr, and nothing where stderr is no terminal.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use pleach_actors::manager::{Observer, Progress};

/// An observer that draws, or one that does not when `quiet` or when stderr is no terminal.
pub(crate) fn observer(quiet: bool) -> Observer {
    let target = if quiet { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() };
    let bar = ProgressBar::with_draw_target(None, target);
    // Fits 80 columns with seven digits of tasks.
    let template = "{bar:20} {percent:>3} %, {msg}, {elapsed} passed, {eta} left";
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
    bar.set_message("no task run yet");
    Box::new(move |progress: Progress| {
        bar.set_length(progress.all_instances as u64);
        bar.set_position(progress.instances as u64);
        let failed =
            if progress.failed > 0 { format!(", {} stages failed", progress.failed) } else { String::new() };
        bar.set_message(format!("{} tasks run{failed}", progress.tasks));
        if progress.instances == progress.all_instances {
            bar.finish_and_clear();
        }
    })
}
