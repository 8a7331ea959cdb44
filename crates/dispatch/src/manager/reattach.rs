//! Reattach: restores the leases and regions of reconnected workers before the manager grants anything.

use super::Manager;
use crate::{InstanceId, LeaseId, PlanId, WorkerId};
use pleach_regions::RegionKey;
use std::collections::BTreeSet;

impl Manager {
    /// Starts the grace period: grants nothing until [`resume_grants`](Self::resume_grants), while the workers of an earlier
    /// manager reattach.
    pub fn pause_grants(&mut self) {
        self.holding = true;
    }

    /// Ends the grace period. Leases and regions that were not reported by now count as lost.
    pub fn resume_grants(&mut self) {
        self.holding = false;
        self.schedule();
    }

    /// Reattaches a lease under which a worker executes instances of a study. Returns the instances that the worker
    /// continues with. A worker that has left continues with none.
    pub fn handle_adopt(
        &mut self,
        worker: WorkerId,
        id: PlanId,
        lease: LeaseId,
        instances: &[InstanceId],
    ) -> BTreeSet<InstanceId> {
        let now = self.now;
        let is_there = self.members.contains(worker);
        let Some(study) = self.studies.get_mut(&id).filter(|_| is_there) else { return BTreeSet::new() };
        let kept = study.handle_reattached_lease(worker, lease, instances, now);
        self.use_tiles(worker, id, &kept);
        self.follow(id);
        self.schedule();
        kept
    }

    /// Reattaches regions that a worker holds of a study. Returns those without a further reader.
    pub fn handle_holds(&mut self, worker: WorkerId, id: PlanId, keys: &[RegionKey]) -> Vec<RegionKey> {
        let is_there = self.members.contains(worker);
        let Some(study) = self.studies.get_mut(&id).filter(|_| is_there) else { return keys.to_vec() };
        let needless = study.handle_reported_regions(worker, keys);
        let executed = study.producers_of(keys);
        self.use_tiles(worker, id, &executed);
        self.follow(id);
        self.schedule();
        needless
    }

    /// Records that the worker has the facts of the study from an earlier connection. Comes before its leases and regions:
    /// a study that these complete announces its end only to introduced workers.
    pub fn handle_introduced(&mut self, worker: WorkerId, id: PlanId) {
        if let Some(suited) = self.members.get_mut(worker).and_then(|member| member.studies.get_mut(&id)) {
            suited.introduced = true;
        }
    }
}
