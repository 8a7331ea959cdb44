//! Instances and buckets: the state of each instance, and the open instances of each bucket.
//!
//! Invariants: an instance is open in its bucket exactly while it is neither done nor failed, except between
//! [`reopen`](Instances::reopen) and [`readmit`](Instances::readmit). A bucket counts its waiting instances, and
//! `unfinished` counts the open ones of all buckets. A bucket is leased as a whole, so its first open instance shows
//! whether it is leased. Each method asserts the state that it ends and the membership in the bucket.

mod transitions;

use crate::plan::ExecutionPlan;
use crate::{BucketId, InstanceId, LeaseId};
use std::collections::BTreeSet;
use std::time::Duration;

/// State of an instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum InstanceState {
    /// Waits for this many parents.
    Waiting(usize),
    /// All parents are finished.
    Ready,
    /// Granted to a worker.
    Leased(LeaseId),
    /// Done before and not yet back in its bucket. Occurs only within an event.
    Reopened,
    Done,
    Failed,
}

impl InstanceState {
    pub(crate) fn is_final(self) -> bool {
        matches!(self, Self::Done | Self::Failed)
    }

    /// Returns whether an open instance has no lease.
    pub(crate) fn is_unstarted(self) -> bool {
        matches!(self, Self::Ready | Self::Waiting(_))
    }

    /// Returns whether an instance is leased under `lease` or its twin.
    pub(crate) fn is_leased_under(self, lease: LeaseId, twin: Option<LeaseId>) -> bool {
        matches!(self, Self::Leased(under) if under == lease || Some(under) == twin)
    }

    fn waits(self) -> bool {
        matches!(self, Self::Waiting(_))
    }
}

#[derive(Debug)]
struct Instance {
    state: InstanceState,
    bucket: BucketId,
    children: Vec<InstanceId>,
}

/// The open instances of a bucket.
#[derive(Debug)]
pub(crate) struct Bucket {
    /// Instances neither finished nor failed.
    open: BTreeSet<InstanceId>,
    /// Instances of `open` that wait for a parent.
    waiting: usize,
    /// Granted only to an otherwise empty worker.
    isolated: bool,
    /// Time when it was last queued.
    ready_since: Duration,
}

impl Bucket {
    pub(crate) fn open(&self) -> &BTreeSet<InstanceId> {
        &self.open
    }

    pub(crate) fn is_isolated(&self) -> bool {
        self.isolated
    }

    pub(crate) fn ready_since(&self) -> Duration {
        self.ready_since
    }
}

/// All instances and buckets of a study.
#[derive(Debug)]
pub(crate) struct Instances {
    instances: Vec<Instance>,
    buckets: Vec<Bucket>,
    unfinished: usize,
}

impl Instances {
    /// Creates the states of a valid plan. Instances that are not `open` are done.
    pub(crate) fn of(plan: &ExecutionPlan, bucket_of: Vec<BucketId>, open: &[bool]) -> Self {
        let mut instances: Vec<Instance> = Vec::with_capacity(plan.instances.len());
        for (number, (instance, bucket)) in plan.instances.iter().zip(bucket_of).enumerate() {
            let state = match instance.parents.iter().filter(|parent| open[parent.index()]).count() {
                _ if !open[number] => InstanceState::Done,
                0 => InstanceState::Ready,
                parents => InstanceState::Waiting(parents),
            };
            instances.push(Instance { state, bucket, children: Vec::new() });
        }
        for (child, instance) in (0u32..).map(InstanceId).zip(&plan.instances) {
            for parent in &instance.parents {
                instances[parent.index()].children.push(child);
            }
        }
        let buckets = plan.buckets.iter().map(|bucket| {
            let open: BTreeSet<InstanceId> =
                bucket.instances.iter().copied().filter(|id| open[id.index()]).collect();
            let waiting = open.iter().filter(|id| instances[id.index()].state.waits()).count();
            Bucket { open, waiting, isolated: false, ready_since: Duration::ZERO }
        });
        let buckets: Vec<Bucket> = buckets.collect();
        let unfinished = open.iter().filter(|open| **open).count();
        let in_buckets: usize = buckets.iter().map(|bucket| bucket.open.len()).sum();
        assert!(in_buckets == unfinished, "{unfinished} instances are open, {in_buckets} are in buckets");
        Self { instances, buckets, unfinished }
    }

    pub(crate) fn len(&self) -> usize {
        self.instances.len()
    }

    /// Counts instances neither finished nor failed.
    pub(crate) fn unfinished(&self) -> usize {
        self.unfinished
    }

    pub(crate) fn state(&self, id: InstanceId) -> InstanceState {
        self.instances[id.index()].state
    }

    /// Returns the state of an instance. `None` if a message names an unknown one.
    pub(crate) fn find_state(&self, id: InstanceId) -> Option<InstanceState> {
        self.instances.get(id.index()).map(|instance| instance.state)
    }

    /// Returns the states of all instances, in order.
    pub(crate) fn states(&self) -> impl Iterator<Item = InstanceState> {
        self.instances.iter().map(|instance| instance.state)
    }

    /// Returns the current or last bucket of an instance.
    pub(crate) fn bucket_of(&self, id: InstanceId) -> BucketId {
        self.instances[id.index()].bucket
    }

    /// As [`bucket_of`](Self::bucket_of). `None` if a message names an unknown instance.
    pub(crate) fn find_bucket_of(&self, id: InstanceId) -> Option<BucketId> {
        self.instances.get(id.index()).map(|instance| instance.bucket)
    }

    pub(crate) fn children(&self, id: InstanceId) -> &[InstanceId] {
        &self.instances[id.index()].children
    }

    pub(crate) fn bucket(&self, id: BucketId) -> &Bucket {
        &self.buckets[id.index()]
    }

    /// Returns all buckets, in order.
    pub(crate) fn buckets(&self) -> impl Iterator<Item = (BucketId, &Bucket)> {
        (0u32..).map(BucketId).zip(&self.buckets)
    }

    pub(crate) fn bucket_count(&self) -> usize {
        self.buckets.len()
    }

    /// Returns whether a bucket has open instances and all of them are ready.
    pub(crate) fn is_ready(&self, id: BucketId) -> bool {
        let bucket = &self.buckets[id.index()];
        bucket.waiting == 0
            && bucket.open.first().is_some_and(|first| self.state(*first) == InstanceState::Ready)
    }

    /// Returns whether a bucket has open instances without a lease, and may be replanned. Isolated buckets may not.
    pub(crate) fn is_unstarted(&self, id: BucketId) -> bool {
        let bucket = &self.buckets[id.index()];
        !bucket.isolated && bucket.open.first().is_some_and(|first| self.state(*first).is_unstarted())
    }

    pub(crate) fn set_ready_since(&mut self, id: BucketId, now: Duration) {
        self.buckets[id.index()].ready_since = now;
    }

    pub(crate) fn set_all_ready_since(&mut self, now: Duration) {
        self.buckets.iter_mut().for_each(|bucket| bucket.ready_since = now);
    }

    /// Isolates a bucket or ends its isolation. It is not queued meanwhile, since the queue depends on this.
    pub(crate) fn set_isolated(&mut self, id: BucketId, isolated: bool) {
        self.buckets[id.index()].isolated = isolated;
    }
}
