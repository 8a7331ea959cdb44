//! Reattach: restores the regions and leases of workers that served an earlier manager, or this one before they were
//! disconnected.

use super::Study;
use super::state::{InstanceState, Lease};
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
            if !self.regions.add_holder(worker, *key) {
                needless.push(*key);
            }
        }
        // Later instances first, since their inputs are not needed then.
        for producer in self.producers_of(keys).into_iter().rev() {
            if self.is_stored(producer) {
                self.finish_unexecuted(producer);
            }
        }
        needless
    }

    /// Returns the instances whose outputs these regions are.
    pub(crate) fn producers_of(&self, keys: &[RegionKey]) -> BTreeSet<InstanceId> {
        keys.iter().filter_map(|key| self.regions.producer(*key)).collect()
    }

    /// Returns whether all outputs of an instance without a lease are stored.
    fn is_stored(&self, instance: InstanceId) -> bool {
        let waits = self.instances.state(instance).is_unstarted();
        let mut outputs = self.plan.instances.at(instance).outputs.iter();
        let there = |key: RegionKey| !self.regions.is_used(key) || self.regions.is_stored(key);
        waits && outputs.all(|output| !output.reported && (!output.stored || there(output.key)))
    }

    /// Marks a waiting instance as done, and then its ancestors without open readers.
    fn finish_unexecuted(&mut self, instance: InstanceId) {
        let mut waiting = vec![instance];
        while let Some(id) = waiting.pop() {
            let bucket = self.instances.bucket_of(id);
            self.unqueue(bucket);
            self.instances.finish(id);
            self.queue_if_ready(bucket);
            self.propagate_finish(id);
            let parents = self.plan.instances.at(id).parents.iter().copied();
            waiting.extend(parents.filter(|parent| self.is_needless(*parent)));
        }
    }

    fn is_needless(&self, instance: InstanceId) -> bool {
        let waits = self.instances.state(instance).is_unstarted();
        let mut children = self.instances.children(instance).iter();
        let silent = self.plan.instances.at(instance).outputs.iter().all(|output| !output.reported);
        waits && silent && children.all(|child| self.instances.state(*child).is_final())
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
        // The leases of a worker end with its connection, so this one belongs to another worker or is a repetition.
        if self.leases.get(lease).is_some() {
            return BTreeSet::new();
        }
        // Before the check below, which excludes suspects.
        self.retract_crash(instances);
        let is_free = |id: &InstanceId| {
            // The message may name unknown instances.
            let is_unstarted = self.instances.find_state(*id).is_some_and(InstanceState::is_unstarted);
            is_unstarted && !self.failures.is_suspected(*id)
        };
        let mut open: BTreeSet<InstanceId> = instances.iter().copied().filter(is_free).collect();
        let stage = open.first().map(|first| self.plan.instances.at(*first).stage);
        // A message may mix stages. A bucket must not.
        open.retain(|id| Some(self.plan.instances.at(*id).stage) == stage);
        if open.is_empty() {
            return BTreeSet::new();
        }
        let buckets: BTreeSet<_> = open.iter().map(|id| self.instances.bucket_of(*id)).collect();
        buckets.iter().for_each(|bucket| _ = self.unqueue(*bucket));
        let bucket = self.regroup(open);
        let open = self.instances.lease_running(bucket, lease);
        // After the instances have left their buckets: what stays there may be ready now.
        buckets.into_iter().for_each(|bucket| self.queue_if_ready(bucket));
        // Without locations: those sent with the original grant are unknown.
        self.leases.grant(lease, Lease::new(worker, open.clone(), Vec::new(), now));
        open
    }

    /// Returns the worker and the open instances of a lease. `None` if the lease does not exist.
    #[must_use]
    pub fn leased(&self, lease: LeaseId) -> Option<(WorkerId, &BTreeSet<InstanceId>)> {
        self.leases.get(lease).map(|lease| (lease.worker(), lease.open()))
    }
}
