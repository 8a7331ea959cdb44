//! What follows from events, for the shell to perform.

use crate::message::BucketWork;
use crate::{InstanceId, LeaseId, PlanId, WorkerId, study};
use pleach_regions::RegionKey;

/// What the shell is to do.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// Tell a worker what there is to know of a study before it gets the first bucket of it.
    Introduce {
        /// To whom.
        worker: WorkerId,
        /// The study.
        study: PlanId,
    },
    /// Send a bucket to a worker.
    Assign {
        /// To whom.
        worker: WorkerId,
        /// Of which study.
        study: PlanId,
        /// Under which lease.
        lease: LeaseId,
        /// The bucket, without instances that are already finished.
        work: BucketWork,
        /// It answers the worker's request for a later stage, not one for any bucket: the worker counts them apart.
        later: bool,
    },
    /// Tell a worker that it need not go on with a lease.
    Revoke {
        /// Whom.
        worker: WorkerId,
        /// Of which study.
        study: PlanId,
        /// The lease.
        lease: LeaseId,
    },
    /// Ask a worker to hand back what it has not begun of a lease: others are idle.
    Share {
        /// Whom.
        worker: WorkerId,
        /// Of which study.
        study: PlanId,
        /// The lease.
        lease: LeaseId,
    },
    /// Have a worker fetch a region from one that leaves, or that may be lost.
    Copy {
        /// Who is to fetch.
        worker: WorkerId,
        /// Of which study.
        study: PlanId,
        /// The region.
        key: RegionKey,
        /// Who has it.
        from: WorkerId,
        /// It is to be a second copy, of so many bytes, only where there is room that nothing else needs.
        replica: Option<u64>,
    },
    /// Tell a worker that what an instance has stored has been copied, as far as anybody could: it may be reported.
    Replicated {
        /// Whom.
        worker: WorkerId,
        /// Of which study.
        study: PlanId,
        /// Under which lease.
        lease: LeaseId,
        /// The instance.
        instance: InstanceId,
    },
    /// Something happened to a study.
    Study(PlanId, study::Effect),
    /// A worker will hear nothing more of a study.
    Over {
        /// Who.
        worker: WorkerId,
        /// The study.
        study: PlanId,
    },
    /// There are more or fewer processors for a study than it was cut for.
    Replan(PlanId),
    /// Tell a worker to begin nothing more and to hand back what it can.
    Drain(WorkerId),
    /// Nothing of a draining worker is needed any more: it may leave.
    Dismiss(WorkerId),
    /// Tell all workers to start nothing more and leave.
    Stop,
    /// The manager was told to stop, and no worker is left.
    Stopped,
}
