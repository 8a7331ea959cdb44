//! Instances and buckets: the state of each instance, and the open instances of each bucket.
//!
//! Invariants: an instance is open in its bucket exactly while it is neither done nor failed, except between
//! [`reopen`](Instances::reopen) and [`readmit`](Instances::readmit). A bucket counts its waiting instances, and
//! `unfinished` counts the open ones of all buckets. A bucket is leased as a whole, so its first open instance shows
//! whether it is leased. An instance is movable exactly while it has no lease and its bucket is not isolated. Each
//! method asserts the state that it ends and the membership in the bucket.
//!
//! Each property of the instances is a table of its own, so that a snapshot of a million instances is two copies of
//! memory.

mod census;
mod snapshot;
mod transitions;

pub use snapshot::StudySnapshot;

use crate::plan::ExecutionPlan;
use crate::{BucketId, InstanceId, LeaseId};
use census::Census;
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
    states: Vec<InstanceState>,
    /// Current or last bucket of each instance.
    bucket_of: Vec<BucketId>,
    /// By instance: whether a replan may move it.
    movable: Vec<bool>,
    /// Number of `true` in `movable`.
    movable_count: usize,
    children: Children,
    buckets: Vec<Bucket>,
    unfinished: usize,
    census: Census,
}

/// Children of all instances, in one table.
#[derive(Debug)]
struct Children {
    children: Vec<InstanceId>,
    /// End of each instance's children in the table.
    ends: Vec<u32>,
}

impl Children {
    fn of(plan: &ExecutionPlan) -> Self {
        let mut ends = vec![0_u32; plan.instances.len()];
        for parent in plan.instances.iter().flat_map(|instance| instance.parents) {
            ends[parent.index()] += 1;
        }
        let mut next = Vec::with_capacity(ends.len());
        let mut total = 0;
        for end in &mut ends {
            next.push(total as usize);
            total += *end;
            *end = total;
        }
        let mut children = vec![InstanceId(0); total as usize];
        for (child, instance) in plan.instances.enumerate() {
            for parent in instance.parents {
                let place = &mut next[parent.index()];
                children[*place] = child;
                *place += 1;
            }
        }
        Self { children, ends }
    }

    fn get(&self, id: InstanceId) -> &[InstanceId] {
        let start = id.index().checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.children[start as usize..self.ends[id.index()] as usize]
    }
}

impl Instances {
    /// Creates the states of a valid plan. Instances that are not `open` are done.
    pub(crate) fn of(plan: &ExecutionPlan, bucket_of: Vec<BucketId>, open: &[bool]) -> Self {
        let mut states = Vec::with_capacity(plan.instances.len());
        for (number, instance) in plan.instances.iter().enumerate() {
            states.push(match instance.parents.iter().filter(|parent| open[parent.index()]).count() {
                _ if !open[number] => InstanceState::Done,
                0 => InstanceState::Ready,
                parents => InstanceState::Waiting(parents),
            });
        }
        let buckets = plan.buckets.iter().map(|bucket| {
            let open: BTreeSet<InstanceId> =
                bucket.instances.iter().copied().filter(|id| open[id.index()]).collect();
            let waiting = open.iter().filter(|id| states[id.index()].waits()).count();
            Bucket { open, waiting, isolated: false, ready_since: Duration::ZERO }
        });
        let buckets: Vec<Bucket> = buckets.collect();
        let unfinished = open.iter().filter(|open| **open).count();
        let in_buckets: usize = buckets.iter().map(|bucket| bucket.open.len()).sum();
        assert!(in_buckets == unfinished, "{unfinished} instances are open, {in_buckets} are in buckets");
        let children = Children::of(plan);
        let (movable, movable_count) = (open.to_vec(), unfinished);
        let census = Census::of(plan, &states);
        Self { states, bucket_of, movable, movable_count, children, buckets, unfinished, census }
    }

    pub(crate) fn len(&self) -> usize {
        self.states.len()
    }

    /// Counts instances neither finished nor failed.
    pub(crate) fn unfinished(&self) -> usize {
        self.unfinished
    }

    pub(crate) fn state(&self, id: InstanceId) -> InstanceState {
        self.states[id.index()]
    }

    /// Returns the state of an instance. `None` if a message names an unknown one.
    pub(crate) fn find_state(&self, id: InstanceId) -> Option<InstanceState> {
        self.states.get(id.index()).copied()
    }

    /// Returns the states of all instances, in order.
    pub(crate) fn states(&self) -> impl Iterator<Item = InstanceState> {
        self.states.iter().copied()
    }

    /// Returns the current or last bucket of an instance.
    pub(crate) fn bucket_of(&self, id: InstanceId) -> BucketId {
        self.bucket_of[id.index()]
    }

    /// As [`bucket_of`](Self::bucket_of). `None` if a message names an unknown instance.
    pub(crate) fn find_bucket_of(&self, id: InstanceId) -> Option<BucketId> {
        self.bucket_of.get(id.index()).copied()
    }

    pub(crate) fn children(&self, id: InstanceId) -> &[InstanceId] {
        self.children.get(id)
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
        // Isolated buckets have one instance.
        let open: Vec<InstanceId> = self.buckets[id.index()].open.iter().copied().collect();
        open.into_iter().for_each(|instance| self.update_movable(instance));
    }

    /// Returns whether a replan may move an instance: it is open, has no lease, and its bucket is not isolated.
    pub(crate) fn is_movable(&self, id: InstanceId) -> bool {
        self.movable[id.index()]
    }

    /// Counts the instances that a replan may move.
    pub(crate) fn movable_count(&self) -> usize {
        self.movable_count
    }

    fn is_movable_by_state(&self, id: InstanceId) -> bool {
        self.state(id).is_unstarted() && !self.bucket(self.bucket_of(id)).isolated
    }

    /// Updates the table after a change of an instance's state, or of its bucket.
    fn update_movable(&mut self, id: InstanceId) {
        let is_movable = self.is_movable_by_state(id);
        let was_movable = std::mem::replace(&mut self.movable[id.index()], is_movable);
        self.movable_count += usize::from(is_movable);
        self.movable_count -= usize::from(was_movable);
    }
}
