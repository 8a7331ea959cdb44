//! What is said to a manager, as values: they can be made up, written down and said again.

use pleach_dispatch::manager::{Manager, WorkerInfo};
use pleach_dispatch::message::{TaskFailure, TaskOutcome, TaskReport};
use pleach_dispatch::plan::{BucketPlan, ExecutionPlan};
use pleach_dispatch::{InstanceId, LeaseId, PlanId, WorkerId};
use pleach_regions::RegionKey;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::time::Duration;

/// One event of a [`Manager`]; what each means is said there, at the `handle_*` of its name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// The manager starts, for the first time or again: what it knew before is gone.
    Start {
        /// How often it has started before.
        epoch: u32,
    },
    /// Workers of the manager before are about to say what they have.
    Hold,
    /// They have had their time.
    Resume,
    /// A study comes.
    Submit {
        /// Its number.
        study: PlanId,
        /// Which of the plans that are known.
        plan: usize,
        /// Instances that have reported before.
        finished: BTreeSet<InstanceId>,
    },
    /// A study is not wanted any more.
    Cancel {
        /// Its number.
        study: PlanId,
    },
    /// A worker comes.
    Join {
        /// What it can do.
        facts: WorkerInfo,
    },
    /// A worker asks for buckets.
    Request {
        /// Who.
        worker: WorkerId,
        /// How many.
        buckets: u32,
        /// Of later stages than this one only.
        after: Option<u32>,
    },
    /// An instance is finished.
    Done {
        /// By whom.
        worker: WorkerId,
        /// Of which study.
        study: PlanId,
        /// Under which lease.
        lease: LeaseId,
        /// The instance.
        instance: InstanceId,
    },
    /// An instance has failed.
    Failed {
        /// By whom.
        worker: WorkerId,
        /// Of which study.
        study: PlanId,
        /// Under which lease.
        lease: LeaseId,
        /// The instance.
        instance: InstanceId,
    },
    /// An instance lacks what it reads.
    Lacking {
        /// Who has it.
        worker: WorkerId,
        /// Of which study.
        study: PlanId,
        /// Under which lease.
        lease: LeaseId,
        /// The instance.
        instance: InstanceId,
        /// What could not be had.
        keys: Vec<RegionKey>,
    },
    /// A worker hands back what it has not begun.
    Back {
        /// Who.
        worker: WorkerId,
        /// Of which study.
        study: PlanId,
        /// Under which lease.
        lease: LeaseId,
        /// The instances.
        instances: Vec<InstanceId>,
    },
    /// What nobody has begun is cut anew.
    Replanned {
        /// Of which study.
        study: PlanId,
        /// What takes the place of the buckets that held these instances.
        buckets: Vec<BucketPlan>,
    },
    /// A worker is to leave.
    Drain {
        /// Who.
        worker: WorkerId,
    },
    /// A worker has stored regions that are to survive it.
    Replicate {
        /// Who.
        worker: WorkerId,
        /// Of which study.
        study: PlanId,
        /// Under which lease.
        lease: LeaseId,
        /// The instance.
        instance: InstanceId,
        /// The regions, and their bytes.
        regions: Vec<(RegionKey, u64)>,
    },
    /// A worker could not fetch a region from another one.
    NotCopied {
        /// Who.
        worker: WorkerId,
        /// Of which study.
        study: PlanId,
        /// The region.
        key: RegionKey,
    },
    /// A worker has let go of a copy.
    Dropped {
        /// Who.
        worker: WorkerId,
        /// Of which study.
        study: PlanId,
        /// The region.
        key: RegionKey,
    },
    /// A worker has fetched a region from another one.
    Copied {
        /// Who.
        worker: WorkerId,
        /// Of which study.
        study: PlanId,
        /// The region.
        key: RegionKey,
    },
    /// A worker is gone.
    Leave {
        /// Who.
        worker: WorkerId,
        /// Without a word.
        lost: bool,
    },
    /// A worker goes on with what it was granted by the manager before.
    Adopt {
        /// Who.
        worker: WorkerId,
        /// Of which study.
        study: PlanId,
        /// Under which lease.
        lease: LeaseId,
        /// What it has not reported.
        instances: Vec<InstanceId>,
    },
    /// A worker has regions from before.
    Holds {
        /// Who.
        worker: WorkerId,
        /// Of which study.
        study: PlanId,
        /// The regions.
        keys: Vec<RegionKey>,
    },
    /// A worker has to end.
    LeaseEnd {
        /// Who.
        worker: WorkerId,
        /// When, in microseconds since the beginning.
        at_us: u64,
    },
    /// Tasks were run, for an instance that has been reported or for others of its bucket.
    Ran {
        /// By whom.
        worker: WorkerId,
        /// Of which study.
        study: PlanId,
        /// The instance.
        instance: InstanceId,
        /// The tasks.
        tasks: Vec<TaskReport>,
    },
    /// Time passes.
    Tick,
    /// Nothing more is to be granted.
    Stop,
}

/// What a manager answers at once, besides its effects.
#[derive(Clone, Debug, PartialEq)]
pub enum ManagerReply {
    /// Nothing.
    Nothing,
    /// The number of the worker that joined.
    Joined(WorkerId),
    /// Whether a report counted.
    Counted(bool),
    /// Instances that a worker is to go on with.
    Kept(BTreeSet<InstanceId>),
    /// Regions that nobody will read.
    Needless(Vec<RegionKey>),
    /// Whether a plan, or a way to cut one, was accepted.
    Accepted(bool),
}

/// Why tasks fail here, wherever they do.
#[must_use]
pub fn failure() -> TaskFailure {
    TaskFailure { at: "t1".to_owned(), cause: "the simulation said so".to_owned() }
}

/// A task that was run, and what it took.
#[must_use]
pub fn ran(stage: u32, task: u32, seconds: f64) -> TaskReport {
    let done = TaskOutcome::Ran { seconds, predicted_seconds: seconds, digests: 0, digest_seconds: 0.0 };
    TaskReport { stage, task, done, cache_seconds: 0.0 }
}

impl Event {
    /// Says it to a manager, at a time since the simulation began. `plans` are those that are known.
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
            Self::Replanned { study, buckets } => {
                return ManagerReply::Accepted(manager.handle_replanned(*study, buckets.clone()).is_ok());
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
                return ManagerReply::Kept(manager.handle_adopt(*worker, *study, *lease, instances));
            }
            Self::Holds { worker, study, keys } => {
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
