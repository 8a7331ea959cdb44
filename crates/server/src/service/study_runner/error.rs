//! Errors of running a study on the manager's workers.

use crate::service::results::UnreadableError;
use crate::service::state::StateError;
use pleach_api::submission::SubmissionError;
use pleach_execution::executor::ExecutionError;
use pleach_execution::result_files::ResultsError;
use pleach_execution::rounds::{RoundsError, phases::PhasesError};
use pleach_execution::session::SessionError;
use pleach_planner::PlanningError;
use pleach_report::gallery::previews::PreviewNameError;
use pleach_results::folder::FolderError;
use pleach_results::journal::WriterError;
use pleach_study::{Defect, PrepareError};
use std::fmt;
use std::path::PathBuf;
use thiserror::Error;

/// Reason why a study does not run to its end.
#[derive(Debug, Error)]
pub(crate) enum StudyRunError {
    /// The submission is invalid or does not match its files.
    #[error("{0}")]
    Submission(#[from] SubmissionError),
    /// A phase of the study cannot be prepared.
    #[error("{0}")]
    Prepare(#[from] PrepareError),
    /// The planner panicked, because the submission is no study of this build.
    #[error("study {0}: the planner failed; the submission does not match this build of pleach")]
    NotPlannable(String),
    /// A preview of the submission is not possible.
    #[error("{0}")]
    Preview(#[from] PreviewNameError),
    /// The study cannot be planned for the present workers.
    #[error("{0}")]
    Planning(#[from] PlanningError),
    /// A number in the id of a plan exceeds its maximum.
    #[error("study {study}: {number} {parts}; at most {} are allowed", u16::MAX)]
    TooManyParts {
        /// Name of the study.
        study: String,
        /// Number of parts.
        number: usize,
        /// Kind of the parts.
        parts: StudyParts,
    },
    /// The study with this id was canceled.
    #[error("study {0} was canceled")]
    Canceled(u32),
    /// The state directory cannot be read or written.
    #[error("{0}")]
    State(#[from] StateError),
    /// The session cannot begin or continue.
    #[error("{0}")]
    Session(#[from] SessionError),
    /// The journal cannot be written.
    #[error("{}: {cause}; free disk space or repair the folder", folder.display())]
    Journal {
        /// The result folder.
        folder: PathBuf,
        /// Error of the journal.
        #[source]
        cause: WriterError,
    },
    /// A round cannot be prepared or its results cannot be written.
    #[error("{0}")]
    Rounds(#[from] RoundsError),
    /// The next phase cannot be prepared.
    #[error("{0}")]
    Phases(#[from] PhasesError),
    /// The results cannot be written.
    #[error("{0}")]
    Written(#[from] ResultsError),
    /// A file of the result folder cannot be written.
    #[error("{0}")]
    Folder(#[from] FolderError),
    /// The results cannot be read for their checksums.
    #[error("{0}")]
    Results(#[from] UnreadableError),
    /// A defect of pleach.
    #[error("{0}")]
    Defect(#[from] Defect),
}

impl From<ExecutionError> for StudyRunError {
    fn from(error: ExecutionError) -> Self {
        match error {
            ExecutionError::Journal { folder, cause } => Self::Journal { folder, cause },
            ExecutionError::Defect(defect) => Self::Defect(defect),
        }
    }
}

/// Parts of a study that the id of a plan numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StudyParts {
    /// Phases of the study.
    Phases,
    /// Rounds of a growing sample.
    Rounds,
}

impl fmt::Display for StudyParts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Phases => "phases",
            Self::Rounds => "rounds",
        })
    }
}
