//! The manager of one study: who runs which bucket, what is finished, what nobody needs any more.
//!
//! Events: [`Manager::handle_join`], [`handle_request`](Manager::handle_request),
//! [`handle_done`](Manager::handle_done), [`handle_failed`](Manager::handle_failed),
//! [`handle_lacking`](Manager::handle_lacking), [`handle_leave`](Manager::handle_leave), [`handle_stop`](Manager::handle_stop). After each, call
//! [`Manager::poll_effect`] until it returns `None`. It keeps no results and measures nothing: that is the shell's.
//!
//! `begin` makes the state of a plan, whole or resumed, `assign` gives ready buckets to workers that `queue` up for
//! them, `rebucket` cuts buckets anew, `loss` has computed again what goes with a worker, and `check` compares all of it with a recount; what becomes of
//! instances and leases is here.

mod assign;
mod begin;
mod check;
mod loss;
mod queue;
mod rebucket;

use crate::message::{BucketWork, TaskFailure};
use crate::plan::ExecutionPlan;
use crate::{BucketId, InstanceId, LeaseId, WorkerId};
use pleach_regions::RegionKey;
use queue::Queue;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

/// What the shell is to do.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// Send a bucket to a worker.
    Assign {
        /// To whom.
        worker: WorkerId,
        /// Under which lease.
        lease: LeaseId,
        /// The bucket, without instances that are already finished.
        work: BucketWork,
        /// It answers the worker's request for a later stage, not one for any bucket: the worker counts them apart.
        later: bool,
    },
    /// Nobody will read these regions again.
    Release(Vec<RegionKey>),
    /// An instance is finished.
    Finished(InstanceId),
    /// An instance that was finished is to be executed again: what it had stored is gone, and somebody will read it.
    Reopened(InstanceId),
    /// An instance failed, for good; `origin` is the one whose task failed.
    Failed {
        /// The instance.
        instance: InstanceId,
        /// It, or the ancestor whose failure it shares.
        origin: InstanceId,
        /// Why.
        cause: TaskFailure,
    },
    /// Every instance is finished or failed.
    Complete,
    /// Tell all workers to start nothing more and leave.
    Stop,
    /// The study was told to stop, and no worker is left.
    Stopped,
}

/// Where an instance stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Waits for this many parents.
    Waiting(usize),
    /// Could run.
    Ready,
    /// Granted to a worker.
    Leased(LeaseId),
    Done,
    Failed,
}

impl State {
    fn is_final(self) -> bool {
        matches!(self, Self::Done | Self::Failed)
    }
}

#[derive(Debug)]
struct Instance {
    state: State,
    bucket: BucketId,
    children: Vec<InstanceId>,
}

#[derive(Debug)]
struct Bucket {
    /// Neither finished nor failed.
    open: BTreeSet<InstanceId>,
    /// Those of `open` that wait for a parent.
    waiting: usize,
}

#[derive(Debug)]
struct Lease {
    worker: WorkerId,
    open: BTreeSet<InstanceId>,
}

#[derive(Debug, Default)]
struct Member {
    /// Buckets asked for and not yet given.
    wanted: u32,
    /// Has asked for a bucket after some stage, and not got it yet.
    wants_later: bool,
    leases: BTreeSet<LeaseId>,
}

/// Later stages first, since they let go of what earlier ones hold; then the plan's order.
type Rank = (Reverse<usize>, BucketId);

/// The state of one study.
#[derive(Debug)]
pub struct Manager {
    plan: ExecutionPlan,
    instances: Vec<Instance>,
    buckets: Vec<Bucket>,
    ready: BTreeSet<Rank>,
    members: BTreeMap<WorkerId, Member>,
    queue: Queue,
    leases: BTreeMap<LeaseId, Lease>,
    next_worker: u32,
    next_lease: u64,
    /// Instances that have yet to read each region, or to store it: a region whose readers have all failed
    /// with another parent is let go of once it is there, not before.
    users: HashMap<RegionKey, usize>,
    /// Who stores each region that others read.
    producers: HashMap<RegionKey, InstanceId>,
    /// Of those that are stored, and will still be used: the workers that hold them.
    holders: HashMap<RegionKey, BTreeSet<WorkerId>>,
    /// Of failed instances: the origin, and why.
    causes: BTreeMap<InstanceId, (InstanceId, TaskFailure)>,
    unfinished: usize,
    stopping: bool,
    effects: VecDeque<Effect>,
}

impl Manager {
    /// A worker is there; it gets nothing until it asks, and is told to leave when the study is about to stop.
    pub fn handle_join(&mut self) -> WorkerId {
        let worker = WorkerId(self.next_worker);
        self.next_worker += 1;
        self.members.insert(worker, Member::default());
        if self.stopping {
            self.effects.push_back(Effect::Stop);
        }
        worker
    }

