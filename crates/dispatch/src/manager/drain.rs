//! Draining workers: they get no grants, return unstarted instances, and leave once other workers have fetched the
//! referenced regions that only they hold.

use super::members::PendingFetch;
use super::{Effect, Manager};
use crate::study::Study;
use crate::{InstanceId, PlanId, WorkerId};
use pleach_regions::RegionKey;

impl Manager {
    /// Starts draining a worker. Idempotent.
    pub fn handle_drain(&mut self, worker: WorkerId) {
        if !self.members.drain(worker) {
            return;
        }
        // A draining worker gets no grant, so its reservation would keep a suspect waiting.
        self.reserved.remove(&worker);
        self.queue.remove(worker);
        self.effects.push_back(Effect::Drain(worker));
        self.replan();
        self.schedule();
    }

    /// Records that a worker holds a region fetched from a peer. A worker that has left holds nothing.
    pub fn handle_region_fetched(&mut self, worker: WorkerId, id: PlanId, key: RegionKey) {
        if let Some(study) = self.studies.get_mut(&id).filter(|_| self.members.contains(worker)) {
            study.note_copy(worker, key);
            self.note_replica(worker, id, key);
        }
        self.answered(worker, id, key);
        self.schedule();
    }

    /// Records that an instance's outputs with readers are in a tier shared by all workers. Call it before the instance is
    /// reported.
    pub fn handle_output_shared(&mut self, id: PlanId, instance: InstanceId, keys: &[RegionKey]) {
        if let Some(study) = self.studies.get_mut(&id) {
            study.note_shared(instance, keys);
        }
    }

    /// Has other workers fetch the sole copies of draining workers. Dismisses a draining worker without leases
    /// once it has no sole copy, or no worker can fetch one.
    pub(super) fn advance_drains(&mut self) {
        for worker in self.members.draining() {
            // Started instances store further outputs, so the sole copies are not complete yet.
            if self.leases_of(worker) > 0 {
                continue;
            }
            let sole = self.sole_copies(worker);
            if sole.is_empty() || !self.copy(worker, &sole) {
                self.dismiss(worker);
            }
        }
    }

    /// Returns the referenced regions whose sole copy is on this worker.
    fn sole_copies(&self, worker: WorkerId) -> Vec<(PlanId, RegionKey)> {
        let held = |(id, study): (&PlanId, &Study)| {
            let id = *id;
            study.sole_copies(worker).into_iter().map(move |key| (id, key)).collect::<Vec<_>>()
        };
        self.studies.iter().flat_map(held).collect()
    }

    /// Asks the other workers in turn to fetch regions, and asks again if the asked worker has left or could not fetch.
    /// Returns false if no worker is left to ask for any of them.
    fn copy(&mut self, from: WorkerId, held: &[(PlanId, RegionKey)]) -> bool {
        let others = self.members.staying().map(|(worker, _)| worker);
        let others: Vec<WorkerId> = others.filter(|worker| *worker != from).collect();
        let Some(member) = self.members.get_mut(from) else { return false };
        let mut comes = false;
        for (number, &(study, key)) in held.iter().enumerate() {
            let asked = member.copied.entry((study, key)).or_default();
            if asked.to.is_none_or(|to| others.binary_search(&to).is_err()) {
                let may: Vec<WorkerId> =
                    others.iter().copied().filter(|other| !asked.refused.contains(other)).collect();
                // In turn, so that the regions spread over the workers. `max` avoids a division by 0.
                asked.to = may.get(number % may.len().max(1)).copied();
                if let Some(worker) = asked.to {
                    self.effects.push_back(Effect::Copy { worker, study, key, from, replica: None });
                }
            }
            comes |= asked.to.is_some();
        }
        comes
    }

    /// Records that a worker could not fetch a region of a draining worker. Other workers are asked.
    pub(super) fn note_not_copied(&mut self, worker: WorkerId, id: PlanId, key: RegionKey) {
        for asked in self.answered(worker, id, key) {
            asked.refused.insert(worker);
        }
        self.schedule();
    }

    /// Clears the fetches that a worker has answered, and returns them. If the region becomes a sole copy
    /// again, another request follows.
    fn answered(&mut self, worker: WorkerId, id: PlanId, key: RegionKey) -> Vec<&mut PendingFetch> {
        let asked = self.members.iter_mut().filter_map(|(_, member)| member.copied.get_mut(&(id, key)));
        let mut answered: Vec<&mut PendingFetch> = asked.filter(|asked| asked.to == Some(worker)).collect();
        answered.iter_mut().for_each(|asked| asked.to = None);
        answered
    }

    fn dismiss(&mut self, worker: WorkerId) {
        let leases = self.leases_of(worker);
        assert!(leases == 0, "{worker} is dismissed with {leases} leases");
        assert!(!self.reserved.contains(&worker), "{worker} is dismissed and reserved for isolation");
        self.members.dismiss(worker);
        self.effects.push_back(Effect::Dismiss(worker));
    }
}
