//! Errors of planning the study of a burst.

use pleach_planner::PlanningError;
use pleach_results::measured_run::MeasuredRunError;
use pleach_results::provenance::EqualResultsError;
use pleach_study::{Defect, PrepareError};
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Reason why the study of a burst cannot be simulated.
#[derive(Debug, Error)]
pub(crate) enum BurstError {
    /// The study cannot be prepared.
    #[error("{0}")]
    Study(#[source] Box<PrepareError>),
    /// The measured run cannot be read.
    #[error("{0}")]
    Run(#[from] MeasuredRunError),
    /// The measured run does not fit the simulation.
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

impl BurstError {
    /// Returns the error of a run that has another reuse scope than value.
    pub(super) fn other_scope(file: &Path, found: Option<String>) -> Self {
        let found = found.map_or_else(|| "none".to_owned(), |found| format!("{found:?}"));
        Self::MeasuredRun { file: file.to_owned(), problem: MeasuredRunProblem::OtherScope { found } }
    }
}

/// Reason why a measured run does not fit a simulation.
#[derive(Debug, Error)]
pub(crate) enum MeasuredRunProblem {
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
