//! Grants: picks the ready bucket for a worker, leases it, and builds the work that is sent to the worker.

use super::{Lease, Rank, State, Study};
use crate::message::{BucketWork, InstanceWork, RemoteRegion};
use crate::{BucketId, InstanceId, LeaseId, WorkerId};
use pleach_regions::RegionKey;
use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::ops::Bound;
use std::time::Duration;

/// Constraints on a worker's next bucket.
#[derive(Clone, Copy, Debug)]
pub struct Eligibility<'a> {
    /// Only stages after this one.
    pub after: Option<usize>,
    /// By stage: whether the worker can run it. Stages beyond the end can be run.
    pub runs: &'a [bool],
    /// Whether the worker is empty: no other lease would be lost with it.
    pub is_alone: bool,
    /// Among buckets of one stage, the one with the fewest bytes to transfer to this worker comes first.
    pub near: Option<WorkerId>,
}

impl Study {
    /// Returns the first ready bucket that meets the constraints: later stages first, then locality, then the plan's order.
    /// An empty worker gets isolated buckets before all others, since no other worker can take them.
    #[must_use]
    pub fn first_ready(&self, suits: Eligibility<'_>) -> Option<BucketId> {
        if self.is_halted {
            return None;
        }
        let alone = suits.is_alone.then(|| first_of(&self.ready_alone, suits)).flatten();
        alone.or_else(|| first_of(&self.ready, suits).map(|first| self.most_local(first, suits)))
    }

    /// Returns whether any bucket is ready to be granted.
    #[must_use]
    pub fn has_ready(&self) -> bool {
        let is_any = !self.ready.is_empty() || !self.ready_alone.is_empty();
        is_any && !self.is_halted
    }

    /// Suspends the study: grants nothing from now on. Existing leases stay.
    pub fn halt(&mut self) {
        self.is_halted = true;
    }

    /// Returns whether the study is suspended.
    #[must_use]
    pub fn is_halted(&self) -> bool {
        self.is_halted
    }

    /// Leases a ready bucket to a worker. Returns `None` if the bucket is not ready.
    pub fn grant(
        &mut self,
        bucket: BucketId,
        worker: WorkerId,
        lease: LeaseId,
        now: Duration,
    ) -> Option<BucketWork> {
        if !self.unqueue(bucket) {
            return None;
        }
        let open = self.buckets[bucket.index()].open.clone();
        for id in &open {
            self.instances[id.index()].state = State::Leased(lease);
        }
        let work = self.work(bucket, &open, worker);
        let waited = now.saturating_sub(self.buckets[bucket.index()].ready_since);
        let told = work.elsewhere.clone();
        self.add_lease(
            lease,
            Lease { worker, open, told, since: now, waited, asked_back: false, twin: None },
        );
        Some(work)
    }

    /// Leases the open instances of a straggler to a second worker as well. The first result counts. Returns `None` if the
    /// lease does not qualify.
    pub fn grant_speculative(
        &mut self,
        of: LeaseId,
        worker: WorkerId,
        lease: LeaseId,
        now: Duration,
    ) -> Option<BucketWork> {
        let first =
            self.leases.get_mut(&of).filter(|first| first.twin.is_none() && first.worker != worker)?;
        first.twin = Some(lease);
        let open = first.open.clone();
        let bucket = open.first().map(|first| self.instances[first.index()].bucket)?;
        let work = self.work(bucket, &open, worker);
        let waited = Duration::ZERO;
        let told = work.elsewhere.clone();
        let twin = Some(of);
        self.add_lease(lease, Lease { worker, open, told, since: now, waited, asked_back: false, twin });
        Some(work)
    }

    pub(super) fn add_lease(&mut self, id: LeaseId, lease: Lease) {
        self.granted.entry(lease.worker).or_default().insert(id);
        self.leases.insert(id, lease);
    }

    pub(super) fn remove_lease(&mut self, id: LeaseId) -> Option<Lease> {
        let lease = self.leases.remove(&id)?;
        if let Some(granted) = self.granted.get_mut(&lease.worker) {
            granted.remove(&id);
            if granted.is_empty() {
                self.granted.remove(&lease.worker);
            }
        }
        if let Some(twin) = lease.twin.and_then(|twin| self.leases.get_mut(&twin)) {
            twin.twin = None;
        }
        Some(lease)
    }

