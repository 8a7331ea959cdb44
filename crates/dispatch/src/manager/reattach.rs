//! Workers of an earlier manager, or that were away: what they have is taken up before anything else is given out.

use super::Manager;
use crate::{InstanceId, LeaseId, PlanId, WorkerId};
use pleach_regions::RegionKey;
use std::collections::BTreeSet;

impl Manager {
    /// Nothing is granted until [`resume_grants`](Self::resume_grants): the workers of an earlier manager are about to say
    /// what they have.
    pub fn pause_grants(&mut self) {
        self.holding = true;
    }

    /// What has not been brought by now counts as lost.
    pub fn resume_grants(&mut self) {
        self.holding = false;
        self.schedule();
    }

    /// A worker executes instances of a study under a lease that it was granted before. Returns those that it is to go on
    /// with: none of a worker that is gone.
    pub fn handle_adopt(
        &mut self,
        worker: WorkerId,
        id: PlanId,
        lease: LeaseId,
        instances: &[InstanceId],
    ) -> BTreeSet<InstanceId> {
        let now = self.now;
        let is_there = self.members.contains_key(&worker);
        let Some(study) = self.studies.get_mut(&id).filter(|_| is_there) else { return BTreeSet::new() };
        let kept = study.handle_reattached_lease(worker, lease, instances, now);
        self.mark_told(worker, id);
        self.follow(id);
        self.schedule();
        kept
    }

    /// A worker holds regions of a study. Returns those that nobody will read.
    pub fn handle_holds(&mut self, worker: WorkerId, id: PlanId, keys: &[RegionKey]) -> Vec<RegionKey> {
        let is_there = self.members.contains_key(&worker);
        let Some(study) = self.studies.get_mut(&id).filter(|_| is_there) else { return keys.to_vec() };
        let needless = study.handle_reported_regions(worker, keys);
        self.mark_told(worker, id);
        self.follow(id);
        self.schedule();
        needless
    }

    /// It knows the study from before.
    fn mark_told(&mut self, worker: WorkerId, id: PlanId) {
        if let Some(suited) = self.members.get_mut(&worker).and_then(|member| member.studies.get_mut(&id)) {
            suited.told = true;
        }
    }
}
