//! Applies the reports of workers about leased instances to the audit's model.

use super::Audit;
use super::study::{Fate, Granted, StudyModel};
use crate::event::ManagerReply;
use pleach_dispatch::{InstanceId, LeaseId, PlanId, WorkerId};
use pleach_regions::RegionKey;
use std::collections::{BTreeMap, BTreeSet};

impl Audit {
    /// Applies the report of a finished instance. Returns whether the manager counted it as it must.
    pub(super) fn instance_done(
        &mut self,
        worker: WorkerId,
        study: PlanId,
        lease: LeaseId,
        id: InstanceId,
        answer: &ManagerReply,
    ) -> bool {
        let own = self.is_reported_by_holder(worker, study, lease, id);
        let agrees = self.report(worker, study, lease, id) == counted(answer);
        if agrees && own {
            self.note_finished(study, id);
        }
        agrees
    }

    /// Applies the report of an instance. Returns whether it must count.
    pub(super) fn report(&mut self, worker: WorkerId, study: PlanId, lease: LeaseId, id: InstanceId) -> bool {
        let Some(model) = self.studies.get_mut(&study) else { return false };
        // Read before `take`, which removes the lease and its link with the last instance.
        let twin = model.leases.get(&lease).and_then(|granted| granted.twin);
        if !model.take(worker, lease, id) {
            return false;
        }
        // The first report of a straggler counts for both leases.
        if let Some(twin) = twin
            && let Some(other) = model.leases.get(&twin).map(|other| other.worker)
            && model.take(other, twin, id)
            && !model.leases.contains_key(&twin)
        {
            self.revoked.insert((other, study, twin));
        }
        true
    }

    /// Applies the report of an instance that lacks inputs. Returns whether it must count.
    pub(super) fn lacking(
        &mut self,
        worker: WorkerId,
        study: PlanId,
        lease: LeaseId,
        id: InstanceId,
        keys: &[RegionKey],
    ) -> bool {
        let Some(model) = self.studies.get_mut(&study) else { return false };
        let at_grant = model.leases.get(&lease).map(|granted| granted.notified.clone()).unwrap_or_default();
        let had = model.take(worker, lease, id);
        if had {
            forget_holders(model, id, keys, &at_grant);
            *model.lacked.entry(id).or_default() += 1;
        }
        had
    }

    /// Applies the return of unstarted instances. Returns whether the manager counted it as it must.
    pub(super) fn returned(
        &mut self,
        worker: WorkerId,
        study: PlanId,
        lease: LeaseId,
        instances: &[InstanceId],
        answer: &ManagerReply,
    ) -> bool {
        self.note_late(worker, study, lease, instances);
        let granted = self.studies.get_mut(&study).and_then(|model| {
            let granted = model.leases.get_mut(&lease).filter(|granted| granted.worker == worker)?;
            granted.requested = None;
            Some(model)
        });
        let agrees = granted.is_some() == counted(answer);
        if let Some(model) = granted.filter(|_| agrees) {
            instances.iter().for_each(|id| _ = model.take(worker, lease, *id));
        }
        agrees
    }

    /// Leases instances to a reattached worker. Returns whether the manager let it keep the same ones.
    pub(super) fn adopt(
        &mut self,
        worker: WorkerId,
        study: PlanId,
        lease: LeaseId,
        instances: &[InstanceId],
        answer: &ManagerReply,
    ) -> bool {
        let ManagerReply::Kept(kept) = answer else { return false };
        *kept == self.adopted(worker, study, lease, instances)
    }

    /// Returns the instances that a reattached worker may continue with: open, not leased, and of one stage.
    fn adopted(
        &mut self,
        worker: WorkerId,
        study: PlanId,
        lease: LeaseId,
        instances: &[InstanceId],
    ) -> BTreeSet<InstanceId> {
        let is_there = self.workers.contains_key(&worker);
        let Some(model) = self.studies.get_mut(&study).filter(|_| is_there) else { return BTreeSet::new() };
        if model.leases.contains_key(&lease) {
            self.notify(worker, study);
            return BTreeSet::new();
        }
        // A reattached worker was not crashed by its instances.
        for id in instances {
            if let Some(losses) = model.losses.get_mut(id) {
                losses.count = losses.count.saturating_sub(1);
                losses.alone = losses.alone.saturating_sub(1);
            }
        }
        let kills = |id: &InstanceId| model.is_suspected(*id);
        let is_open = |id: &InstanceId| model.fate(*id) == Some(Fate::Open) && !kills(id);
        let free = |id: &InstanceId| is_open(id) && model.leased(*id).next().is_none();
        let mut open: BTreeSet<InstanceId> = instances.iter().copied().filter(free).collect();
        let stage = open.first().map(|first| model.stage(*first));
        open.retain(|id| Some(model.stage(*id)) == stage);
        if !open.is_empty() {
            let notified = BTreeMap::new();
            let granted = Granted { worker, open: open.clone(), notified, requested: None, twin: None };
            model.leases.insert(lease, granted);
        }
        for instance in &open {
            self.use_tile(worker, study, *instance);
        }
        self.notify(worker, study);
        open
    }
}

/// Removes the holders of missing inputs, except for workers that have fetched the region since the grant: they may
/// still provide it.
fn forget_holders(
    model: &mut StudyModel,
    id: InstanceId,
    keys: &[RegionKey],
    at_grant: &BTreeMap<RegionKey, BTreeSet<WorkerId>>,
) {
    let inputs = model.plan.instances.at(id).inputs;
    for key in inputs.iter().filter(|key| keys.contains(key)) {
        let since = model.holders.get(key).zip(at_grant.get(key));
        let since: BTreeSet<WorkerId> = since.map(|(now, before)| now - before).unwrap_or_default();
        match since.is_empty() {
            true => _ = model.holders.remove(key),
            false => _ = model.holders.insert(*key, since),
        }
    }
}

/// Returns whether the manager counted a report.
pub(super) fn counted(answer: &ManagerReply) -> bool {
    *answer == ManagerReply::Counted(true)
}
