//! Ends of leases: instances are reported one by one, the worker returns them, or the worker is lost.

use super::{Bucket, Effect, State, Study};
use crate::plan::BucketPlan;
use crate::{BucketId, InstanceId, LeaseId, WorkerId};
use std::collections::{BTreeMap, BTreeSet};

impl Study {
    /// Removes an instance from its lease and bucket. Returns false if the report does not belong to the lease.
    pub(super) fn close(&mut self, worker: WorkerId, lease: LeaseId, instance: InstanceId) -> bool {
        let Some(twin) = self.let_go(worker, lease, instance) else { return false };
        if let Some(twin) = twin {
            self.let_go_of_twin(twin, instance);
        }
        let bucket = self.instances[instance.index()].bucket;
        self.buckets[bucket.index()].open.remove(&instance);
        true
    }

    /// Removes an instance from a lease. Returns the lease's twin, or `None` if the instance was not in the lease.
    fn let_go(&mut self, worker: WorkerId, lease: LeaseId, instance: InstanceId) -> Option<Option<LeaseId>> {
        let open = self.leases.get_mut(&lease).filter(|granted| granted.worker == worker)?;
        if !open.open.remove(&instance) {
            return None;
        }
        let twin = open.twin;
        if open.open.is_empty() {
            self.remove_lease(lease);
        }
        Some(twin)
    }

    /// Removes an instance from the other lease of the same instances. Revokes that lease if it becomes empty.
    fn let_go_of_twin(&mut self, lease: LeaseId, instance: InstanceId) {
        let Some(other) = self.leases.get_mut(&lease) else { return };
        other.open.remove(&instance);
        if other.open.is_empty() {
            let worker = other.worker;
            self.remove_lease(lease);
            self.effects.push_back(Effect::Revoke { worker, lease });
        }
    }

    /// Returns instances of an ended lease to the study: those in its twin stay leased to that, the others go
    /// into a bucket of their own. Fails the ones whose parents have failed.
    pub(super) fn return_instances(&mut self, instances: BTreeSet<InstanceId>, twin: Option<LeaseId>) {
        let back = self.take_all_back(instances, twin);
        self.fail_orphans(&back);
    }

    /// As [`return_instances`](Self::return_instances), without failing any. Returns the instances that are not leased.
    pub(super) fn take_all_back(
        &mut self,
        instances: BTreeSet<InstanceId>,
        twin: Option<LeaseId>,
    ) -> Vec<InstanceId> {
        let other = twin.and_then(|twin| self.leases.get(&twin)).map(|twin| twin.open.clone());
        let stays = |id: &InstanceId| other.as_ref().is_some_and(|open| open.contains(id));
        let (kept, back): (BTreeSet<_>, BTreeSet<_>) = instances.into_iter().partition(stays);
        if let Some(twin) = twin {
            kept.iter().for_each(|id| self.instances[id.index()].state = State::Leased(twin));
        }
        back.iter().for_each(|id| self.requeue(*id));
        self.apart(&back);
        back.into_iter().collect()
    }

    /// Takes back unstarted instances from a worker. Returns whether the lease belonged to the worker. Ignores
    /// instances that are not in the lease.
    pub fn handle_returned(&mut self, worker: WorkerId, lease: LeaseId, instances: &[InstanceId]) -> bool {
        let Some(granted) = self.leases.get_mut(&lease).filter(|granted| granted.worker == worker) else {
            return false;
        };
        granted.asked_back = false;
        let given: BTreeSet<InstanceId> =
            instances.iter().copied().filter(|id| granted.open.remove(id)).collect();
        let twin = granted.twin;
        if granted.open.is_empty() {
            self.remove_lease(lease);
        }
        self.return_instances(given, twin);
        true
    }

    /// Handles the end of a worker. Its unreported instances return to the queue, and referenced sole copies are
    /// recomputed. `lost` marks a worker that left without a message: its instances count as crashed.
    pub fn handle_leave(&mut self, worker: WorkerId, lost: bool) {
        let mut back = Vec::new();
        for id in self.granted.remove(&worker).unwrap_or_default() {
            let Some(lease) = self.remove_lease(id) else { continue };
            if lost {
                self.record_crash(&lease.open);
            }
            back.extend(self.take_all_back(lease.open, lease.twin));
        }
        // Reopen first: instances that fail with their parents must not release regions that reopened ones read.
        self.reopen_lost(worker);
        self.fail_orphans(&back);
    }

    /// Returns all leases with their workers.
    pub fn all_leases(&self) -> impl Iterator<Item = (WorkerId, LeaseId)> {
        self.leases.iter().map(|(id, lease)| (lease.worker, *id))
    }

    /// Returns the workers that have leases or hold regions.
    pub fn workers(&self) -> impl Iterator<Item = WorkerId> {
        let holders = self.holders.values().flatten().filter(|holder| **holder != WorkerId::SHARED);
        self.granted.keys().chain(holders).copied()
    }

    /// Resets an instance without a lease to ready or waiting, and recounts its open parents.
    pub(super) fn requeue(&mut self, instance: InstanceId) {
        let parents = self.plan.instances[instance.index()].parents.iter();
        let open = parents.filter(|parent| self.instances[parent.index()].state != State::Done).count();
        let run = &mut self.instances[instance.index()];
        run.state = if open == 0 { State::Ready } else { State::Waiting(open) };
        if open > 0 {
            self.buckets[run.bucket.index()].waiting += 1;
        }
    }

    /// Moves open instances without a lease into buckets of their own, one for each bucket they are in, unless they
    /// are all that is open of it. Each suspect gets a bucket of its own.
    pub(super) fn apart(&mut self, instances: &BTreeSet<InstanceId>) {
        let mut by_bucket: BTreeMap<BucketId, BTreeSet<InstanceId>> = BTreeMap::new();
        for id in instances {
            by_bucket.entry(self.instances[id.index()].bucket).or_default().insert(*id);
        }
        for (bucket, instances) in by_bucket {
            let bucket =
                if self.buckets[bucket.index()].open == instances { bucket } else { self.regroup(instances) };
            self.queue_if_ready(bucket);
        }
        self.isolate_or_fail(instances);
    }

    /// Moves instances of one stage from their buckets into a new one. Leaves the queue as it is.
    pub(super) fn regroup(&mut self, instances: BTreeSet<InstanceId>) -> BucketId {
        let new = BucketId(self.buckets.len() as u32);
        let mut pixels = 0;
        let mut waiting = 0;
        for id in &instances {
            let old = std::mem::replace(&mut self.instances[id.index()].bucket, new);
            let waits = matches!(self.instances[id.index()].state, State::Waiting(_));
            pixels = self.plan.buckets[old.index()].pixels;
            waiting += usize::from(waits);
            let old = &mut self.buckets[old.index()];
            old.open.remove(id);
            old.waiting -= usize::from(waits);
        }
        self.plan.buckets.push(BucketPlan { instances: instances.iter().copied().collect(), pixels });
        self.buckets.push(Bucket { open: instances, waiting, alone: false, ready_since: self.now });
        new
    }
}
