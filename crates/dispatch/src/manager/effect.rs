//! Effects of events, for the shell to perform.

use crate::message::{BucketWork, GrantReason};
use crate::{InstanceId, LeaseId, PlanId, WorkerId, study};
use pleach_regions::RegionKey;
use std::time::Duration;

/// Effects for the shell to perform.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// Send the facts of a study to a worker, before its first bucket of that study.
    Introduce {
        /// The recipient.
        worker: WorkerId,
        /// The study.
        study: PlanId,
    },
    /// Send a bucket to a worker.
    Assign {
        /// The recipient.
        worker: WorkerId,
        /// The study.
        study: PlanId,
        /// The lease.
        lease: LeaseId,
        /// The bucket, without instances that are already finished.
        work: BucketWork,
        /// Which request of the worker it answers, if any.
        reason: GrantReason,
    },
    /// Tell a worker that another one gets a bucket of a tile whose buckets it alone has got so far.
    TileShared {
        /// The recipient.
        worker: WorkerId,
        /// The tile, as named in its buckets.
        tile: RegionKey,
    },
    /// Ask a worker to abandon a lease.
    Revoke {
        /// The recipient.
        worker: WorkerId,
        /// The study.
        study: PlanId,
        /// The lease.
        lease: LeaseId,
    },
    /// Ask a worker to return instances of a lease: others are idle, or run last tasks of their instances.
    Share {
        /// The recipient.
        worker: WorkerId,
        /// The study.
        study: PlanId,
        /// The lease.
        lease: LeaseId,
        /// Only instances with a longer path, near the end of the bucket.
        longer_than: Duration,
    },
    /// Answer the query of a worker ([`handle_query`](super::Manager::handle_query)).
    QueryAnswer {
        /// The recipient.
        worker: WorkerId,
        /// Whether a bucket has been granted.
        found: bool,
    },
    /// Ask a worker to fetch a region from one that leaves, or that may be lost.
    Copy {
        /// The worker that fetches.
        worker: WorkerId,
        /// The study.
        study: PlanId,
        /// The region.
        key: RegionKey,
        /// The worker that has it.
        from: WorkerId,
        /// Set for a replica, with its bytes: fetched only if it fits into memory that nothing else needs.
        replica: Option<u64>,
    },
    /// Notify a worker that an instance's stored outputs are replicated as far as possible: it may report the
    /// instance.
    Replicated {
        /// The recipient.
        worker: WorkerId,
        /// The study.
        study: PlanId,
        /// The lease.
        lease: LeaseId,
        /// The instance.
        instance: InstanceId,
    },
    /// An effect of a study.
    Study(PlanId, study::Effect),
    /// Notify a worker of the end of a study: it gets nothing more of that study.
    Over {
        /// The worker.
        worker: WorkerId,
        /// The study.
        study: PlanId,
    },
    /// The number of slots for a study differs from the one that its buckets were built for.
    Replan(PlanId),
    /// Ask a worker to drain.
    Drain(WorkerId),
    /// Allow a draining worker to leave: other workers hold its referenced regions, or cannot fetch them.
    Dismiss(WorkerId),
    /// Ask all workers to start nothing more and leave.
    Stop,
    /// The manager is stopping, and no worker remains.
    Stopped,
}
