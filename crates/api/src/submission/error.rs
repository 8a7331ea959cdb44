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
    #[error("submitted by pleach {found}; pleach {here} is required", here = env!("CARGO_PKG_VERSION"))]
    Build {
        /// Version of the client's build.
        found: String,
    },
    /// The format has another version.
    #[error("submission format {found}; {VERSION} is allowed")]
    Form {
        /// Version of the format.
        found: u32,
    },
    /// A list has a wrong length.
    #[error("{found} {what}; {expected} are required")]
    Count {
        /// Content of the list.
        what: &'static str,
        /// Its length.
        found: usize,
        /// The needed length.
        expected: usize,
    },
    /// A part of a stage refers to a missing part.
    #[error("{what} of stage {stage} refers to a missing entry")]
    Dangling {
        /// The referring part.
        what: &'static str,
        /// Name of the stage.
        stage: String,
    },
    /// The description of an external operation is invalid.
    #[error("operation {name}: {field} is not allowed for an external operation")]
    Description {
        /// Name of the operation.
        name: String,
        /// The invalid field.
        field: &'static str,
    },
    /// A file of the code has a path outside the folder of its manifest, or occurs twice.
    #[error(
        "{manifest}: file {found:?} of the code; different paths below the folder of the manifest are allowed"
    )]
    Code {
        /// Path of the manifest.
        manifest: String,
        /// Path of the file.
        found: String,
    },
    /// An operation is unknown.
    #[error("unknown operation {name} {version}")]
    Operation {
        /// Name of the operation.
        name: String,
        /// Its version.
        version: u32,
    },
    /// A tile lies outside its slide, or has another size.
    #[error("a tile is outside its slide or has a size that is not allowed")]
    Slide,
    /// The counts of annotations contradict the references or the allowed share.
    #[error(
        "the counts of annotations do not match the references, or exceed the allowed share outside of \
             tiles, or a weight of a tile is no number from 0, or regions have no file"
    )]
    Annotations,
    /// A companion of a slide has a path outside the folder of the slide.
    #[error("{path}: companion file {found:?} of the slide is not in the same folder")]
    Companion {
        /// Path of the slide.
        path: String,
        /// Path of the companion.
        found: String,
    },
    /// The budget is not a number of at least 0.
    #[error("budget: {found}; 0 or more is allowed")]
    Budget {
        /// The budget.
        found: f64,
    },
    /// The overhead of a bucket is not a number of seconds from 0 to [`MAX_OVERHEAD_SECONDS`](super::MAX_OVERHEAD_SECONDS).
    #[error("plan.overhead_seconds: {found}; 0 to 1000000 is allowed")]
    Overhead {
        /// The overhead.
        found: f64,
    },
    /// The phases or stopping rules are impossible in a study file.
    #[error("phases or until: not possible in a study file")]
    Parts,
    /// The response or the reference refers to a missing stage, output or metric.
    #[error("the response or the reference refers to a missing stage, output or metric")]
    Response,
}
