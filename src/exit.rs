//! Exit codes, and the message of a failed command on stderr.

use crate::burst::BurstError;
use crate::interrupt::EXIT_CODE as INTERRUPTED;
use crate::log::LogError;
use crate::spill::SpillError;
use pleach_actors::panic_guard::{THREAD_NAME, is_running_task};
use pleach_api::submission::UndescribedError;
use pleach_client::download::DownloadError;
use pleach_client::{ClientError, CredentialsError, Interrupted, StudyEndError, SubmitError};
use pleach_execution::executor::ExecutionError;
use pleach_execution::result_files::ResultsError;
use pleach_execution::rounds::{RoundsError, phases::PhasesError};
use pleach_execution::session::SessionError;
use pleach_export::{ExportError, FolderStateError};
use pleach_interop::classification::ClassificationError;
use pleach_interop::error::{
    DesignFormError, DrawError, ImportFileError, MethodError, ProblemError, ResponsesError, SampleTableError,
};
use pleach_interop::study_start::StartError;
use pleach_interop::workflow_files::WorkflowImportError;
use pleach_interop::workflow_stub::StubError;
use pleach_pathology::image_io::ImageFileError;
use pleach_report::gallery::previews::PreviewNameError;
use pleach_results::cache_walk::CacheFolderError;
use pleach_results::chosen::ChoiceError;
use pleach_results::folder::FolderError;
use pleach_results::template::TemplateFolderError;
use pleach_server::exporter::ExporterError;
use pleach_server::service::state::StateError;
use pleach_study::applied::{AppliedPathError, SettingError};
use pleach_study::{AppliedStudyError, Cause, Defect, PrepareError, is_full};
use pleach_workflow::text::quoted;
use std::error::Error;
use std::fmt::Display;
use std::io;
use std::process::ExitCode;

/// The exit code of a full disk or quota: the input is right, and the same command works once there is space.
const NO_SPACE: u8 = 6;

/// Reason why a command failed.
#[derive(Debug)]
pub(crate) enum CommandError {
    /// The user's input is wrong: one line with the place and the allowed values. Exit code 2.
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

/// Result of a command.
pub(crate) type CommandResult<T = ()> = Result<T, CommandError>;

impl CommandError {
    pub(crate) fn input(error: impl Display) -> Self {
        Self::Input(error.to_string())
    }

    pub(crate) fn defect(error: impl Display) -> Self {
        Self::Internal(error.to_string())
    }

    /// Returns the end of a command for a failed write of `object`, such as `--out results: failed to write run.json`:
    /// [`CommandError::NoSpace`] if the disk or a quota is full, else [`CommandError::Input`].
    pub(crate) fn writing(object: impl Display, error: &io::Error) -> Self {
        Self::of_write(error, format!("{object}: {error}"))
    }

