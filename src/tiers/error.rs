//! Errors in tier lists, as messages for their authors.

use pleach_planner::memory_size::{SizeError, human};
use pleach_workflow::toml_fields::{FieldError, FieldProblem};
use std::io;
use std::path::PathBuf;
use thiserror::Error;

/// Error in a tier list, with its position.
#[derive(Debug, Error)]
pub(crate) enum TierListError {
    #[error(transparent)]
    File(FieldError),
    #[error("{}: {field:?}: not allowed; only [[tier]] tables are allowed", file.display())]
    UnknownTable { file: PathBuf, field: String },
    #[error("{}: tier: missing; at least one [[tier]] is needed", file.display())]
    NoTier { file: PathBuf },
    #[error("{}: {field}: {problem}", file.display())]
    Field {
        file: PathBuf,
        field: String,
        #[source]
        problem: Box<Problem>,
    },
}

impl TierListError {
    /// Creates the error of a field at this position.
    pub(super) fn at((file, field): (PathBuf, String), problem: Problem) -> Self {
        Self::Field { file, field, problem: Box::new(problem) }
    }
}

impl From<FieldError> for TierListError {
    fn from(error: FieldError) -> Self {
        match error {
            FieldError::Field { file, field, problem } => Self::at((file, field), Problem::Field(*problem)),
            other => Self::File(other),
        }
    }
}

/// Kinds of invalid fields.
#[derive(Debug, Error)]
pub(crate) enum Problem {
    #[error("{}", worded(.0))]
    Field(FieldProblem),
    #[error("{value:?} is not a size; {source}")]
    Size { value: String, source: SizeError },
    #[error("{}: {cause}; an existing folder is needed", path.display())]
    Path {
        path: PathBuf,
        #[source]
        cause: io::Error,
    },
    #[error("{}: not a folder; an existing folder is needed", path.display())]
    NotAFolder { path: PathBuf },
    #[error("{}: not writable ({cause}); a writable folder is needed", path.display())]
    NotWritable {
        path: PathBuf,
        #[source]
        cause: io::Error,
    },
    #[error("{}: same folder as tier {other}; each tier needs its own folder", path.display())]
    Same { path: PathBuf, other: usize },
    #[error("{}: inside the folder of tier {other}; each tier needs its own folder", path.display())]
    Inside { path: PathBuf, other: usize },
    #[error("{}: contains the folder of tier {other}; each tier needs its own folder", path.display())]
    Around { path: PathBuf, other: usize },
    #[error("same bucket and prefix as tier {other}; each tier needs its own")]
    SameBucket { other: usize },
    #[error("{} is not allowed; at most the size of the disk, {}, is allowed", human(*bytes), human(*disk_bytes))]
    BeyondDisk { bytes: u64, disk_bytes: u64 },
    #[error("{kind:?} after {before:?} is not allowed; the order from fast to slow is ssd, hdd, lustre, s3")]
    Order { kind: &'static str, before: &'static str },
}

fn worded(problem: &FieldProblem) -> String {
    let not_allowed = |value: &str, allowed: &str| format!("{value:?} is not allowed; {allowed}");
    match problem {
        FieldProblem::Unknown(known) => format!("unknown; this kind of tier has {}", known.join(", ")),
        FieldProblem::Missing(allowed) => format!("missing; {allowed}"),
        FieldProblem::WrongValue { found, allowed } => {
            not_allowed(&found.as_str().map_or_else(|| found.to_string(), str::to_owned), allowed)
        }
        FieldProblem::NotAllowed { value, allowed } => not_allowed(value, allowed),
        FieldProblem::WrongInteger { .. } => problem.to_string(),
    }
}
