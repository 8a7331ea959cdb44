//! One study: its grants, its finished instances and its unreferenced regions.
//!
//! Events: [`Study::grant`], [`handle_done`](Study::handle_done), [`handle_failed`](Study::handle_failed),
//! [`handle_missing_input`](Study::handle_missing_input), [`handle_returned`](Study::handle_returned),
//! [`handle_leave`](Study::handle_leave). After each, call [`Study::poll_effect`] until it returns `None`. A study keeps no
//! results and reads no clock: both are the shell's task. The [`Manager`](crate::manager::Manager) knows the workers and
//! decides which of them gets a bucket.
//!
//! `start` builds the state of a plan, new or resumed, `grant` leases ready buckets, `lease_end` takes leases
//! back, `rebalance` finds work for idle workers, `replan` rebuilds buckets, `progress` counts, `worker_loss`
//! reopens instances whose outputs are lost with a worker, `isolation` finds instances that crash workers,
//! `reattach` restores leases granted by an earlier manager, `throughput` measures, `locality` counts bytes to
//! transfer, and `invariants` compares the state with a recount. This module changes the states of instances
//! and leases.

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
pub use replan::{Recut, Replanner};

use crate::message::{RemoteRegion, TaskFailure};
use crate::plan::ExecutionPlan;
use crate::{BucketId, InstanceId, LeaseId, WorkerId};
use pleach_regions::RegionKey;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::time::Duration;
use throughput::StageThroughput;

/// Effects of an event.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// Regions without a further reader.
    Release(Vec<RegionKey>),
    /// An instance is finished.
    Finished(InstanceId),
    /// A finished instance must be executed again: its stored outputs are lost and still have a reader.
    Reopened(InstanceId),
    /// An instance failed permanently. `origin` is the instance whose task failed.
    Failed {
        /// The instance.
        instance: InstanceId,
        /// The instance itself, or the ancestor whose failure it shares.
        origin: InstanceId,
        /// Why.
        cause: TaskFailure,
    },
    /// A worker can abandon this lease: another lease of the same instances was faster.
    Revoke {
        /// The worker that has the lease.
        worker: WorkerId,
        /// The lease.
        lease: LeaseId,
    },
    /// Every instance is finished or failed.
    Complete,
}

/// State of an instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Waits for this many parents.
    Waiting(usize),
    /// All parents are finished.
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
    /// Instances neither finished nor failed.
    open: BTreeSet<InstanceId>,
    /// Instances of `open` that wait for a parent.
    waiting: usize,
    /// Isolated: granted only to an otherwise empty worker.
    alone: bool,
    /// Time when it was last queued.
    ready_since: Duration,
}

#[derive(Debug)]
struct Lease {
    worker: WorkerId,
    open: BTreeSet<InstanceId>,
    /// Locations of the input regions, as sent to the worker.
    told: Vec<RemoteRegion>,
    /// Time of the grant, or of the last finished instance under this lease.
    since: Duration,
    /// Time that its bucket had been ready before the grant.
    waited: Duration,
    /// The worker was asked to return unstarted instances and has not answered yet.
    asked_back: bool,
    /// The other lease of the same instances under speculative execution.
    twin: Option<LeaseId>,
}

/// Later stages first, since they release the outputs of earlier ones. Then the plan's order.
type Rank = (Reverse<usize>, BucketId);

/// The state of one study.
#[derive(Debug)]
pub struct Study {
    plan: ExecutionPlan,
    instances: Vec<Instance>,
    buckets: Vec<Bucket>,
    ready: BTreeSet<Rank>,
    /// Ready buckets for otherwise empty workers.
    ready_alone: BTreeSet<Rank>,
    /// Time when each isolated bucket was first seen ready.
    alone_since: BTreeMap<Rank, Duration>,
    leases: BTreeMap<LeaseId, Lease>,
    granted: BTreeMap<WorkerId, BTreeSet<LeaseId>>,
    /// Instances that have yet to read or store each region. A region whose readers have all failed
    /// with another parent is released once it is stored, not before.
    users: HashMap<RegionKey, usize>,
    /// The instance that stores each region with readers.
    producers: HashMap<RegionKey, InstanceId>,
    /// Workers that hold each stored region, while it is referenced.
    holders: HashMap<RegionKey, BTreeSet<WorkerId>>,
    /// Origin and cause of each failed instance.
    causes: BTreeMap<InstanceId, (InstanceId, TaskFailure)>,
    /// Crash count of each instance: the workers lost while they had it.
    losses: HashMap<InstanceId, u32>,
    /// Number of missing-input reports of each instance.
    lacked: HashMap<InstanceId, u32>,
    /// Throughput of each stage.
    pace: Vec<StageThroughput>,
    unfinished: usize,
    /// Suspended: nothing more of it is granted.
    is_halted: bool,
    /// Time of the last event that carried one.
    now: Duration,
    effects: VecDeque<Effect>,
}

impl Study {
    /// Finishes an instance. Ignores a report under an expired lease, since another worker has the instance now.
    /// Returns whether the report counted.
    pub fn handle_done(
        &mut self,
        worker: WorkerId,
        lease: LeaseId,
        instance: InstanceId,
        now: Duration,
    ) -> bool {
        // Before `close`, which may remove the lease and with it the time of the last report.
        self.keep_pace(worker, lease, instance, now);
        if !self.close(worker, lease, instance) {
            return false;
        }
        self.clear(instance);
        self.end(instance);
        // After `end`, so that regions without a further reader get no holder.
        self.note_holder(worker, instance);
        true
    }

    /// Marks an instance done: unblocks its children and drops its region references.
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

    /// Fails an instance and everything that reads from it. Returns whether the report counted.
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
        // `fail` expects an instance that is in its bucket and not leased.
        let bucket = self.instances[instance.index()].bucket;
        self.buckets[bucket.index()].open.insert(instance);
        self.instances[instance.index()].state = State::Ready;
        self.fail(instance, instance, cause);
        true
    }

    /// Fails an instance that is not leased and its descendants that are not leased. Leased descendants stay: their
    /// workers may have their inputs.
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

    /// Returns the next effect, in order. `None` if none is pending.
    pub fn poll_effect(&mut self) -> Option<Effect> {
        self.effects.pop_front()
    }

    /// Counts instances neither finished nor failed.
    #[must_use]
    pub fn unfinished(&self) -> usize {
        self.unfinished
    }

    /// Returns the plan being executed.
    #[must_use]
    pub fn plan(&self) -> &ExecutionPlan {
        &self.plan
    }

    /// Counts an instance as finished or failed and releases the regions that it referenced last.
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
