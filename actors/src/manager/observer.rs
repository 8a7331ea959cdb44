//! Progress events of a study.

use pleach_dispatch::study::WorkerReports;
use pleach_dispatch::{InstanceId, LeaseId};
use pleach_regions::Table;
use std::collections::BTreeSet;

/// Progress of a study.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Stage instances finished or failed.
    pub instances: usize,
    /// Total stage instances.
    pub all_instances: usize,
    /// Tasks run.
    pub tasks: u64,
    /// Stage instances failed.
    pub failed: usize,
}

/// Event sent to an observer.
#[derive(Clone, Debug)]
pub enum StudyEvent<'a> {
    /// An instance that reports results has finished. This event precedes all its consequences.
    Reported {
        /// The instance.
        instance: InstanceId,
        /// Its results.
        results: Vec<Table>,
    },
    /// An instance failed.
    Failed(InstanceId),
    /// A worker has reported instances, with the tasks done since its last report.
    Done(WorkerReports<'a>),
    /// Reports have measured overheads of buckets: seconds on their slots before the first task.
    BucketOverheads(&'a [f64]),
    /// The only outputs of a finished instance were lost: it is executed again.
    Reopened(InstanceId),
    /// A worker has left or is lost before it reported these instances of a lease.
    Lost {
        /// Name of the worker.
        worker: &'a str,
        /// The lease.
        lease: LeaseId,
        /// The instances.
        instances: &'a BTreeSet<InstanceId>,
    },
    /// Progress of the study, after each report of a worker.
    Progress(Progress),
}

/// Follows a study.
pub type Observer = Box<dyn FnMut(StudyEvent<'_>) + Send>;
