//! The manager of one study: who runs which bucket, what is finished, what nobody needs any more.
//!
//! Events: [`Manager::handle_join`], [`handle_request`](Manager::handle_request),
//! [`handle_done`](Manager::handle_done), [`handle_failed`](Manager::handle_failed),
//! [`handle_leave`](Manager::handle_leave). After each, call [`Manager::poll_effect`] until it returns `None`.
//! It keeps no results and measures nothing: that is the shell's.

mod check;

use crate::message::{BucketWork, InstanceWork, TaskFailure};
use crate::plan::{ExecutionPlan, PlanError};
use crate::{BucketId, InstanceId, LeaseId, WorkerId};
use pleach_regions::RegionKey;
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
    },
    /// Nobody will read these regions again.
    Release(Vec<RegionKey>),
    /// An instance is finished, for good.
    Finished(InstanceId),
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
    /// Workers that wait for work, in the order in which they asked.
    queue: VecDeque<WorkerId>,
    leases: BTreeMap<LeaseId, Lease>,
    next_worker: u32,
    next_lease: u64,
    /// Instances that have yet to read each region, or to store it: a region whose readers have all failed
    /// with another parent is let go of once it is there, not before.
    users: HashMap<RegionKey, usize>,
    unfinished: usize,
    effects: VecDeque<Effect>,
}

impl Manager {
    /// Takes a plan; an empty one is complete at once.
    ///
    /// # Errors
    /// [`PlanError`] when the plan breaks one of its rules.
    pub fn new(plan: ExecutionPlan) -> Result<Self, PlanError> {
        let bucket_of = plan.validate()?;
        let mut users: HashMap<RegionKey, usize> = HashMap::new();
        let mut instances: Vec<Instance> = Vec::with_capacity(plan.instances.len());
        for (instance, bucket) in plan.instances.iter().zip(bucket_of) {
            let state = match instance.parents.len() {
                0 => State::Ready,
                parents => State::Waiting(parents),
            };
            instances.push(Instance { state, bucket, children: Vec::new() });
            for key in instance.used() {
                *users.entry(key).or_default() += 1;
            }
        }
        for (child, instance) in (0u32..).map(InstanceId).zip(&plan.instances) {
            for parent in &instance.parents {
                instances[parent.index()].children.push(child);
            }
        }
        let buckets = plan.buckets.iter().map(|bucket| {
            let waits = |id: &&InstanceId| matches!(instances[id.index()].state, State::Waiting(_));
            Bucket {
                open: bucket.instances.iter().copied().collect(),
                waiting: bucket.instances.iter().filter(waits).count(),
            }
        });
        let buckets = buckets.collect();
        let mut manager = Self {
            unfinished: instances.len(),
            plan,
            instances,
            buckets,
            ready: BTreeSet::new(),
            members: BTreeMap::new(),
            queue: VecDeque::new(),
            leases: BTreeMap::new(),
            next_worker: 0,
            next_lease: 0,
            users,
            effects: VecDeque::new(),
        };
        for bucket in (0..manager.buckets.len() as u32).map(BucketId) {
            manager.queue_if_ready(bucket);
        }
        if manager.unfinished == 0 {
            manager.effects.push_back(Effect::Complete);
        }
        Ok(manager)
    }

    /// A worker is there; it gets nothing until it asks.
    pub fn handle_join(&mut self) -> WorkerId {
        let worker = WorkerId(self.next_worker);
        self.next_worker += 1;
        self.members.insert(worker, Member::default());
        worker
    }

    /// A worker asks for `buckets` more. Unknown workers are ignored: they have left.
    pub fn handle_request(&mut self, worker: WorkerId, buckets: u32) {
        if let Some(member) = self.members.get_mut(&worker) {
            if member.wanted == 0 && buckets > 0 {
                self.queue.push_back(worker);
            }
            member.wanted = member.wanted.saturating_add(buckets);
            self.assign();
        }
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
        let mut failed = vec![instance];
        while let Some(id) = failed.pop() {
            let state = std::mem::replace(&mut self.instances[id.index()].state, State::Failed);
            if state.is_final() {
                self.instances[id.index()].state = state;
                continue;
            }
            let bucket = self.instances[id.index()].bucket;
            if id != instance {
                // Descendants cannot have been granted: they wait for what has just failed.
                self.buckets[bucket.index()].open.remove(&id);
                self.buckets[bucket.index()].waiting -= 1;
                self.queue_if_ready(bucket);
            }
            self.effects.push_back(Effect::Failed { instance: id, origin: instance, cause: cause.clone() });
            failed.extend(self.instances[id.index()].children.iter().rev());
            self.finish(id);
        }
        self.assign();
        true
    }

    /// A worker is gone, with or without a word. What it had not reported goes back to the queue.
    pub fn handle_leave(&mut self, worker: WorkerId) {
        let Some(member) = self.members.remove(&worker) else { return };
        self.queue.retain(|&queued| queued != worker);
        for lease in member.leases {
            let Some(lease) = self.leases.remove(&lease) else { continue };
            let mut bucket = None;
            for id in lease.open {
                self.instances[id.index()].state = State::Ready;
                bucket = Some(self.instances[id.index()].bucket);
            }
            if let Some(bucket) = bucket {
                self.queue_if_ready(bucket);
            }
        }
        self.assign();
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

    fn rank(&self, bucket: BucketId) -> Rank {
        let first = self.plan.buckets[bucket.index()].instances[0];
        (Reverse(self.plan.instances[first.index()].stage), bucket)
    }

    /// Queues a bucket when something of it is open and nothing of that waits or is granted.
    fn queue_if_ready(&mut self, bucket: BucketId) {
        let open = &self.buckets[bucket.index()];
        let is_ready = |id: &InstanceId| self.instances[id.index()].state == State::Ready;
        if open.waiting == 0 && open.open.first().is_some_and(is_ready) {
            let rank = self.rank(bucket);
            self.ready.insert(rank);
        }
    }

    /// Gives ready buckets to workers that asked, one each in turn.
    fn assign(&mut self) {
        while let Some(worker) = self.queue.front().copied() {
            let Some((_, bucket)) = self.ready.pop_first() else { return };
            self.queue.pop_front();
            let lease = LeaseId(self.next_lease);
            self.next_lease += 1;
            let Some(member) = self.members.get_mut(&worker) else { continue };
            member.wanted -= 1;
            member.leases.insert(lease);
            if member.wanted > 0 {
                self.queue.push_back(worker);
            }
            let open = self.buckets[bucket.index()].open.clone();
            for id in &open {
                self.instances[id.index()].state = State::Leased(lease);
            }
            let work = self.work(&open);
            self.leases.insert(lease, Lease { worker, open });
            self.effects.push_back(Effect::Assign { worker, lease, work });
        }
    }

    fn work(&self, open: &BTreeSet<InstanceId>) -> BucketWork {
        let mut stage = 0;
        let instances = open.iter().map(|&id| {
            let plan = &self.plan.instances[id.index()];
            stage = plan.stage as u32;
            InstanceWork {
                id,
                parameters: plan.parameters.clone(),
                inputs: plan.inputs.clone(),
                outputs: plan.outputs.clone(),
            }
        });
        let instances = instances.collect();
        BucketWork { stage, instances }
    }
}