    /// Counts the leases of a worker.
    #[must_use]
    pub fn leases_of(&self, worker: WorkerId) -> usize {
        self.granted.get(&worker).map_or(0, BTreeSet::len)
    }

    /// Counts all leases.
    #[must_use]
    pub fn leases(&self) -> usize {
        self.leases.len()
    }

    pub(super) fn rank(&self, bucket: BucketId) -> Rank {
        let first = self.plan.buckets[bucket.index()].instances[0];
        (Reverse(self.plan.instances[first.index()].stage), bucket)
    }

    /// Queues a bucket if it has open instances and all of them are ready.
    pub(super) fn queue_if_ready(&mut self, bucket: BucketId) {
        let open = &self.buckets[bucket.index()];
        // A bucket is leased as a whole, so its first instance shows whether it is leased.
        let is_ready = |id: &InstanceId| self.instances[id.index()].state == State::Ready;
        if open.waiting == 0 && open.open.first().is_some_and(is_ready) {
            let rank = self.rank(bucket);
            let is_new = if open.alone { self.ready_alone.insert(rank) } else { self.ready.insert(rank) };
            if is_new {
                self.buckets[bucket.index()].ready_since = self.now;
            }
        }
    }

    pub(super) fn is_ready(&self, bucket: BucketId) -> bool {
        let rank = self.rank(bucket);
        self.ready.contains(&rank) || self.ready_alone.contains(&rank)
    }

    /// Removes a bucket from the queue. Returns whether it was queued.
    pub(super) fn unqueue(&mut self, bucket: BucketId) -> bool {
        let rank = self.rank(bucket);
        self.ready.remove(&rank) || self.ready_alone.remove(&rank)
    }

    fn work(&self, bucket: BucketId, open: &BTreeSet<InstanceId>, worker: WorkerId) -> BucketWork {
        let mut stage = 0;
        let instances = open.iter().map(|&id| {
            let plan = &self.plan.instances[id.index()];
            stage = plan.stage as u32;
            InstanceWork {
                id,
                parameters: plan.parameters.clone(),
                inputs: plan.inputs.clone(),
                outputs: plan.outputs.clone(),
                stays: self.stays(id),
            }
        });
        let instances: Vec<InstanceWork> = instances.collect();
        let keys: BTreeSet<RegionKey> =
            instances.iter().flat_map(|instance| &instance.inputs).copied().collect();
        let holders = keys.into_iter().filter_map(|key| Some((key, self.holders.get(&key)?)));
        let elsewhere = holders.filter(|(_, holders)| !holders.contains(&worker));
        let elsewhere = elsewhere.map(|(key, holders)| {
            let workers = holders.iter().copied().filter(|holder| *holder != WorkerId::SHARED).collect();
            RemoteRegion { key, workers, shared: holders.contains(&WorkerId::SHARED) }
        });
        let elsewhere = elsewhere.collect();
        let pixels = self.plan.buckets[bucket.index()].pixels;
        let drain = self.plan.needs.drains.get(stage as usize).copied().unwrap_or_default();
        BucketWork { bucket, stage, pixels, drain, sharing: self.plan.sharing, instances, elsewhere }
    }

    /// Returns whether some reader of an instance waits for other parents as well.
    fn stays(&self, id: InstanceId) -> bool {
        let waits = |other: &InstanceId| *other != id && self.instances[other.index()].state != State::Done;
        let children = self.instances[id.index()].children.iter();
        children.flat_map(|child| &self.plan.instances[child.index()].parents).any(waits)
    }
}

/// Returns the first bucket that meets the constraints. Skips an unsuitable stage at once, whatever its number of buckets.
fn first_of(ready: &BTreeSet<Rank>, suits: Eligibility<'_>) -> Option<BucketId> {
    let mut next = ready.first();
    while let Some(&(Reverse(stage), bucket)) = next {
        if suits.after.is_some_and(|after| stage <= after) {
            return None;
        }
        if suits.runs.get(stage).copied().unwrap_or(true) {
            return Some(bucket);
        }
        let rest = (Bound::Excluded((Reverse(stage), BucketId(u32::MAX))), Bound::Unbounded);
        next = ready.range(rest).next();
    }
    None
}