    /// Returns the end of a command for an error. The causes of the error decide: a [`Defect`] is internal,
    /// [`Interrupted`] is an interruption, a full disk or quota is [`CommandError::NoSpace`], and any other error stems
    /// from the input.
    pub(crate) fn of(error: &(dyn Error + 'static)) -> Self {
        Self::caused(error, error.to_string())
    }

    /// As [`CommandError::of`], with a message that contains the error.
    pub(crate) fn caused(error: &(dyn Error + 'static), message: String) -> Self {
        if sources(error).any(|error| error.is::<Interrupted>()) {
            return Self::Interrupted(message);
        }
        match Cause::of(error) {
            Cause::Input => Self::Input(message),
            Cause::NoSpace => Self::NoSpace(message),
            Cause::Defect => Self::Internal(message),
        }
    }

    /// Returns the end of a command for a tile that cannot be read or written.
    pub(crate) fn tile(error: ImageFileError) -> Self {
        match &error {
            ImageFileError::Unwritable { cause, .. } => Self::of_write(cause, error.to_string()),
            _ => Self::input(error),
        }
    }

    /// The same as [`CommandError::writing`] with a message that already contains the error.
    pub(crate) fn of_write(error: &io::Error, message: String) -> Self {
        if is_full(error) { Self::NoSpace(message) } else { Self::Input(message) }
    }
}

/// Returns an error and its chain of sources.
fn sources<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    std::iter::successors(Some(error), |error: &&(dyn Error + 'static)| Error::source(*error))
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
    AppliedPathError,
    AppliedStudyError,
    BurstError,
    CacheFolderError,
    ClassificationError,
    ChoiceError,
    CredentialsError,
    Defect,
    DesignFormError,
    DrawError,
    ExecutionError,
    ExportError,
    ExporterError,
    FolderError,
    FolderStateError,
    ImportFileError,
    LogError,
    MethodError,
    PhasesError,
    PrepareError,
    PreviewNameError,
    ProblemError,
    ResponsesError,
    ResultsError,
    RoundsError,
    SampleTableError,
    SessionError,
    SettingError,
    SpillError,
    StartError,
    StateError,
    StubError,
    TemplateFolderError,
    UndescribedError,
    WorkflowImportError,
);

impl From<ClientError> for CommandError {
    fn from(error: ClientError) -> Self {
        if is_refusal(&error) { Self::Refused(error.to_string()) } else { Self::of(&error) }
    }
}

/// Returns whether the manager refused a request, or cannot be reached.
fn is_refusal(error: &ClientError) -> bool {
    match error {
        ClientError::Refused { .. }
        | ClientError::Untrusted(_)
        | ClientError::Unavailable { .. }
        | ClientError::Answer { .. } => true,
        ClientError::Rejected { .. } | ClientError::Interrupted(_) | ClientError::Defect(_) => false,
    }
}

impl From<SubmitError> for CommandError {
    fn from(error: SubmitError) -> Self {
        match &error {
            SubmitError::ForeignFile { .. }
            | SubmitError::RefusedFile { .. }
            | SubmitError::StillMissing { .. } => Self::Refused(error.to_string()),
            SubmitError::Client(cause) if is_refusal(cause) => Self::Refused(error.to_string()),
            SubmitError::Client(_)
            | SubmitError::Unreadable { .. }
            | SubmitError::Changed { .. }
            | SubmitError::Defect(_) => Self::of(&error),
        }
    }
}

impl From<DownloadError> for CommandError {
    fn from(error: DownloadError) -> Self {
        match &error {
            DownloadError::ForeignName { .. }
            | DownloadError::CorruptPlan { .. }
            | DownloadError::Incomplete { .. } => Self::Refused(error.to_string()),
            DownloadError::Client(cause) if is_refusal(cause) => Self::Refused(error.to_string()),
            DownloadError::Client(_)
            | DownloadError::Out(_)
            | DownloadError::Interrupted(_)
            | DownloadError::Defect(_) => Self::of(&error),
        }
    }
}

impl From<StudyEndError> for CommandError {
    fn from(error: StudyEndError) -> Self {
        match &error {
            StudyEndError::Failed { .. } | StudyEndError::Canceled { .. } => Self::Refused(error.to_string()),
            StudyEndError::FailedRuns { .. } => Self::SomeFailed(error.to_string()),
        }
    }
}

/// Converts the end of a command into an exit code. Prints the reason if it is not 0.
#[expect(clippy::print_stderr, reason = "errors are printed here")]
pub(crate) fn report(outcome: CommandResult) -> ExitCode {
    let (code, text) = match outcome {
        Ok(()) => return ExitCode::SUCCESS,
        Err(CommandError::Input(text)) => (2, format!("error: {text}")),
        Err(CommandError::SomeFailed(text)) => (3, format!("warning: {text}")),
        Err(CommandError::Refused(text)) => (4, format!("error: {text}")),
        Err(CommandError::Interrupted(text)) => (INTERRUPTED, format!("interrupted: {text}")),
        Err(CommandError::NoSpace(text)) => (NO_SPACE, format!("error: {text}")),
        Err(CommandError::Internal(text)) => (70, format!("internal error: {text}; please report it")),
    };
    eprintln!("{}", one_line(&text));
    ExitCode::from(code)
}

/// Maximum length of a message, which may quote the content of a file.
const MAX_LETTERS: usize = 4_000;

/// Joins the lines of a message, which may come from a library: scripts read messages line by line.
fn one_line(text: &str) -> String {
    let text = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join(" ");
    quoted(&text, MAX_LETTERS)
}

/// Makes a panic end the process at once as a defect, because other threads would wait forever for the actor that
/// panicked. A panic on a task thread, or while a thread runs a task, is that task's failure, which the task reports.
#[expect(
    clippy::print_stderr,
    clippy::exit,
    reason = "a defect is reported here, and no thread can continue"
)]
pub(crate) fn install_panic_hook() {
    std::panic::set_hook(Box::new(|panic| {
        let thread = std::thread::current();
        if is_running_task() || thread.name().is_some_and(|name| name.starts_with(THREAD_NAME)) {
            return;
        }
        let text = format!("internal error: {panic}; please report it");
        eprintln!("{}", one_line(&text));
        std::process::exit(70);
    }));
}

#[cfg(test)]
mod tests {
    use super::*;
    use pleach_client::download::{OutError, OutProblem};
    use std::io::ErrorKind;

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