    /// An instance is finished. A report under a lease that is over is ignored: another worker has it now.
    /// Returns whether the report counted.
    pub fn handle_done(&mut self, worker: WorkerId, lease: LeaseId, instance: InstanceId) -> bool {
        if !self.close(worker, lease, instance) {
            return false;
        }
        self.instances[instance.index()].state = State::Done;
        self.effects.push_back(Effect::Finished(instance));
        for child in self.instances[instance.index()].children.clone() {
            // A child that failed with another parent no longer waits.
            if let State::Waiting(parents) = self.instances[child.index()].state {
                let bucket = self.instances[child.index()].bucket;
                if parents > 1 {
                    self.instances[child.index()].state = State::Waiting(parents - 1);
                } else {
                    self.instances[child.index()].state = State::Ready;
                    self.buckets[bucket.index()].waiting -= 1;
                    self.queue_if_ready(bucket);
                }
            }
        }
        self.finish(instance);
        self.note_holder(worker, instance);
        self.assign();
        true
    }

    /// An instance failed, and with it everything that reads from it. Returns whether the report counted.
    pub fn handle_failed(
        &mut self,
        worker: WorkerId,
        lease: LeaseId,
        instance: InstanceId,
        cause: &TaskFailure,
    ) -> bool {
        if !self.close(worker, lease, instance) {
            return false;
        }
        // Granted no longer, and in no bucket: on its way out.
        let bucket = self.instances[instance.index()].bucket;
        self.buckets[bucket.index()].open.insert(instance);
        self.instances[instance.index()].state = State::Ready;
        self.fail(instance, instance, cause);
        self.assign();
        true
    }

    /// Fails an instance that is not granted, and all that reads from it and is not granted either: of those that are,
    /// their workers may have what they read.
    fn fail(&mut self, instance: InstanceId, origin: InstanceId, cause: &TaskFailure) {
        let mut failed = vec![instance];
        while let Some(id) = failed.pop() {
            let state = self.instances[id.index()].state;
            if state.is_final() || matches!(state, State::Leased(_)) {
                continue;
            }
            self.instances[id.index()].state = State::Failed;
            let bucket = self.instances[id.index()].bucket;
            let rank = self.rank(bucket);
            self.ready.remove(&rank);
            self.buckets[bucket.index()].open.remove(&id);
            if matches!(state, State::Waiting(_)) {
                self.buckets[bucket.index()].waiting -= 1;
            }
            self.queue_if_ready(bucket);
            self.causes.insert(id, (origin, cause.clone()));
            self.effects.push_back(Effect::Failed { instance: id, origin, cause: cause.clone() });
            failed.extend(self.instances[id.index()].children.iter().rev());
            self.finish(id);
        }
    }

    /// A worker is gone, with or without a word. What it had not reported goes back to the queue.
    pub fn handle_leave(&mut self, worker: WorkerId) {
        let Some(member) = self.members.remove(&worker) else { return };
        self.queue.remove(worker);
        let mut back = Vec::new();
        for lease in member.leases {
            let Some(lease) = self.leases.remove(&lease) else { continue };
            lease.open.iter().for_each(|id| self.take_back(*id));
            if let Some(first) = lease.open.first() {
                self.queue_if_ready(self.instances[first.index()].bucket);
            }
            back.extend(lease.open);
        }
        back.extend(self.lose(worker));
        self.fail_orphans(&back);
        self.assign();
        self.end_if_stopped();
    }

    /// Nothing more is assigned; what runs may still be reported. [`Effect::Stopped`] follows when all workers have
    /// left, unless the study is complete before.
    pub fn handle_stop(&mut self) {
        if !self.stopping && self.unfinished > 0 {
            self.stopping = true;
            self.effects.push_back(Effect::Stop);
            self.end_if_stopped();
        }
    }

    /// The next thing to do, in order.
    pub fn poll_effect(&mut self) -> Option<Effect> {
        self.effects.pop_front()
    }

    /// Instances neither finished nor failed.
    #[must_use]
    pub fn unfinished(&self) -> usize {
        self.unfinished
    }

    /// The plan being executed.
    #[must_use]
    pub fn plan(&self) -> &ExecutionPlan {
        &self.plan
    }

    /// Takes an instance out of its lease and bucket; false when the report does not belong to the lease.
    fn close(&mut self, worker: WorkerId, lease: LeaseId, instance: InstanceId) -> bool {
        let Some(open) = self.leases.get_mut(&lease).filter(|granted| granted.worker == worker) else {
            return false;
        };
        if !open.open.remove(&instance) {
            return false;
        }
        if open.open.is_empty() {
            self.leases.remove(&lease);
            if let Some(member) = self.members.get_mut(&worker) {
                member.leases.remove(&lease);
            }
        }
        let bucket = self.instances[instance.index()].bucket;
        self.buckets[bucket.index()].open.remove(&instance);
        true
    }

    /// Counts an instance as over, and lets go of the regions of which it was the last user.
    fn finish(&mut self, instance: InstanceId) {
        let mut released = Vec::new();
        for key in self.plan.instances[instance.index()].used() {
            if let Some(users) = self.users.get_mut(&key) {
                *users -= 1;
                if *users == 0 {
                    self.users.remove(&key);
                    self.holders.remove(&key);
                    released.push(key);
                }
            }
        }
        if !released.is_empty() {
            self.effects.push_back(Effect::Release(released));
        }
        self.unfinished -= 1;
        if self.unfinished == 0 {
            self.effects.push_back(Effect::Complete);
        }
    }

    fn end_if_stopped(&mut self) {
        if self.stopping && self.members.is_empty() && self.unfinished > 0 {
            self.effects.push_back(Effect::Stopped);
        }
    }
}
