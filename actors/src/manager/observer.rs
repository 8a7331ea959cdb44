//! Progress events of a study.

use pleach_dispatch::InstanceId;
use pleach_dispatch::message::TaskReport;
use pleach_regions::Table;

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
#[derive(Clone, Copy, Debug)]
pub enum StudyEvent<'a> {
    /// An instance that reports results has finished. This event precedes all its consequences.
    Reported {
        /// The instance.
        instance: InstanceId,
        /// Its results.
        results: &'a [Table],
    },
    /// An instance failed.
    Failed(InstanceId),
    /// Tasks were done in the bucket of this instance, for any of its instances.
    Done {
        /// The instance.
        instance: InstanceId,
        /// The tasks.
        tasks: &'a [TaskReport],
    },
    /// Progress of the study, after each report of a worker.
    Progress(Progress),
}

/// Follows a study.
pub type Observer = Box<dyn FnMut(StudyEvent<'_>) + Send>;
