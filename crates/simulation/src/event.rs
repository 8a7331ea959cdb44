//! The manager's input events as values: they can be generated, logged and replayed.

use pleach_dispatch::manager::{Manager, WorkerInfo};
use pleach_dispatch::message::{TaskFailure, TaskOutcome, TaskProvenance, TaskReport};
use pleach_dispatch::plan::{BucketPlan, ExecutionPlan};
use pleach_dispatch::study::NewBuckets;
use pleach_dispatch::{InstanceId, LeaseId, PlanId, WorkerId};
use pleach_regions::RegionKey;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::time::Duration;

/// One event of a [`Manager`]. The `handle_*` methods document their meaning.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// The manager starts or restarts: its earlier state is lost.
    Start {
        /// Number of earlier starts.
        epoch: u32,
    },
    /// The grace period begins: workers of the earlier manager may reattach.
    Hold,
    /// The grace period ends.
    Resume,
    /// A study is submitted.
    Submit {
        /// Id.
        study: PlanId,
        /// Index of its plan.
        plan: usize,
        /// Instances that have reported before.
        finished: BTreeSet<InstanceId>,
    },
    /// A study is canceled.
    Cancel {
        /// Id.
        study: PlanId,
    },
    /// A worker joins.
    Join {
        /// Facts.
        facts: WorkerInfo,
    },
    /// A worker requests buckets.
    Request {
        /// The worker.
        worker: WorkerId,
        /// Number of buckets.
        buckets: u32,
        /// Only of later stages than this one.
        after: Option<u32>,
    },
    /// A worker asks for an instance with a longer path before it runs a last task of one.
    Query {
        /// The worker.
        worker: WorkerId,
        /// The path of its next task, in microseconds.
        path_us: u64,
    },
    /// An instance is finished.
    Done {
        /// The worker.
        worker: WorkerId,
        /// The study.
        study: PlanId,
        /// The lease.
        lease: LeaseId,
        /// The instance.
        instance: InstanceId,
    },
    /// An instance has failed.
    Failed {
        /// The worker.
        worker: WorkerId,
        /// The study.
        study: PlanId,
        /// The lease.
        lease: LeaseId,
        /// The instance.
        instance: InstanceId,
    },
    /// An instance lacks input regions.
    Lacking {
        /// The worker.
        worker: WorkerId,
        /// The study.
        study: PlanId,
        /// The lease.
        lease: LeaseId,
        /// The instance.
        instance: InstanceId,
        /// The missing regions.
        keys: Vec<RegionKey>,
    },
    /// A worker returns unstarted instances.
    Back {
        /// The worker.
        worker: WorkerId,
        /// The study.
        study: PlanId,
        /// The lease.
        lease: LeaseId,
        /// The instances.
        instances: Vec<InstanceId>,
    },
    /// A worker returns instances that others can continue.
    Spare {
        /// The worker.
        worker: WorkerId,
        /// The study.
        study: PlanId,
        /// The lease.
        lease: LeaseId,
        /// The instances.
        instances: Vec<InstanceId>,
        /// Their predicted path, in microseconds.
        path_us: u64,
    },
    /// Unstarted buckets are rebuilt.
    Replanned {
        /// The study.
        study: PlanId,
        /// The buckets that replace those of the same instances.
        buckets: Vec<BucketPlan>,
    },
    /// The overhead of a bucket of a study is known.
    BucketOverhead {
        /// The study.
        study: PlanId,
        /// Its microseconds.
        overhead_us: u64,
    },
    /// A worker drains.
    Drain {
        /// The worker.
        worker: WorkerId,
    },
    /// A worker requests a replica of regions that it has stored.
    Replicate {
        /// The worker.
        worker: WorkerId,
        /// The study.
        study: PlanId,
        /// The lease.
        lease: LeaseId,
        /// The instance.
        instance: InstanceId,
        /// The regions, and their bytes.
        regions: Vec<(RegionKey, u64)>,
    },
    /// A worker could not fetch a region from a peer.
    NotCopied {
        /// The worker.
        worker: WorkerId,
        /// The study.
        study: PlanId,
        /// The region.
        key: RegionKey,
    },
    /// A worker has dropped a replica.
    Dropped {
        /// The worker.
        worker: WorkerId,
        /// The study.
        study: PlanId,
        /// The region.
        key: RegionKey,
    },
    /// A worker has fetched a region from a peer.
    Copied {
        /// The worker.
        worker: WorkerId,
        /// The study.
        study: PlanId,
        /// The region.
        key: RegionKey,
    },
    /// A worker leaves or is lost.
    Leave {
        /// The worker.
        worker: WorkerId,
        /// Whether the worker left without a message.
        lost: bool,
    },
    /// A worker reattaches a lease of the earlier manager.
    Adopt {
        /// The worker.
        worker: WorkerId,
        /// The study.
        study: PlanId,
        /// The lease.
        lease: LeaseId,
        /// Unreported instances.
        instances: Vec<InstanceId>,
    },
    /// A worker reattaches regions.
    Holds {
        /// The worker.
        worker: WorkerId,
        /// The study.
        study: PlanId,
        /// The regions.
        keys: Vec<RegionKey>,
    },
    /// A worker has a time limit.
    LeaseEnd {
        /// The worker.
        worker: WorkerId,
        /// The limit, in microseconds since the beginning.
        at_us: u64,
    },
    /// Tasks were run for a reported instance or for its bucket.
    Ran {
        /// The worker.
        worker: WorkerId,
        /// The study.
        study: PlanId,
        /// The instance.
        instance: InstanceId,
        /// The tasks.
        tasks: Vec<TaskReport>,
    },
    /// Time passes.
    Tick,
    /// The manager stops granting.
    Stop,
}

