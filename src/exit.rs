//! Exit codes and the last words on stderr.

use crate::burst::BurstError;
use crate::execution::ExecutionError;
use crate::exporter::ExporterError;
use crate::external::error::{
    DesignFormError, DrawError, ImportFileError, MethodError, ProblemError, ResponsesError, SampleTableError,
};
use crate::gallery::previews::PreviewNameError;
use crate::results::ResultsError;
use crate::rounds::{RoundsError, phases::PhasesError};
use crate::service::state::StateError;
use crate::service::study_runner::StudyRunError;
use crate::session::SessionError;
use pleach_actors::panic_guard::{THREAD_NAME, is_running_task};
use pleach_pathology::image_io::ImageFileError;
use pleach_results::cache_walk::CacheFolderError;
use pleach_results::folder::FolderError;
use pleach_results::template::TemplateFolderError;
use pleach_study::{Defect, PrepareError};
use pleach_workflow::text::quoted;
use std::error::Error;
use std::fmt::Display;
use std::io::{self, ErrorKind};
use std::process::ExitCode;

/// The exit code of an interrupted study.
pub(crate) const INTERRUPTED: u8 = 5;

/// The exit code of a full disk or quota: the input is right, and the same command works once there is space.
const NO_SPACE: u8 = 6;

/// Linux' numbers of a full disk and a full quota (ENOSPC, EDQUOT), as Rust shows them.
const FULL: [&str; 2] = ["(os error 28)", "(os error 122)"];

/// How a command can end, besides well.
#[derive(Debug)]
pub(crate) enum CommandError {
    /// The user's input is wrong: one line that says where and what is allowed. Exit code 2.
    Input(String),
    /// Some evaluations failed; the rest is written. Exit code 3.
    SomeFailed(String),
    /// The manager cannot be reached, or refuses. Exit code 4.
    Refused(String),
    /// Stopped by a signal; it can be continued. Exit code 5.
    Interrupted(String),
    /// A disk or a quota is full. Exit code 6.
    NoSpace(String),
    /// A defect of pleach. Exit code 70 (`EX_SOFTWARE`).
    Internal(String),
}

/// What a command returns.
pub(crate) type CommandResult<T = ()> = Result<T, CommandError>;

impl CommandError {
    pub(crate) fn input(error: impl Display) -> Self {
        Self::Input(error.to_string())
    }

    pub(crate) fn defect(error: impl Display) -> Self {
        Self::Internal(error.to_string())
    }

    /// A failed write of `object`, such as `--out results: failed to write run.json`: [`CommandError::NoSpace`] where the disk or a
    /// quota is full, else [`CommandError::Input`].
    pub(crate) fn writing(object: impl Display, error: &io::Error) -> Self {
        Self::of_write(error, format!("{object}: {error}"))
    }

