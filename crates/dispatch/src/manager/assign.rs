//! Which worker gets which bucket: requests, and ready buckets for those who made them.

use super::{Effect, Lease, Manager, Rank, State};
use crate::message::{BucketWork, Elsewhere, InstanceWork};
use crate::{BucketId, InstanceId, LeaseId, WorkerId};
use pleach_regions::RegionKey;
use std::cmp::Reverse;
use std::collections::BTreeSet;

impl Manager {
    /// A worker asks for `buckets` more; with `after`, for one of a later stage than that, which takes the place of an
    /// earlier such request. Unknown workers are ignored: they have left.
    pub fn handle_request(&mut self, worker: WorkerId, buckets: u32, after: Option<u32>) {
        let Some(member) = self.members.get_mut(&worker).filter(|_| buckets > 0) else { return };
        match after {
            Some(stage) => {
                if std::mem::replace(&mut member.wants_later, true) {
                    self.queue.leave_after(worker);
                }
                self.queue.push_after(worker, stage as usize);
            }
            None => {
                if member.wanted == 0 {
                    self.queue.push(worker);
                }
                member.wanted = member.wanted.saturating_add(buckets);
            }
        }
        self.assign();
    }

    pub(super) fn rank(&self, bucket: BucketId) -> Rank {
        let first = self.plan.buckets[bucket.index()].instances[0];
        (Reverse(self.plan.instances[first.index()].stage), bucket)
    }

    /// Queues a bucket when something of it is open and nothing of that waits or is granted.
    pub(super) fn queue_if_ready(&mut self, bucket: BucketId) {
        let open = &self.buckets[bucket.index()];
        let is_ready = |id: &InstanceId| self.instances[id.index()].state == State::Ready;
        if open.waiting == 0 && open.open.first().is_some_and(is_ready) {
            let rank = self.rank(bucket);
            self.ready.insert(rank);
        }
    }

    /// Gives ready buckets to workers that asked, one each in turn. The first one is of the latest stage: whom it does
    /// not suit, none does.
    pub(super) fn assign(&mut self) {
        while let Some(&(stage, bucket)) = self.ready.first().filter(|_| !self.stopping) {
            let Some((worker, any)) = self.queue.pop(stage.0) else { return };
            let Some(member) = self.members.get_mut(&worker) else { continue };
            self.ready.pop_first();
            let lease = LeaseId(self.next_lease);
            self.next_lease += 1;
            if any {
                member.wanted -= 1;
            } else {
                member.wants_later = false;
            }
            member.leases.insert(lease);
            if any && member.wanted > 0 {
                self.queue.push(worker);
            }
            let open = self.buckets[bucket.index()].open.clone();
            for id in &open {
                self.instances[id.index()].state = State::Leased(lease);
            }
            let work = self.work(bucket, &open, worker);
            self.leases.insert(lease, Lease { worker, open });
            self.effects.push_back(Effect::Assign { worker, lease, work, later: !any });
        }
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
        let elsewhere =
            elsewhere.map(|(key, holders)| Elsewhere { key, workers: holders.iter().copied().collect() });
        let elsewhere = elsewhere.collect();
        let pixels = self.plan.buckets[bucket.index()].pixels;
        let drain = self.plan.needs.drains.get(stage as usize).copied().unwrap_or_default();
        BucketWork { bucket, stage, pixels, drain, sharing: self.plan.sharing, instances, elsewhere }
    }

    /// Whether some reader of an instance waits for others as well.
    fn stays(&self, id: InstanceId) -> bool {
        let waits = |other: &InstanceId| *other != id && self.instances[other.index()].state != State::Done;
        let children = self.instances[id.index()].children.iter();
        children.flat_map(|child| &self.plan.instances[child.index()].parents).any(waits)
    }
}
