//! Loss of workers: recomputes referenced sole copies that were lost, and their lost inputs, as far back as needed and no
//! further.
//!
//! A worker holds the regions that it has stored, and those of other workers that it has read for a finished instance, until
//! they are released. Reopened instances go into buckets of their own, so that a bucket is always granted as a
//! whole.

use super::state::{InstanceState, Lease};
use super::{Effect, Study};
use crate::{BucketId, InstanceId, LeaseId, WorkerId};
use pleach_regions::RegionKey;
use std::collections::{BTreeMap, BTreeSet};

impl Study {
    /// Records the regions that a worker holds after it has finished an instance.
    pub(super) fn add_holder(&mut self, worker: WorkerId, instance: InstanceId) {
        for key in self.plan.instances.at(instance).used() {
            self.regions.add_holder(worker, key);
        }
    }

    /// Records outputs of an instance in a tier shared by all workers: they are not lost with any worker.
    pub fn note_shared(&mut self, instance: InstanceId, keys: &[RegionKey]) {
        for &key in keys {
            if self.regions.is_output(key, instance) {
                self.regions.add_holder(WorkerId::SHARED, key);
            }
        }
    }

    /// Records that a worker has fetched a region from a peer.
    pub fn note_copy(&mut self, worker: WorkerId, key: RegionKey) {
        self.regions.add_copy(worker, key);
    }

    /// Returns whether a referenced output of an instance has no holder besides this worker.
    #[must_use]
    pub fn is_single(&self, key: RegionKey, instance: InstanceId, worker: WorkerId) -> bool {
        self.regions.is_output(key, instance) && !self.regions.is_stored_elsewhere(key, worker)
    }

    /// Records a replica of a region whose instance has yet to be reported.
    pub fn note_replica(&mut self, worker: WorkerId, key: RegionKey) {
        self.regions.add_holder(worker, key);
    }

    /// Records that a worker has dropped a region. Returns whether it counted as a holder.
    pub fn handle_dropped(&mut self, worker: WorkerId, key: RegionKey) -> bool {
        let counted = self.regions.remove_holder(worker, key);
        if counted && !self.regions.is_stored(key) {
            self.reopen_producers(&[key]);
        }
        counted
    }

    /// Returns the referenced regions whose sole copy is on this worker, ascending.
    #[must_use]
    pub fn sole_copies(&self, worker: WorkerId) -> Vec<RegionKey> {
        self.regions.sole_copies(worker)
    }

    /// Cancels the study. Returns the regions that workers hold, ascending.
    pub fn cancel(&mut self) -> Vec<RegionKey> {
        self.regions.remove_holders()
    }

    /// Handles a leased instance whose inputs could not be fetched from peers. The peers named to the worker no
    /// longer count as holders. The instance is granted again if other workers hold the inputs by now, or once
    /// they have been recomputed. It fails if that has happened too often. Returns whether the report counted.
    pub fn handle_missing_input(
        &mut self,
        worker: WorkerId,
        lease: LeaseId,
        instance: InstanceId,
        keys: &[RegionKey],
    ) -> bool {
        // Before the lease ends, and the sent locations with it.
        let sent = self.leases.of(worker, lease).map(Lease::sent_locations).unwrap_or_default().to_vec();
        let Some(returned) = self.leases.take_back(worker, lease, &[instance]) else { return false };
        if returned.instances.is_empty() {
            return false;
        }
        self.clocks.exclude(worker, lease);
        self.free_slot(worker, lease);
        let back = self.reclaim(returned);
        let mut lost = self.plan.instances.at(instance).inputs.to_vec();
        lost.retain(|key| {
            let sent = sent.iter().find(|sent| sent.key == *key);
            keys.contains(key) && self.regions.remove_sent_holders(*key, sent)
        });
        self.reopen_producers(&lost);
        self.fail_orphans(&back);
        let limit = self.failures.record_missing_input(instance);
        if let Some(cause) = limit.filter(|_| self.instances.state(instance).is_unstarted()) {
            self.fail(instance, instance, &cause);
        }
        true
    }

    /// Fails those of returned or reopened instances whose parents have failed since they were granted.
    pub(super) fn fail_orphans(&mut self, instances: &[InstanceId]) {
        for &instance in instances {
            let mut parents = self.plan.instances.at(instance).parents.iter();
            let failed = parents.find(|parent| self.instances.state(**parent) == InstanceState::Failed);
            let Some((origin, cause)) = failed.and_then(|parent| self.failures.cause(*parent)).cloned()
            else {
                continue;
            };
            if !self.instances.state(instance).is_final() {
                self.fail(instance, origin, &cause);
            }
        }
    }

    /// Reopens the producers of referenced regions whose sole copy was on this worker.
    pub(super) fn reopen_lost(&mut self, worker: WorkerId) {
        let lost = self.regions.remove_worker(worker);
        self.reopen_producers(&lost);
    }

    fn reopen_producers(&mut self, lost: &[RegionKey]) {
        let mut reopened: BTreeMap<BucketId, BTreeSet<InstanceId>> = BTreeMap::new();
        let mut waiting: Vec<InstanceId> =
            lost.iter().filter_map(|key| self.regions.producer(*key)).collect();
        // The order of lost regions may be that of a hash map, and a replay must repeat each step.
        waiting.sort_unstable();
        while let Some(instance) = waiting.pop() {
            if self.instances.state(instance) != InstanceState::Done {
                continue;
            }
            waiting.extend(self.reopen(instance));
            reopened.entry(self.instances.bucket_of(instance)).or_default().insert(instance);
        }
        let mut all: Vec<InstanceId> = reopened.values().flatten().copied().collect();
        all.sort_unstable();
        self.effects.extend(all.iter().copied().map(Effect::Reopened));
        // All return to their buckets before any is queued or moved, so that no instance is reopened and not open.
        for (bucket, instances) in &reopened {
            self.unqueue(*bucket);
            for &instance in instances {
                self.instances.readmit(instance, self.unfinished_parents(instance));
            }
        }
        for (bucket, instances) in reopened {
            self.split_off(&instances);
            // The others, if the reopened ones have left.
            self.queue_if_ready(bucket);
        }
        self.fail_orphans(&all);
    }

    /// Reopens a done instance. Returns the producers of its inputs without a holder.
    fn reopen(&mut self, instance: InstanceId) -> Vec<InstanceId> {
        self.instances.reopen(instance);
        for child in self.instances.children(instance).to_vec() {
            // A bucket with a waiting instance cannot be granted.
            if let Some(bucket) = self.instances.reopen_parent(child) {
                self.unqueue(bucket);
            }
        }
        let keys: Vec<RegionKey> = self.plan.instances.at(instance).used();
        self.regions.add_user(&keys);
        let gone = keys.into_iter().filter(|key| !self.regions.is_stored(*key));
        gone.filter_map(|key| self.regions.producer(key)).filter(|producer| *producer != instance).collect()
    }
}
