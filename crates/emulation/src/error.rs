//! Limits of an execution, and the error of a clustering that exceeds them.

use crate::operations::MAX_SECONDS;
use pleach_clustering::WorkflowError;
use thiserror::Error;

/// Maximum number of emulated tasks of an execution, for 1,000 tasks with 50 files each: a manager holds all of them.
pub const MAX_TASKS: usize = 50_000;

/// Maximum size of all files of an execution, 1 GiB: regions stay in the memory of workers until their last reader ends.
pub const MAX_BYTES: u64 = 1 << 30;

/// A clustering cannot be executed by emulated tasks.
#[derive(Debug, Error)]
pub enum EmulationError {
    /// Jobs depend on each other in a cycle.
    #[error("order the jobs: {0}")]
    Jobs(#[from] WorkflowError),
    /// Too many emulated tasks.
    #[error("{found} emulated tasks; at most {MAX_TASKS} are allowed")]
    Tasks {
        /// Number of emulated tasks.
        found: usize,
    },
    /// Files are too large.
    #[error("files of {found} bytes; at most {MAX_BYTES} bytes are allowed, see --scale-data")]
    Bytes {
        /// Size of all files that jobs read.
        found: u64,
    },
    /// A wait is too long.
    #[error("job {job}: a wait of {seconds} s; at most {MAX_SECONDS} s are allowed, see --scale-time")]
    Seconds {
        /// Id of the job.
        job: String,
        /// The wait in seconds.
        seconds: f64,
    },
    /// The workflow has no tasks.
    #[error("no tasks; a workflow of 1 task or more is allowed")]
    Empty,
}
