//! Workers that go take with them what only they held. What somebody will still read of it is computed again, and what
//! that reads is, if it is gone as well: as far back as needed and no further.
//!
//! A worker holds what it has stored, and what it has read of others' while it finished an instance; all until it is let
//! go of. Instances that are to be executed again go into buckets of their own, so that a bucket is always granted as a
//! whole.

use super::{Effect, State, Study};
use crate::message::{RemoteRegion, TaskFailure};
use crate::{BucketId, InstanceId, LeaseId, WorkerId};
use pleach_regions::RegionKey;
use std::collections::{BTreeMap, BTreeSet};

/// How often an instance may lack what it reads: each time it was computed, and could not be fetched.
const MAX_LACKED: u32 = 10;

impl Study {
    /// Notes what a worker holds that has just finished an instance.
    pub(super) fn note_holder(&mut self, worker: WorkerId, instance: InstanceId) {
        for key in self.plan.instances[instance.index()].used() {
            if self.users.contains_key(&key) && self.producers.contains_key(&key) {
                self.holders.entry(key).or_default().insert(worker);
            }
        }
    }

    /// What others read of an instance is in a tier that all workers share: it is not lost with any of them.
    pub fn note_shared(&mut self, instance: InstanceId, keys: &[RegionKey]) {
        for key in keys {
            if self.users.contains_key(key) && self.producers.get(key) == Some(&instance) {
                self.holders.entry(*key).or_default().insert(WorkerId::SHARED);
            }
        }
    }

    /// A worker has fetched a region from another one.
    pub fn note_copy(&mut self, worker: WorkerId, key: RegionKey) {
        if self.users.contains_key(&key)
            && let Some(holders) = self.holders.get_mut(&key)
        {
            holders.insert(worker);
        }
    }

    /// Whether a region that an instance has stored, and somebody will read, is with this worker at most.
    #[must_use]
    pub fn is_single(&self, key: RegionKey, instance: InstanceId, worker: WorkerId) -> bool {
        let is_its = self.users.contains_key(&key) && self.producers.get(&key) == Some(&instance);
        let others = |holders: &BTreeSet<WorkerId>| holders.iter().any(|holder| *holder != worker);
        is_its && !self.holders.get(&key).is_some_and(others)
    }

    /// A worker has a second copy of a region whose instance has yet to be reported.
    pub fn note_replica(&mut self, worker: WorkerId, key: RegionKey) {
        if self.users.contains_key(&key) && self.producers.contains_key(&key) {
            self.holders.entry(key).or_default().insert(worker);
        }
    }

    /// A worker has let go of a region. Returns whether it counted as a holder.
    pub fn handle_dropped(&mut self, worker: WorkerId, key: RegionKey) -> bool {
        let Some(holders) = self.holders.get_mut(&key) else { return false };
        let counted = holders.remove(&worker);
        if holders.is_empty() {
            self.holders.remove(&key);
            self.reopen_producers(&[key]);
        }
        counted
    }

    /// Regions that somebody will read and only this worker holds.
    #[must_use]
    pub fn sole_copies(&self, worker: WorkerId) -> Vec<RegionKey> {
        let alone =
            self.holders.iter().filter(|(_, holders)| holders.len() == 1 && holders.contains(&worker));
        let mut keys: Vec<RegionKey> = alone.map(|(key, _)| *key).collect();
        keys.sort_unstable();
        keys
    }

    /// Nothing of the study is wanted any more: gives the regions that workers hold.
    pub fn cancel(&mut self) -> Vec<RegionKey> {
        let mut keys: Vec<RegionKey> = std::mem::take(&mut self.holders).into_keys().collect();
        keys.sort_unstable();
        keys
    }

    /// An instance that a worker was granted lacks regions that were to be had from others. Those it was told of count as
    /// holding them no more: they cannot give them. The instance is granted again where others have got them since, or when
    /// they are there again, or fails when that has happened too often. Returns whether the report counted.
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

    /// None of those that somebody was told of can give a region; whether that makes it one that is lost.
    fn cannot_be_had(&mut self, key: RegionKey, told: &[RemoteRegion]) -> bool {
        let told = told.iter().find(|told| told.key == key);
        let Some(holders) = self.holders.get_mut(&key) else { return false };
        match told {
            Some(told) => holders.retain(|holder| match *holder {
                WorkerId::SHARED => !told.shared,
                holder => !told.workers.contains(&holder),
            }),
            // It had it itself, or nobody knows any more what it was told.
            None => holders.clear(),
        }
        let is_lost = holders.is_empty();
        if is_lost {
            self.holders.remove(&key);
        }
        is_lost
    }

    /// Of instances that were taken back or reopened, those fail whose parents have failed since they were granted.
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

    /// Reopens what has stored a region that only this worker held and somebody will read.
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

    /// An instance that was done is to be executed again. Returns those whose outputs it reads and nobody holds.
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
                // One that is reopened as well is counted with its bucket; one that is granted may have what it reads.
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
