//! Reattach: restores the regions and leases of workers that served an earlier manager, or this one before they were
//! disconnected.

use super::{Lease, State, Study};
use crate::{InstanceId, LeaseId, WorkerId};
use pleach_regions::RegionKey;
use std::collections::BTreeSet;
use std::time::Duration;

impl Study {
    /// Records regions that a worker holds. Their producers need not be executed again, nor ancestors that only
    /// the producers would read from. Returns the regions without a further reader.
    pub fn handle_reported_regions(&mut self, worker: WorkerId, keys: &[RegionKey]) -> Vec<RegionKey> {
        let mut needless = Vec::new();
        for key in keys {
            match self.producers.get(key) {
                Some(_) if self.users.contains_key(key) => {
                    self.holders.entry(*key).or_default().insert(worker);
                }
                _ => needless.push(*key),
            }
        }
        // Later instances first, since their inputs are not needed then.
        let mut producers: Vec<InstanceId> =
            keys.iter().filter_map(|key| self.producers.get(key)).copied().collect();
        producers.sort_unstable();
        producers.dedup();
        for producer in producers.into_iter().rev() {
            if self.is_stored(producer) {
                self.finish_unexecuted(producer);
            }
        }
        needless
    }

    /// Returns whether all outputs of an instance without a lease are stored.
    fn is_stored(&self, instance: InstanceId) -> bool {
        let waits = matches!(self.instances[instance.index()].state, State::Ready | State::Waiting(_));
        let mut outputs = self.plan.instances[instance.index()].outputs.iter();
        let there = |key: &RegionKey| !self.users.contains_key(key) || self.holders.contains_key(key);
        waits && outputs.all(|output| !output.reported && (!output.stored || there(&output.key)))
    }

    /// Marks a waiting instance as done, and then its ancestors without open readers.
    fn finish_unexecuted(&mut self, instance: InstanceId) {
        let mut waiting = vec![instance];
        while let Some(id) = waiting.pop() {
            let bucket = self.instances[id.index()].bucket;
            self.unqueue(bucket);
            if matches!(self.instances[id.index()].state, State::Waiting(_)) {
                self.buckets[bucket.index()].waiting -= 1;
            }
            self.buckets[bucket.index()].open.remove(&id);
            self.queue_if_ready(bucket);
            self.end(id);
            let parents = self.plan.instances[id.index()].parents.clone();
            waiting.extend(parents.into_iter().filter(|parent| self.is_needless(*parent)));
        }
    }

    fn is_needless(&self, instance: InstanceId) -> bool {
        let run = &self.instances[instance.index()];
        let waits = matches!(run.state, State::Ready | State::Waiting(_));
        let silent = self.plan.instances[instance.index()].outputs.iter().all(|output| !output.reported);
        waits && silent && run.children.iter().all(|child| self.instances[child.index()].state.is_final())
    }

    /// Restores a lease that this manager does not know. Instances without another lease are leased to the worker, except
    /// suspects, and returned. The worker must abandon the others.
    pub fn handle_reattached_lease(
        &mut self,
        worker: WorkerId,
        lease: LeaseId,
        instances: &[InstanceId],
        now: Duration,
    ) -> BTreeSet<InstanceId> {
        if self.leases.contains_key(&lease) {
            return BTreeSet::new();
        }
        self.retract_crash(instances);
        let is_free = |id: &InstanceId| {
            let state = self.instances.get(id.index()).map(|instance| instance.state);
            matches!(state, Some(State::Ready | State::Waiting(_))) && !self.is_suspected(*id)
        };
        let mut open: BTreeSet<InstanceId> = instances.iter().copied().filter(is_free).collect();
        let stage = open.first().map(|first| self.plan.instances[first.index()].stage);
        open.retain(|id| Some(self.plan.instances[id.index()].stage) == stage);
        if open.is_empty() {
            return BTreeSet::new();
        }
        let buckets: BTreeSet<_> = open.iter().map(|id| self.instances[id.index()].bucket).collect();
        buckets.iter().for_each(|bucket| _ = self.unqueue(*bucket));
        let bucket = self.regroup(open.clone());
        self.buckets[bucket.index()].waiting = 0;
        open.iter().for_each(|id| self.instances[id.index()].state = State::Leased(lease));
        buckets.into_iter().for_each(|bucket| self.queue_if_ready(bucket));
        self.add_lease(
            lease,
            Lease {
                worker,
                open: open.clone(),
                told: Vec::new(),
                since: now,
                waited: Duration::ZERO,
                asked_back: false,
                twin: None,
            },
        );
        open
    }

    /// Returns the worker and the open instances of a lease. `None` if the lease does not exist.
    #[must_use]
    pub fn leased(&self, lease: LeaseId) -> Option<(WorkerId, &BTreeSet<InstanceId>)> {
        self.leases.get(&lease).map(|lease| (lease.worker, &lease.open))
    }
}
