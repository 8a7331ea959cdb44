//! One study: what is granted to whom, what is finished, what nobody needs any more.
//!
//! Events: [`Study::grant`], [`handle_done`](Study::handle_done), [`handle_failed`](Study::handle_failed),
//! [`handle_missing_input`](Study::handle_missing_input), [`handle_returned`](Study::handle_returned), [`handle_leave`](Study::handle_leave). After each,
//! call [`Study::poll_effect`] until it returns `None`. It keeps no results and reads no clock: that is the shell's. Who
//! the workers are and which of them is to get something is for the [`Manager`](crate::manager::Manager) to say.
//!
//! `begin` makes the state of a plan, whole or resumed, `grant` leases ready buckets, `back` takes back what was leased,
//! `help` finds what idle workers can do of it, `rebucket` cuts buckets anew, `census` counts, `loss` has computed again what goes with a
//! worker, `poison` finds out what kills workers, `adopt` takes up what workers had of an earlier manager, `pace` measures,
//! and `check` compares all of it with a recount; what becomes of instances and leases is here.

mod grant;
mod invariants;
mod isolation;
mod lease_end;
mod locality;
mod progress;
mod reattach;
mod rebalance;
mod replan;
mod start;
mod throughput;
mod worker_loss;

pub use grant::Eligibility;
pub use progress::InstanceCounts;
pub(crate) use rebalance::{RebalanceCandidates, StragglerPolicy};
pub use replan::Recut;

use crate::message::{RemoteRegion, TaskFailure};
use crate::plan::ExecutionPlan;
use crate::{BucketId, InstanceId, LeaseId, WorkerId};
use pleach_regions::RegionKey;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::time::Duration;
use throughput::StageThroughput;

/// What follows from an event.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
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
    /// A worker need not go on with this lease: another one was faster.
    Revoke {
        /// Who has it.
        worker: WorkerId,
        /// The lease.
        lease: LeaseId,
    },
    /// Every instance is finished or failed.
    Complete,
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
    /// Workers were lost with it: it is granted to one that has nothing else to lose.
    alone: bool,
    /// When it was last queued.
    ready_since: Duration,
}

#[derive(Debug)]
struct Lease {
    worker: WorkerId,
    open: BTreeSet<InstanceId>,
    /// What the worker was told of where to have what it reads.
    told: Vec<RemoteRegion>,
    /// When it was granted.
    since: Duration,
    /// How long its bucket had been ready then.
    waited: Duration,
    /// The worker has been asked to hand back what it has not begun, and has not answered yet.
    asked_back: bool,
    /// The other lease of the same instances, where a second worker tries as well.
    twin: Option<LeaseId>,
}

/// Later stages first, since they let go of what earlier ones hold; then the plan's order.
type Rank = (Reverse<usize>, BucketId);

/// The state of one study.
#[derive(Debug)]
pub struct Study {
    plan: ExecutionPlan,
    instances: Vec<Instance>,
    buckets: Vec<Bucket>,
    ready: BTreeSet<Rank>,
    /// Those that go to a worker that has nothing else.
    ready_alone: BTreeSet<Rank>,
    /// Since when each of these has been seen to be ready.
    alone_since: BTreeMap<Rank, Duration>,
    leases: BTreeMap<LeaseId, Lease>,
    granted: BTreeMap<WorkerId, BTreeSet<LeaseId>>,
    /// Instances that have yet to read each region, or to store it: a region whose readers have all failed
    /// with another parent is let go of once it is there, not before.
    users: HashMap<RegionKey, usize>,
    /// Who stores each region that others read.
    producers: HashMap<RegionKey, InstanceId>,
    /// Of those that are stored, and will still be used: the workers that hold them.
    holders: HashMap<RegionKey, BTreeSet<WorkerId>>,
    /// Of failed instances: the origin, and why.
    causes: BTreeMap<InstanceId, (InstanceId, TaskFailure)>,
    /// Workers that were lost while they had an instance.
    losses: HashMap<InstanceId, u32>,
    /// How often an instance lacked what it reads.
    lacked: HashMap<InstanceId, u32>,
    /// Of each stage.
    pace: Vec<StageThroughput>,
    unfinished: usize,
    /// Nothing more of it is granted.
    is_halted: bool,
    /// When the last event was that said so.
    now: Duration,
    effects: VecDeque<Effect>,
}

impl Study {
    /// An instance is finished. A report under a lease that is over is ignored: another worker has it now.
    /// Returns whether the report counted.
    pub fn handle_done(
        &mut self,
        worker: WorkerId,
        lease: LeaseId,
        instance: InstanceId,
        now: Duration,
    ) -> bool {
        self.keep_pace(worker, lease, instance, now);
        if !self.close(worker, lease, instance) {
            return false;
        }
        self.clear(instance);
        self.end(instance);
        self.note_holder(worker, instance);
        true
    }

    /// An instance has been executed, by whomever: what waited for it, and what it was the last to use.
    fn end(&mut self, instance: InstanceId) {
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
            self.unqueue(bucket);
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
}