/// The manager's immediate reply, besides its effects.
#[derive(Clone, Debug, PartialEq)]
pub enum ManagerReply {
    /// No reply.
    Nothing,
    /// The number of the worker that joined.
    Joined(WorkerId),
    /// Whether a report counted.
    Counted(bool),
    /// Instances of a reattached lease that the worker continues with.
    Kept(BTreeSet<InstanceId>),
    /// Regions without a further reader.
    Needless(Vec<RegionKey>),
    /// Whether a plan or a replan was accepted.
    Accepted(bool),
}

/// Returns the cause of all simulated task failures.
#[must_use]
pub fn failure() -> TaskFailure {
    TaskFailure { at: "t1".to_owned(), cause: "simulated failure".to_owned() }
}

/// Returns the report of a task run with its seconds.
#[must_use]
pub fn ran(stage: u32, task: u32, seconds: f64) -> TaskReport {
    let done = TaskOutcome::Ran { seconds, predicted_seconds: seconds, digests: 0, digest_seconds: 0.0 };
    TaskReport { stage, task, done, cache_seconds: 0.0, provenance: TaskProvenance::default() }
}

impl Event {
    /// Applies the event to a manager, at a time since the beginning. `plans` are the known plans.
    pub fn apply(&self, manager: &mut Manager, plans: &[ExecutionPlan], now: Duration) -> ManagerReply {
        match self {
            Self::Start { epoch } => *manager = Manager::new(*epoch),
            Self::Hold => manager.pause_grants(),
            Self::Resume => manager.resume_grants(),
            Self::Submit { study, plan, finished } => {
                let Some(plan) = plans.get(*plan) else { return ManagerReply::Accepted(false) };
                let submitted = manager.handle_submit(*study, plan.clone(), finished);
                return ManagerReply::Accepted(submitted.is_ok());
            }
            Self::Cancel { study } => manager.handle_cancel(*study),
            Self::Join { facts } => return ManagerReply::Joined(manager.handle_join(facts.clone())),
            Self::Request { worker, buckets, after } => manager.handle_request(*worker, *buckets, *after),
            Self::Query { worker, path_us } => manager.handle_query(*worker, Duration::from_micros(*path_us)),
            Self::Done { worker, study, lease, instance } => {
                return ManagerReply::Counted(manager.handle_done(*worker, *study, *lease, *instance));
            }
            Self::Failed { worker, study, lease, instance } => {
                let counted = manager.handle_failed(*worker, *study, *lease, *instance, &failure());
                return ManagerReply::Counted(counted);
            }
            Self::Lacking { worker, study, lease, instance, keys } => {
                return ManagerReply::Counted(
                    manager.handle_missing_input(*worker, *study, *lease, *instance, keys),
                );
            }
            Self::Back { worker, study, lease, instances } => {
                return ManagerReply::Counted(manager.handle_returned(*worker, *study, *lease, instances));
            }
            Self::Spare { worker, study, lease, instances, path_us } => {
                let path = Duration::from_micros(*path_us);
                return ManagerReply::Counted(manager.handle_spare(*worker, *study, *lease, instances, path));
            }
            Self::Replanned { study, buckets } => {
                let new = NewBuckets::new(buckets.clone());
                let replanned = new.and_then(|new| manager.handle_replanned(*study, new));
                return ManagerReply::Accepted(replanned.is_ok());
            }
            Self::BucketOverhead { study, overhead_us } => {
                manager.handle_bucket_overhead(*study, *overhead_us as f64 / 1e6);
            }
            Self::Drain { worker } => manager.handle_drain(*worker),
            Self::Replicate { worker, study, lease, instance, regions } => {
                manager.handle_replicate(*worker, *study, *lease, *instance, regions);
            }
            Self::NotCopied { worker, study, key } => manager.handle_fetch_failed(*worker, *study, *key),
            Self::Dropped { worker, study, key } => manager.handle_dropped(*worker, *study, *key),
            Self::Copied { worker, study, key } => manager.handle_region_fetched(*worker, *study, *key),
            Self::Leave { worker, lost } => manager.handle_leave(*worker, *lost),
            Self::Adopt { worker, study, lease, instances } => {
                manager.handle_introduced(*worker, *study);
                return ManagerReply::Kept(manager.handle_adopt(*worker, *study, *lease, instances));
            }
            Self::Holds { worker, study, keys } => {
                manager.handle_introduced(*worker, *study);
                return ManagerReply::Needless(manager.handle_holds(*worker, *study, keys));
            }
            Self::LeaseEnd { worker, at_us } => {
                manager.handle_time_limit(*worker, Duration::from_micros(*at_us));
            }
            Self::Ran { worker, study, instance, tasks } => {
                manager.handle_task_timings(*worker, *study, *instance, tasks);
            }
            Self::Tick => manager.handle_tick(now),
            Self::Stop => manager.handle_stop(),
        }
        ManagerReply::Nothing
    }
}
