//! Ends of leases: instances are reported one by one, the worker returns them, or the worker is lost.

use super::state::{InstanceState, ReturnedInstances};
use super::{Effect, Study};
use crate::plan::BucketPlan;
use crate::{BucketId, InstanceId, LeaseId, WorkerId};
use std::collections::{BTreeMap, BTreeSet};

impl Study {
    /// Removes a reported instance from its leases, and revokes the twin if it has no other instance. The instance
    /// stays open in its bucket. Returns false if the report does not belong to the lease.
    pub(super) fn close(&mut self, worker: WorkerId, lease: LeaseId, instance: InstanceId) -> bool {
        let Some(closed) = self.leases.close(worker, lease, instance) else { return false };
        let state = self.instances.state(instance);
        let is_leased = state.is_leased_under(lease, closed.twin);
        assert!(is_leased, "{instance} ends under {lease} with the twin {:?}, was {state:?}", closed.twin);
        self.free_slot(worker, lease);
        if let (Some(worker), Some(twin)) = (closed.revoked, closed.twin) {
            self.free_slot(worker, twin);
            self.effects.push_back(Effect::Revoke { worker, lease: twin });
        }
        true
    }

    /// Reclaims instances of an ended lease: those in its twin stay leased to that, the others go into a bucket of
    /// their own. Fails none. Returns the instances that are not leased.
    pub(super) fn reclaim(&mut self, returned: ReturnedInstances) -> Vec<InstanceId> {
        let ReturnedInstances { instances, twin } = returned;
        let other = twin.and_then(|twin| self.leases.get(twin)).map(|twin| twin.open());
        let stays = |id: &InstanceId| other.is_some_and(|open| open.contains(id));
        let (kept, back): (BTreeSet<_>, BTreeSet<_>) = instances.into_iter().partition(stays);
        if let Some(twin) = twin {
            kept.iter().for_each(|id| self.instances.lease_to_twin(*id, twin));
        }
        for &id in &back {
            self.instances.end_lease(id, self.unfinished_parents(id));
        }
        // After all leases have ended: a bucket is queued only once none of its instances is leased.
        self.split_off(&back);
        back.into_iter().collect()
    }

    /// Takes back unstarted instances from a worker. Returns whether the lease belonged to the worker. Ignores
    /// instances that are not in the lease.
    pub fn handle_returned(&mut self, worker: WorkerId, lease: LeaseId, instances: &[InstanceId]) -> bool {
        // Also for an empty answer: the lease could not be asked again otherwise.
        self.leases.answer_return(worker, lease);
        let Some(returned) = self.leases.take_back(worker, lease, instances) else { return false };
        if !instances.is_empty() {
            self.clocks.exclude(worker, lease);
        }
        self.free_slot(worker, lease);
        let back = self.reclaim(returned);
        self.fail_orphans(&back);
        true
    }

    /// Handles the end of a worker. Its unreported instances return to the queue, and referenced sole copies are
    /// recomputed. `lost` marks a worker that left without a message: its instances count as crashed.
    pub fn handle_leave(&mut self, worker: WorkerId, lost: bool) {
        self.ready.runs_mut().remove_worker(worker);
        self.clocks.remove_worker(worker);
        let mut back = Vec::new();
        for returned in self.leases.remove_worker(worker) {
            if lost {
                // Before `reclaim`, which isolates suspects.
                let open = returned.instances.len();
                returned.instances.iter().for_each(|id| self.failures.record_crash(*id, open));
                returned.twin.iter().for_each(|twin| self.isolate_twin(*twin));
            }
            back.extend(self.reclaim(returned));
        }
        assert!(self.leases.count_of(worker) == 0, "{worker} has left, and has leases");
        // Reopen first: instances that fail with their parents must not release regions that reopened ones read.
        self.reopen_lost(worker);
        self.fail_orphans(&back);
    }

    /// Isolates a lease whose twin was lost, if it has a suspect.
    fn isolate_twin(&mut self, twin: LeaseId) {
        let is_suspected = |id: &InstanceId| self.failures.is_suspected(*id);
        if self.leases.get(twin).is_some_and(|lease| lease.open().iter().any(is_suspected)) {
            self.leases.isolate(twin);
        }
    }

    /// Returns all leases with their workers.
    pub fn all_leases(&self) -> impl Iterator<Item = (WorkerId, LeaseId)> {
        self.leases.iter().map(|(id, lease)| (lease.worker(), id))
    }

    /// Returns the leases of a worker, each with its unreported instances.
    pub fn unreported_of(&self, worker: WorkerId) -> impl Iterator<Item = (LeaseId, &BTreeSet<InstanceId>)> {
        let leases = self.leases.iter().filter(move |(_, lease)| lease.worker() == worker);
        leases.map(|(id, lease)| (id, lease.open()))
    }

    /// Returns the workers that have leases or hold regions.
    pub fn workers(&self) -> impl Iterator<Item = WorkerId> {
        self.leases.workers().chain(self.regions.holding_workers())
    }

    /// Counts the parents of an instance that are not done.
    pub(super) fn unfinished_parents(&self, instance: InstanceId) -> usize {
        let parents = self.plan.instances.at(instance).parents.iter();
        parents.filter(|parent| self.instances.state(**parent) != InstanceState::Done).count()
    }

    /// Moves open instances without a lease into buckets of their own, one for each bucket they are in, unless they
    /// are all that is open of it. Each suspect gets a bucket of its own.
    pub(super) fn split_off(&mut self, instances: &BTreeSet<InstanceId>) {
        let mut by_bucket: BTreeMap<BucketId, BTreeSet<InstanceId>> = BTreeMap::new();
        for id in instances {
            by_bucket.entry(self.instances.bucket_of(*id)).or_default().insert(*id);
        }
        for (bucket, instances) in by_bucket {
            let is_whole = *self.instances.bucket(bucket).open() == instances;
            let bucket = if is_whole { bucket } else { self.regroup(instances) };
            self.queue_if_ready(bucket);
        }
        self.isolate_or_fail(instances);
    }

    /// Moves open instances of one stage from their buckets into a new one. Leaves the queue as it is.
    pub(super) fn regroup(&mut self, instances: BTreeSet<InstanceId>) -> BucketId {
        let old = instances.last().map(|last| self.instances.bucket_of(*last));
        let pixels = old.map_or(0, |old| self.plan.buckets[old.index()].pixels);
        self.plan.buckets.push(BucketPlan { instances: instances.iter().copied().collect(), pixels });
        let new = self.instances.regroup(instances, self.now);
        let planned = self.plan.buckets.len();
        assert!(new.index() + 1 == planned, "{new} is the last bucket, and {planned} are planned");
        new
    }
}
