//! Errors in tier lists, as messages for their authors.

use pleach_planner::memory_size::{SizeError, human};
use std::io;
use std::path::PathBuf;
use thiserror::Error;

/// Error in a tier list, with its position.
#[derive(Debug, Error)]
pub(crate) enum TierListError {
    #[error("{}: failed to read: {cause}", file.display())]
    Unreadable { file: PathBuf, cause: io::Error },
    #[error("{}:{line}:{column}: {message}", file.display())]
    Malformed { file: PathBuf, line: usize, column: usize, message: String },
    #[error("{}: {field:?}: no such field; only [[tier]] is allowed", file.display())]
    UnknownTable { file: PathBuf, field: String },
    #[error("{}: no tier; at least one [[tier]] is needed", file.display())]
    NoTier { file: PathBuf },
    #[error("{file}: tier {number}: {field}: {problem}")]
    Field { file: String, number: usize, field: String, problem: Box<Problem> },
}

/// Kinds of invalid fields.
#[derive(Debug, Error)]
pub(crate) enum Problem {
    #[error("no such field; this kind of tier has {allowed}")]
    Unknown { allowed: String },
    #[error("it is missing; {allowed}")]
    Missing { allowed: &'static str },
    #[error("{value:?} is not allowed; {allowed}")]
    Value { value: String, allowed: &'static str },
    #[error("{value:?} is no size; {source}")]
    Size { value: String, source: SizeError },
    #[error("{}: {cause}; the path of a folder that exists is needed", path.display())]
    Path { path: PathBuf, cause: io::Error },
    #[error("{}: it is no folder; the path of a folder is needed", path.display())]
    NotAFolder { path: PathBuf },
    #[error("{}: it cannot be written to ({cause}); a folder that can be is needed", path.display())]
    NotWritable { path: PathBuf, cause: io::Error },
    #[error("{}: it is the folder of tier {other}; each tier needs one of its own", path.display())]
    Same { path: PathBuf, other: usize },
    #[error("{}: it lies in the folder of tier {other}; each tier needs one of its own", path.display())]
    Inside { path: PathBuf, other: usize },
    #[error("{}: the folder of tier {other} lies in it; each tier needs one of its own", path.display())]
    Around { path: PathBuf, other: usize },
    #[error("it is the bucket and prefix of tier {other}; each tier needs its own")]
    SameBucket { other: usize },
    #[error("{} is more than the {} of the disk; less is allowed", human(*bytes), human(*disk_bytes))]
    BeyondDisk { bytes: u64, disk_bytes: u64 },
    #[error("{kind:?} comes after {before:?}; tiers go from fast to slow: ram, ssd, hdd, lustre, s3")]
    Order { kind: &'static str, before: &'static str },
    #[error("a second {kind:?}; one is allowed")]
    Twice { kind: &'static str },
}
