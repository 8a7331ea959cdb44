//! Loss of workers: recomputes referenced sole copies that were lost, and their lost inputs, as far back as needed and no
//! further.
//!
//! A worker holds the regions that it has stored, and those of other workers that it has read for a finished instance, until
//! they are released. Reopened instances go into buckets of their own, so that a bucket is always granted as a
//! whole.

use super::{Effect, State, Study};
use crate::message::{RemoteRegion, TaskFailure};
use crate::{BucketId, InstanceId, LeaseId, WorkerId};
use pleach_regions::RegionKey;
use std::collections::{BTreeMap, BTreeSet};

/// Maximum of missing-input reports of an instance: each time its input was computed and could not be fetched.
const MAX_LACKED: u32 = 10;

impl Study {
    /// Records the regions that a worker holds after it has finished an instance.
    pub(super) fn note_holder(&mut self, worker: WorkerId, instance: InstanceId) {
        for key in self.plan.instances[instance.index()].used() {
            if self.users.contains_key(&key) && self.producers.contains_key(&key) {
                self.holders.entry(key).or_default().insert(worker);
            }
        }
    }

    /// Records outputs of an instance in a tier shared by all workers: they are not lost with any worker.
    pub fn note_shared(&mut self, instance: InstanceId, keys: &[RegionKey]) {
        for key in keys {
            if self.users.contains_key(key) && self.producers.get(key) == Some(&instance) {
                self.holders.entry(*key).or_default().insert(WorkerId::SHARED);
            }
        }
    }

    /// Records that a worker has fetched a region from a peer.
    pub fn note_copy(&mut self, worker: WorkerId, key: RegionKey) {
        if self.users.contains_key(&key)
            && let Some(holders) = self.holders.get_mut(&key)
        {
            holders.insert(worker);
        }
    }

    /// Returns whether a referenced output of an instance has no holder besides this worker.
    #[must_use]
    pub fn is_single(&self, key: RegionKey, instance: InstanceId, worker: WorkerId) -> bool {
        let is_its = self.users.contains_key(&key) && self.producers.get(&key) == Some(&instance);
        let others = |holders: &BTreeSet<WorkerId>| holders.iter().any(|holder| *holder != worker);
        is_its && !self.holders.get(&key).is_some_and(others)
    }

    /// Records a replica of a region whose instance has yet to be reported.
    pub fn note_replica(&mut self, worker: WorkerId, key: RegionKey) {
        if self.users.contains_key(&key) && self.producers.contains_key(&key) {
            self.holders.entry(key).or_default().insert(worker);
        }
    }

    /// Records that a worker has dropped a region. Returns whether it counted as a holder.
    pub fn handle_dropped(&mut self, worker: WorkerId, key: RegionKey) -> bool {
        let Some(holders) = self.holders.get_mut(&key) else { return false };
        let counted = holders.remove(&worker);
        if holders.is_empty() {
            self.holders.remove(&key);
            self.reopen_producers(&[key]);
        }
        counted
    }

    /// Returns the referenced regions whose sole copy is on this worker, ascending.
    #[must_use]
    pub fn sole_copies(&self, worker: WorkerId) -> Vec<RegionKey> {
        let alone =
            self.holders.iter().filter(|(_, holders)| holders.len() == 1 && holders.contains(&worker));
        let mut keys: Vec<RegionKey> = alone.map(|(key, _)| *key).collect();
        keys.sort_unstable();
        keys
    }

    /// Cancels the study. Returns the regions that workers hold, ascending.
    pub fn cancel(&mut self) -> Vec<RegionKey> {
        let mut keys: Vec<RegionKey> = std::mem::take(&mut self.holders).into_keys().collect();
        keys.sort_unstable();
        keys
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
        let Some(granted) = self.leases.get_mut(&lease).filter(|granted| granted.worker == worker) else {
            return false;
        };
        if !granted.open.remove(&instance) {
            return false;
        }
        let (twin, told) = (granted.twin, granted.told.clone());
        if granted.open.is_empty() {
            self.remove_lease(lease);
        }
        let back = self.take_all_back(BTreeSet::from([instance]), twin);
        let inputs = self.plan.instances[instance.index()].inputs.clone();
        let lost: Vec<RegionKey> =
            inputs.into_iter().filter(|key| keys.contains(key) && self.cannot_be_had(*key, &told)).collect();
        self.reopen_producers(&lost);
        self.fail_orphans(&back);
        let lacked = self.lacked.entry(instance).or_default();
        *lacked += 1;
        let waits = matches!(self.instances[instance.index()].state, State::Ready | State::Waiting(_));
        if *lacked >= MAX_LACKED && waits {
            let cause = format!("what it reads could not be had from other workers, {lacked} times");
            self.fail(instance, instance, &TaskFailure { at: "input".to_owned(), cause });
        }
        true
    }

