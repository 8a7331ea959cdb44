//! Exit codes and the last words on stderr.

use pleach_actors::task::{THREAD_NAME, is_running_task};
use pleach_workflow::text::quoted;
use std::fmt::Display;
use std::process::ExitCode;

/// The exit code of an interrupted study.
pub(crate) const INTERRUPTED: u8 = 5;

/// How a command can end, besides well.
#[derive(Debug)]
pub(crate) enum Stop {
    /// The user's input is wrong: one line that says where and what is allowed. Exit code 2.
    Input(String),
    /// Some evaluations failed; the rest is written. Exit code 3.
    SomeFailed(String),
    /// The manager cannot be reached, or refuses. Exit code 4.
    Refused(String),
    /// Stopped by a signal; it can be continued. Exit code 5.
    Interrupted(String),
    /// A defect of pleach. Exit code 70 (`EX_SOFTWARE`).
    Defect(String),
}

/// What a command returns.
pub(crate) type Outcome<T = ()> = Result<T, Stop>;

impl Stop {
    pub(crate) fn input(error: impl Display) -> Self {
        Self::Input(error.to_string())
    }

    pub(crate) fn defect(error: impl Display) -> Self {
        Self::Defect(error.to_string())
    }
}

/// Turns the end of a command into an exit code, and says why it is not 0.
#[expect(clippy::print_stderr, reason = "this is where errors are printed")]
pub(crate) fn report(outcome: Outcome) -> ExitCode {
    let (code, text) = match outcome {
        Ok(()) => return ExitCode::SUCCESS,
        Err(Stop::Input(text)) => (2, format!("error: {text}")),
        Err(Stop::SomeFailed(text)) => (3, format!("warning: {text}")),
        Err(Stop::Refused(text)) => (4, format!("error: {text}")),
        Err(Stop::Interrupted(text)) => (INTERRUPTED, format!("interrupted: {text}")),
        Err(Stop::Defect(text)) => (70, format!("defect in pleach: {text}; please report it")),
    };
    eprintln!("{}", one_line(&text));
    ExitCode::from(code)
}

/// Longest message that anybody reads: what a file says of itself may be quoted in it.
const MOST_LETTERS: usize = 4_000;

/// Messages are one line each: whatever a library put into one, a script can read it line by line.
fn one_line(text: &str) -> String {
    let text = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join(" ");
    quoted(&text, MOST_LETTERS)
}

/// A panic on a thread that runs tasks, or while it runs one, is the task's failure and reported as such; any other is a defect, and
/// ends the process at once: an actor that is gone would be waited for for ever.
#[expect(clippy::print_stderr, clippy::exit, reason = "a defect is reported here, and nothing can go on")]
pub(crate) fn install_panic_hook() {
    std::panic::set_hook(Box::new(|panic| {
        let thread = std::thread::current();
        if is_running_task() || thread.name().is_some_and(|name| name.starts_with(THREAD_NAME)) {
            return;
        }
        let text = format!("defect in pleach: {panic}; please report it");
        eprintln!("{}", one_line(&text));
        std::process::exit(70);
    }));
}
