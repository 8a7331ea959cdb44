//! Workers that go take with them what only they held. What somebody will still read of it is computed again, and what
//! that reads is, if it is gone as well: as far back as needed and no further.
//!
//! A worker holds what it has stored, and what it has read of others' while it finished an instance; all until it is let
//! go of. Instances that are to be executed again go into buckets of their own, so that a bucket is always granted as a
//! whole.

use super::{Bucket, Effect, Manager, State};
use crate::plan::BucketPlan;
use crate::{BucketId, InstanceId, LeaseId, WorkerId};
use pleach_regions::RegionKey;
use std::collections::{BTreeMap, BTreeSet};

impl Manager {
    /// Notes what a worker holds that has just finished an instance.
    pub(super) fn note_holder(&mut self, worker: WorkerId, instance: InstanceId) {
        for key in self.plan.instances[instance.index()].used() {
            if self.users.contains_key(&key) && self.producers.contains_key(&key) {
                self.holders.entry(key).or_default().insert(worker);
            }
        }
    }

    /// An instance that a worker was granted lacks a region that was to be had from others: they are gone. It is granted
    /// again when the region is there. Returns whether the report counted.
    pub fn handle_lacking(&mut self, worker: WorkerId, lease: LeaseId, instance: InstanceId) -> bool {
        if !self.close(worker, lease, instance) {
            return false;
        }
        let bucket = self.instances[instance.index()].bucket;
        self.buckets[bucket.index()].open.insert(instance);
        self.take_back(instance);
        let bucket = self.split(bucket, BTreeSet::from([instance]));
        self.queue_if_ready(bucket);
        self.fail_orphans(&[instance]);
        self.assign();
        true
    }

    /// An instance that nobody is granted any more: what it waits for is counted anew.
    pub(super) fn take_back(&mut self, instance: InstanceId) {
        let parents = self.plan.instances[instance.index()].parents.iter();
        let open = parents.filter(|parent| self.instances[parent.index()].state != State::Done).count();
        let run = &mut self.instances[instance.index()];
        run.state = if open == 0 { State::Ready } else { State::Waiting(open) };
        if open > 0 {
            self.buckets[run.bucket.index()].waiting += 1;
        }
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

    /// Reopens what has stored a region that nobody holds any more and somebody will read; returns that, in order.
    pub(super) fn lose(&mut self, worker: WorkerId) -> Vec<InstanceId> {
        let mut lost = Vec::new();
        self.holders.retain(|key, holders| {
            if holders.remove(&worker) && holders.is_empty() {
                lost.push(*key);
            }
            !holders.is_empty()
        });
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
            instances.iter().for_each(|instance| {
                self.buckets[bucket.index()].open.insert(*instance);
                self.take_back(*instance);
            });
            let bucket = self.split(bucket, instances);
            self.queue_if_ready(bucket);
        }
        all
    }

    /// An instance that was done is to be executed again. Returns those whose outputs it reads and nobody holds.
    fn reopen(&mut self, instance: InstanceId) -> Vec<InstanceId> {
        self.instances[instance.index()].state = State::Waiting(0);
        self.unfinished += 1;
        for child in self.instances[instance.index()].children.clone() {
            let Bucket { waiting, .. } = &mut self.buckets[self.instances[child.index()].bucket.index()];
            match &mut self.instances[child.index()].state {
                State::Waiting(parents) if *parents > 0 => *parents += 1,
                state @ State::Ready => {
                    *state = State::Waiting(1);
                    *waiting += 1;
                    let rank = self.rank(self.instances[child.index()].bucket);
                    self.ready.remove(&rank);
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

    /// Takes open instances, none of them granted, out of their bucket into a new one, unless they are all of it.
    fn split(&mut self, bucket: BucketId, instances: BTreeSet<InstanceId>) -> BucketId {
        if self.buckets[bucket.index()].open == instances {
            return bucket;
        }
        let new = BucketId(self.buckets.len() as u32);
        let is_waiting = |id: &InstanceId| matches!(self.instances[id.index()].state, State::Waiting(_));
        let waiting = instances.iter().filter(|id| is_waiting(id)).count();
        let old = &mut self.buckets[bucket.index()];
        old.open.retain(|id| !instances.contains(id));
        old.waiting -= waiting;
        instances.iter().for_each(|id| self.instances[id.index()].bucket = new);
        let pixels = self.plan.buckets[bucket.index()].pixels;
        self.plan.buckets.push(BucketPlan { instances: instances.iter().copied().collect(), pixels });
        self.buckets.push(Bucket { open: instances, waiting });
        new
    }
}