    /// Removes the holders of a region that were named to a worker. Returns whether the region is lost then.
    fn cannot_be_had(&mut self, key: RegionKey, told: &[RemoteRegion]) -> bool {
        let told = told.iter().find(|told| told.key == key);
        let Some(holders) = self.holders.get_mut(&key) else { return false };
        match told {
            Some(told) => holders.retain(|holder| match *holder {
                WorkerId::SHARED => !told.shared,
                holder => !told.workers.contains(&holder),
            }),
            // The worker held it itself, or the sent locations are unknown after a reattach.
            None => holders.clear(),
        }
        let is_lost = holders.is_empty();
        if is_lost {
            self.holders.remove(&key);
        }
        is_lost
    }

    /// Fails those of returned or reopened instances whose parents have failed since they were granted.
    pub(super) fn fail_orphans(&mut self, instances: &[InstanceId]) {
        for &instance in instances {
            let parents = &self.plan.instances[instance.index()].parents;
            let failed = parents.iter().find(|parent| self.instances[parent.index()].state == State::Failed);
            let Some((origin, cause)) = failed.and_then(|parent| self.causes.get(parent)).cloned() else {
                continue;
            };
            if !self.instances[instance.index()].state.is_final() {
                self.fail(instance, origin, &cause);
            }
        }
    }

    /// Reopens the producers of referenced regions whose sole copy was on this worker.
    pub(super) fn reopen_lost(&mut self, worker: WorkerId) {
        let mut lost = Vec::new();
        self.holders.retain(|key, holders| {
            if holders.remove(&worker) && holders.is_empty() {
                lost.push(*key);
            }
            !holders.is_empty()
        });
        self.reopen_producers(&lost);
    }

    fn reopen_producers(&mut self, lost: &[RegionKey]) {
        let mut reopened: BTreeMap<BucketId, BTreeSet<InstanceId>> = BTreeMap::new();
        let mut waiting: Vec<InstanceId> =
            lost.iter().filter_map(|key| self.producers.get(key)).copied().collect();
        waiting.sort_unstable();
        while let Some(instance) = waiting.pop() {
            if self.instances[instance.index()].state != State::Done {
                continue;
            }
            waiting.extend(self.reopen(instance));
            reopened.entry(self.instances[instance.index()].bucket).or_default().insert(instance);
        }
        let mut all: Vec<InstanceId> = reopened.values().flatten().copied().collect();
        all.sort_unstable();
        self.effects.extend(all.iter().copied().map(Effect::Reopened));
        for (bucket, instances) in reopened {
            self.unqueue(bucket);
            instances.iter().for_each(|instance| {
                self.buckets[bucket.index()].open.insert(*instance);
                self.requeue(*instance);
            });
            self.apart(&instances);
            self.queue_if_ready(bucket);
        }
        self.fail_orphans(&all);
    }

    /// Marks a done instance as waiting again. Returns the producers of its inputs without a holder.
    fn reopen(&mut self, instance: InstanceId) -> Vec<InstanceId> {
        self.instances[instance.index()].state = State::Waiting(0);
        self.unfinished += 1;
        for child in self.instances[instance.index()].children.clone() {
            let bucket = self.instances[child.index()].bucket;
            match &mut self.instances[child.index()].state {
                State::Waiting(parents) if *parents > 0 => *parents += 1,
                state @ State::Ready => {
                    *state = State::Waiting(1);
                    self.buckets[bucket.index()].waiting += 1;
                    self.unqueue(bucket);
                }
                // A reopened child is counted with its bucket. A leased child may have its inputs.
                State::Waiting(_) | State::Leased(_) | State::Done | State::Failed => {}
            }
        }
        let keys: Vec<RegionKey> = self.plan.instances[instance.index()].used();
        keys.iter().for_each(|key| *self.users.entry(*key).or_default() += 1);
        let gone = keys.iter().filter(|key| !self.holders.contains_key(key));
        gone.filter_map(|key| self.producers.get(key))
            .copied()
            .filter(|producer| *producer != instance)
            .collect()
    }
}
