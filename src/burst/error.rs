//! Errors of planning the study of a burst.

use pleach_planner::PlanningError;
use pleach_results::provenance::EqualResultsError;
use pleach_study::{Defect, PrepareError};
use std::io;
use std::path::PathBuf;
use thiserror::Error;

/// Reason why the study of a burst cannot be simulated.
#[derive(Debug, Error)]
pub(crate) enum BurstError {
    /// The study cannot be prepared.
    #[error("{0}")]
    Study(#[source] Box<PrepareError>),
    /// The measured run cannot be used.
    #[error("{}: {problem}", file.display())]
    MeasuredRun {
        /// File of the run.
        file: PathBuf,
        /// The problem.
        #[source]
        problem: MeasuredRunProblem,
    },
    /// The study cannot be planned.
    #[error("{0}")]
    Planning(#[from] PlanningError),
    /// A defect of pleach.
    #[error("{0}")]
    Defect(#[from] Defect),
}

impl From<PrepareError> for BurstError {
    fn from(error: PrepareError) -> Self {
        Self::Study(Box::new(error))
    }
}

/// Reason why a measured run cannot be used.
#[derive(Debug, Error)]
pub(crate) enum MeasuredRunProblem {
    /// The file cannot be read.
    #[error("failed to read: {0}")]
    Unreadable(#[source] io::Error),
    /// The file is not a `run.json`.
    #[error("{0}; the run.json of a study is needed")]
    Form(#[source] serde_json::Error),
    /// The run is of another study.
    #[error("study: {found:?} is not allowed; the run of {needed:?} is needed")]
    OtherStudy {
        /// Name of the study of the run.
        found: String,
        /// Name of the study of the burst.
        needed: String,
    },
    /// The run has another reuse scope.
    #[error("reuse: {found} is not allowed; reuse by value needs the run.json of pleach run --reuse value")]
    OtherScope {
        /// Reuse scope of the run.
        found: String,
    },
    /// The run is of another sample, of other tiles, or of another version of the workflow.
    #[error("records of {found} are not allowed; records of {needed} are needed")]
    OtherSample {
        /// Content of the records.
        found: String,
        /// Content that the study needs.
        needed: String,
    },
    /// The records beside the run do not have its equal results.
    #[error("{0}")]
    Records(#[source] EqualResultsError),
}
