//! State of a simulated worker.

use super::SharingOptions;
use super::fetch::Receiver;
use super::results::Results;
use pleach_dispatch::directory::{Directory, Member, MemberId, ResultOutput, TaskRecord};
use pleach_dispatch::memory_model::{BucketDemand, MemoryBudget};
use pleach_dispatch::message::TaskReport;
use pleach_dispatch::stage::{BucketExecution, NodeId, OutputId, TaskRequest};
use pleach_dispatch::storage::broadcast::Broadcasts;
use pleach_dispatch::worker::Worker;
use pleach_dispatch::{LeaseId, SlotId, WorkerId};
use pleach_regions::{RegionIdentity, TaskKey};
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::net::{Ipv6Addr, SocketAddr};
use std::sync::Arc;

/// Keys of a task: by the known content of its inputs, and by their provenance.
#[derive(Clone, Copy, Debug)]
pub(super) struct Keys {
    pub(super) key: TaskKey,
    pub(super) origin: TaskKey,
}

/// A task that another worker has run.
#[derive(Debug)]
pub(super) struct RemoteTask {
    pub(super) key: TaskKey,
    pub(super) record: TaskRecord,
    pub(super) holders: Vec<Member>,
}

/// An output that a bucket refers to.
#[derive(Clone, Debug)]
pub(super) struct Output {
    pub(super) known: ResultOutput,
    pub(super) origin: RegionIdentity,
    /// Its holders, if it is not on this worker.
    pub(super) remote: Option<Arc<RemoteTask>>,
}

#[derive(Debug)]
pub(super) struct Bucket {
    pub(super) run: BucketExecution,
    pub(super) outputs: BTreeMap<OutputId, Output>,
    pub(super) resolving: BTreeMap<NodeId, (TaskRequest, Keys)>,
    pub(super) claims: BTreeMap<NodeId, Keys>,
    /// Tasks that run although another worker has their outputs.
    pub(super) recomputed: BTreeSet<NodeId>,
    pub(super) reports: Vec<TaskReport>,
}

/// A message between the worker and a stage on it.
#[derive(Debug)]
pub(super) enum Local {
    Granted(LeaseId, SlotId, NodeId),
    Resume(LeaseId, NodeId),
    Demand(LeaseId, BucketDemand),
    SlotFree(SlotId, LeaseId, BucketDemand),
    Over(LeaseId),
}

/// Use of a worker's slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Activity {
    Runs,
    /// Inputs of the task in the slot are being fetched.
    Fetches,
    /// Idle: a look-up is not answered.
    LooksUp,
    /// Idle: tasks wait for other workers' claims.
    Waits,
    /// Idle without a bucket.
    NoWork,
}

#[derive(Debug)]
pub(super) struct Node {
    pub(super) id: MemberId,
    pub(super) up: bool,
    pub(super) member: Option<WorkerId>,
    pub(super) worker: Worker,
    pub(super) directory: Directory,
    pub(super) buckets: BTreeMap<LeaseId, Bucket>,
    pub(super) results: Results,
    pub(super) local: VecDeque<Local>,
    /// The task of each look-up.
    pub(super) looked_up: HashMap<TaskKey, (LeaseId, NodeId)>,
    pub(super) jobs: BTreeMap<u64, Job>,
    pub(super) broadcasts: Broadcasts<RegionIdentity, Receiver>,
    /// When its network interface is free to send, and to receive.
    pub(super) sends_until: u64,
    pub(super) receives_until: u64,
    pub(super) activity: (Activity, u64),
}

impl Node {
    pub(super) fn new(number: usize, options: &SharingOptions) -> Self {
        // Spread over the whole range, as incarnations are random.
        let id = MemberId((number as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let worker = Worker::new(1, MemoryBudget::UNLIMITED);
        let max_tasks = if options.steals_paths { options.tail_tasks as u32 } else { 0 };
        Self {
            id,
            up: true,
            member: None,
            worker: worker.with_tail(max_tasks),
            directory: Directory::new(id),
            buckets: BTreeMap::new(),
            results: Results::default(),
            local: VecDeque::new(),
            looked_up: HashMap::new(),
            jobs: BTreeMap::new(),
            broadcasts: Broadcasts::default(),
            sends_until: 0,
            receives_until: 0,
            activity: (Activity::NoWork, 0),
        }
    }

    pub(super) fn address(&self) -> SocketAddr {
        address(self.id)
    }

    pub(super) fn present_activity(&self) -> Activity {
        if let Some(job) = self.jobs.values().find(|job| job.slot.is_some()) {
            return if job.fetches > 0 { Activity::Fetches } else { Activity::Runs };
        }
        let is_waiting = |bucket: &Bucket| !bucket.resolving.is_empty();
        match self.buckets.values().any(is_waiting) {
            true if self.waits_for_claims() => Activity::Waits,
            true => Activity::LooksUp,
            false if self.buckets.is_empty() => Activity::NoWork,
            false => Activity::Waits,
        }
    }

    /// Returns whether all buckets have a look-up that waits for a claimer, and none is being answered.
    fn waits_for_claims(&self) -> bool {
        self.directory.stats().waited > 0 && self.worker.running() == 0 && {
            let ready = |bucket: &Bucket| bucket.run.demand_without_bytes().resolving;
            !self.buckets.values().any(ready)
        }
    }
}

pub(super) fn address(id: MemberId) -> SocketAddr {
    SocketAddr::from((Ipv6Addr::from(u128::from(id.0)), 1))
}

/// Returns the worker with an address.
pub(super) fn member(address: SocketAddr) -> Option<MemberId> {
    match address {
        SocketAddr::V6(address) => u64::try_from(u128::from(*address.ip())).ok().map(MemberId),
        SocketAddr::V4(_) => None,
    }
}

/// Reason of fetches.
#[derive(Debug)]
pub(super) enum Purpose {
    /// A run, after which other workers can get the outputs.
    Run,
    /// The task has been found at another worker and ends instances.
    Given(TaskRecord, Vec<Member>),
}

/// A task in execution.
#[derive(Debug)]
pub(super) struct Job {
    pub(super) lease: LeaseId,
    pub(super) slot: Option<SlotId>,
    pub(super) call: TaskRequest,
    pub(super) keys: Keys,
    pub(super) purpose: Purpose,
    /// Outputs that are being fetched.
    pub(super) fetches: usize,
    pub(super) fetched: Vec<OutputId>,
    pub(super) lost: Option<OutputId>,
}