    #[test]
    fn errors_of_the_client_follow_their_causes() {
        let client = |error: ClientError| CommandError::from(DownloadError::from(error));
        let rejected = client(ClientError::Rejected { detail: "a study".to_owned() });
        assert!(matches!(rejected, CommandError::Input(text) if text == "a study"));
        let interrupted = Interrupted { study_state: "study s1 continues".to_owned() };
        let stop = client(interrupted.clone().into());
        assert!(matches!(stop, CommandError::Interrupted(text) if text == "study s1 continues"));
        let stop = CommandError::from(SubmitError::from(ClientError::from(interrupted)));
        assert!(matches!(stop, CommandError::Interrupted(text) if text == "study s1 continues"));
        assert!(matches!(client(Defect::new("none").into()), CommandError::Internal(text) if text == "none"));
        let unreadable = || ClientError::Answer {
            manager: "m1:7118".parse().unwrap(),
            cause: serde_json::from_str::<u8>("").unwrap_err().into(),
        };
        assert!(matches!(CommandError::from(unreadable()), CommandError::Refused(_)));
        assert!(matches!(client(unreadable()), CommandError::Refused(_)));
        assert!(matches!(CommandError::from(SubmitError::from(unreadable())), CommandError::Refused(_)));
        let (study, message) = ("s1".to_owned(), None);
        let ends = [
            CommandError::from(StudyEndError::Failed { study: study.clone(), message }),
            StudyEndError::FailedRuns { study: study.clone(), runs: 2 }.into(),
            SubmitError::StillMissing { study, files: 1 }.into(),
            DownloadError::ForeignName { name: "/etc".to_owned() }.into(),
        ];
        assert!(matches!(
            ends,
            [
                CommandError::Refused(_),
                CommandError::SomeFailed(_),
                CommandError::Refused(_),
                CommandError::Refused(_)
            ]
        ));
        for (kind, is_full) in [(ErrorKind::StorageFull, true), (ErrorKind::PermissionDenied, false)] {
            let problem = OutProblem::Publish(kind.into());
            let stop = CommandError::from(DownloadError::from(OutError { out: "out".into(), problem }));
            let expected = format!("--out out: failed to publish results: {}", io::Error::from(kind));
            match stop {
                CommandError::NoSpace(text) => assert!(is_full && text == expected, "{text}"),
                CommandError::Input(text) => assert!(!is_full && text == expected, "{text}"),
                other => panic!("{other:?}"),
            }
        }
    }
}
