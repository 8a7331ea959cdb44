//! Open instances of a worker's leases: not executed yet, or reported and perhaps not on the manager's disk.
//!
//! A worker sends them to the manager when it reattaches. Bucket and lease end at different times: the bucket with the
//! last report, the lease with the acknowledgment of that report.
//!
//! Invariants:
//! - Every lease has an open instance. Its last instance takes the lease with it, so a reattaching worker claims no
//!   lease without work.
//! - Without a remote manager no lease is recorded.

use pleach_dispatch::{InstanceId, LeaseId, PlanId};
use std::collections::{BTreeMap, BTreeSet};

/// Leases with open instances.
pub(crate) struct OpenLeases {
    /// The worker may reattach.
    is_recorded: bool,
    leases: BTreeMap<LeaseId, OpenLease>,
}

struct OpenLease {
    study: PlanId,
    instances: BTreeSet<InstanceId>,
}

impl OpenLeases {
    /// Creates an empty set. Without `is_recorded` it stays empty.
    pub(crate) fn new(is_recorded: bool) -> Self {
        Self { is_recorded, leases: BTreeMap::new() }
    }

    /// Adds a lease with its instances. A lease without instances has nothing to report and is not added.
    pub(crate) fn begin(&mut self, study: PlanId, lease: LeaseId, instances: BTreeSet<InstanceId>) {
        if self.is_recorded && !instances.is_empty() {
            self.leases.insert(lease, OpenLease { study, instances });
        }
    }

    /// Removes instances that are acknowledged, or returned to the manager. Unknown instances belong to a revoked
    /// lease.
    pub(crate) fn close(&mut self, lease: LeaseId, instances: &[InstanceId]) {
        let Some(open) = self.leases.get_mut(&lease) else { return };
        instances.iter().for_each(|instance| _ = open.instances.remove(instance));
        if open.instances.is_empty() {
            self.leases.remove(&lease);
        }
    }

    /// Removes the open instances of a lease other than `retained`, and returns them.
    pub(crate) fn retain(&mut self, lease: LeaseId, retained: &BTreeSet<InstanceId>) -> BTreeSet<InstanceId> {
        let Some(open) = self.leases.get(&lease) else { return BTreeSet::new() };
        let removed: BTreeSet<InstanceId> = open.instances.difference(retained).copied().collect();
        let before = open.instances.len();
        self.close(lease, &Vec::from_iter(removed.iter().copied()));
        assert_eq!(
            self.open_instances(lease) + removed.len(),
            before,
            "an instance is either open or removed"
        );
        removed
    }

    /// Removes a revoked lease. Its reports stay queued, because the manager counts them.
    pub(crate) fn revoke(&mut self, lease: LeaseId) {
        self.leases.remove(&lease);
    }

    /// Returns the number of open instances of a lease.
    pub(crate) fn open_instances(&self, lease: LeaseId) -> usize {
        self.leases.get(&lease).map_or(0, |open| open.instances.len())
    }

    /// Iterates over the leases in order, each with its study and open instances.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (LeaseId, PlanId, &BTreeSet<InstanceId>)> {
        assert!(self.is_recorded || self.leases.is_empty(), "leases are recorded only for a reattachment");
        self.leases.iter().map(|(lease, open)| {
            assert!(!open.instances.is_empty(), "{lease} is open without an open instance");
            (*lease, open.study, &open.instances)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STUDY: PlanId = PlanId::first_round(1);

    fn ids(instances: impl IntoIterator<Item = u32>) -> BTreeSet<InstanceId> {
        instances.into_iter().map(InstanceId).collect()
    }

    #[test]
    fn lease_ends_with_its_last_instance() {
        let mut leases = OpenLeases::new(true);
        leases.begin(STUDY, LeaseId(1), ids(0..3));
        leases.begin(STUDY, LeaseId(2), ids([]));
        leases.close(LeaseId(1), &[InstanceId(0), InstanceId(9)]);
        leases.close(LeaseId(8), &[InstanceId(0)]);
        assert!(leases.iter().eq([(LeaseId(1), STUDY, &ids(1..3))]));
        assert_eq!(leases.retain(LeaseId(1), &ids([2, 5])), ids([1]));
        assert_eq!(leases.open_instances(LeaseId(1)), 1);
        assert_eq!(leases.retain(LeaseId(1), &ids([])), ids([2]));
        assert_eq!(leases.iter().count(), 0);
    }

    #[test]
    fn worker_that_cannot_reattach_records_nothing() {
        let mut leases = OpenLeases::new(false);
        leases.begin(STUDY, LeaseId(1), ids(0..3));
        assert_eq!((leases.iter().count(), leases.open_instances(LeaseId(1))), (0, 0));
    }
}