    /// Returns the end of a command for an error. The causes of the error decide: a [`Defect`] is internal, a full disk or
    /// quota is [`CommandError::NoSpace`], and any other error stems from the input.
    pub(crate) fn of(error: &(dyn Error + 'static)) -> Self {
        Self::caused(error, error.to_string())
    }

    /// As [`CommandError::of`], with a message that contains the error.
    pub(crate) fn caused(error: &(dyn Error + 'static), message: String) -> Self {
        let mut cause = Some(error);
        while let Some(error) = cause {
            if error.is::<Defect>() {
                return Self::Internal(message);
            }
            if let Some(error) = error.downcast_ref::<io::Error>() {
                return Self::of_write(error, message);
            }
            cause = error.source();
        }
        Self::Input(message)
    }

    /// A tile that cannot be read or written.
    pub(crate) fn tile(error: ImageFileError) -> Self {
        match &error {
            ImageFileError::Unwritable { cause, .. } => Self::of_write(cause, error.to_string()),
            _ => Self::input(error),
        }
    }

    /// The same as [`CommandError::writing`] with a message that already contains the error.
    pub(crate) fn of_write(error: &io::Error, message: String) -> Self {
        // Encoders wrap the error of the file that they write to, or keep no more than its text.
        let mut cause: Option<&(dyn Error + 'static)> = Some(error);
        while let Some(error) = cause {
            let kind = error.downcast_ref::<io::Error>().map(io::Error::kind);
            let is_full = matches!(kind, Some(ErrorKind::StorageFull | ErrorKind::QuotaExceeded));
            if is_full || FULL.iter().any(|code| message.contains(code)) {
                return Self::NoSpace(message);
            }
            cause = error.source();
        }
        Self::Input(message)
    }
}

/// Errors of the crates below, whose causes decide the exit code.
macro_rules! exit_code_by_cause {
    ($($error:ty),+ $(,)?) => {
        $(impl From<$error> for CommandError {
            fn from(error: $error) -> Self {
                Self::of(&error)
            }
        })+
    };
}

exit_code_by_cause!(
    CacheFolderError,
    Defect,
    ExecutionError,
    FolderError,
    PhasesError,
    PrepareError,
    PreviewNameError,
    ResultsError,
    RoundsError,
    SessionError,
    TemplateFolderError,
);
exit_code_by_cause!(ProblemError, ImportFileError, MethodError, DrawError, SampleTableError);
exit_code_by_cause!(ResponsesError, DesignFormError);
exit_code_by_cause!(BurstError, ExporterError, StateError);

impl From<StudyRunError> for CommandError {
    fn from(error: StudyRunError) -> Self {
        match error {
            StudyRunError::Canceled(_) => Self::Interrupted(error.to_string()),
            error => Self::of(&error),
        }
    }
}

/// Turns the end of a command into an exit code, and says why it is not 0.
#[expect(clippy::print_stderr, reason = "this is where errors are printed")]
pub(crate) fn report(outcome: CommandResult) -> ExitCode {
    let (code, text) = match outcome {
        Ok(()) => return ExitCode::SUCCESS,
        Err(CommandError::Input(text)) => (2, format!("error: {text}")),
        Err(CommandError::SomeFailed(text)) => (3, format!("warning: {text}")),
        Err(CommandError::Refused(text)) => (4, format!("error: {text}")),
        Err(CommandError::Interrupted(text)) => (INTERRUPTED, format!("interrupted: {text}")),
        Err(CommandError::NoSpace(text)) => (NO_SPACE, format!("error: {text}")),
        Err(CommandError::Internal(text)) => (70, format!("defect in pleach: {text}; please report it")),
    };
    eprintln!("{}", one_line(&text));
    ExitCode::from(code)
}

/// Longest message that anybody reads: what a file says of itself may be quoted in it.
const MAX_LETTERS: usize = 4_000;

/// Messages are one line each: whatever a library put into one, a script can read it line by line.
fn one_line(text: &str) -> String {
    let text = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join(" ");
    quoted(&text, MAX_LETTERS)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("the cache")]
    struct CacheError(#[source] io::Error);

    #[test]
    fn failed_write_of_full_disk_or_quota_is_no_space() {
        let stop =
            |kind: ErrorKind| CommandError::writing("--out out: failed to write run.json", &kind.into());
        for kind in [ErrorKind::StorageFull, ErrorKind::QuotaExceeded] {
            let CommandError::NoSpace(text) = stop(kind) else { panic!("{kind}") };
            assert!(text.starts_with("--out out: failed to write run.json: "), "{text}");
        }
        let nested = CacheError(ErrorKind::StorageFull.into());
        assert!(matches!(CommandError::caused(&nested, String::new()), CommandError::NoSpace(_)));
        for kind in [ErrorKind::PermissionDenied, ErrorKind::ReadOnlyFilesystem, ErrorKind::NotFound] {
            assert!(matches!(stop(kind), CommandError::Input(_)), "{kind}");
        }
    }
}
