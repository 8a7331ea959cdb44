//! Errors of submissions, on the side of the client and of the manager.

use super::VERSION;
use pleach_slides::SlideError;
use pleach_study::{Defect, PrepareError};
use std::io;
use std::path::PathBuf;
use thiserror::Error;

/// Reason why the client cannot describe the input files of a study.
#[derive(Debug, Error)]
pub enum UndescribedError {
    /// An input file cannot be read.
    #[error("{}: {cause}", file.display())]
    Unreadable {
        /// The file.
        file: PathBuf,
        /// The system's error.
        #[source]
        cause: io::Error,
    },
    /// The files of a slide cannot be listed.
    #[error("{0}")]
    Slide(#[from] SlideError),
    /// A defect of pleach.
    #[error("{0}")]
    Defect(#[from] Defect),
}

/// Reason why the study of a submission cannot be prepared.
#[derive(Debug, Error)]
pub enum SubmissionError {
    /// The submission is invalid.
    #[error("study {study}: {problem}")]
    Invalid {
        /// Name of the study.
        study: String,
        /// The problem.
        #[source]
        problem: InvalidSubmission,
    },
    /// The study cannot be prepared. Boxed to keep results small.
    #[error("{0}")]
    Prepare(#[source] Box<PrepareError>),
}

impl From<PrepareError> for SubmissionError {
    fn from(error: PrepareError) -> Self {
        Self::Prepare(Box::new(error))
    }
}

/// Reason why a submission is invalid.
#[derive(Debug, Error)]
pub enum InvalidSubmission {
    /// Another build made the submission.
    #[error("submitted by pleach {found}; pleach {here} is needed", here = env!("CARGO_PKG_VERSION"))]
    Build {
        /// Version of the client's build.
        found: String,
    },
    /// The format has another version.
    #[error("form {found} of submissions; {VERSION} is understood")]
    Form {
        /// Version of the format.
        found: u32,
    },
    /// A list has a wrong length.
    #[error("{found} {what}; {wanted} are needed")]
    Count {
        /// Content of the list.
        what: &'static str,
        /// Its length.
        found: usize,
        /// The needed length.
        wanted: usize,
    },
    /// A part of a stage refers to a missing part.
    #[error("{what} of stage {stage} refers to something that is not there")]
    Dangling {
        /// The referring part.
        what: &'static str,
        /// Name of the stage.
        stage: String,
    },
    /// An operation is unknown.
    #[error("operation {name} {version} is not known here")]
    Operation {
        /// Name of the operation.
        name: String,
        /// Its version.
        version: u32,
    },
    /// A tile lies outside its slide, or has another size.
    #[error("a tile of a slide is none that a slide can have")]
    Slide,
    /// The counts of annotations contradict the references or the allowed share.
    #[error("annotations are counted that no reference of it has, or more lie outside a tile than it allows")]
    Annotations,
    /// A companion of a slide has a path outside the folder of the slide.
    #[error("{path}: a slide in several files has one at {found:?}, which is no name beside it")]
    Companion {
        /// Path of the slide.
        path: String,
        /// Path of the companion.
        found: String,
    },
    /// The budget is not a number of at least 0.
    #[error("budget {found}; 0 or more is allowed")]
    Budget {
        /// The budget.
        found: f64,
    },
    /// The phases or stopping rules are impossible in a study file.
    #[error("its phases, or its until, are none that a study file gives")]
    Parts,
    /// The response or the reference refers to a missing stage, output or metric.
    #[error("the response, or the reference, is of a stage that is not there")]
    Response,
}
