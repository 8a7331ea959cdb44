//! Workers that are to leave: they get nothing more, hand back what they have not begun, and go when nothing that only
//! they hold is needed any more, because others have fetched it.

use super::{Effect, Manager};
use crate::{InstanceId, StudyId, WorkerId};
use pleach_regions::RegionKey;

impl Manager {
    /// A worker is to leave, or says that it wants to. It is told once.
    pub fn handle_drain(&mut self, worker: WorkerId) {
        let Some(member) = self.members.get_mut(&worker).filter(|member| !member.draining) else { return };
        member.draining = true;
        self.kept.remove(&worker);
        self.speeds.remove(member.facts.slots, member.speed);
        (member.wanted, member.wants_later) = (0, false);
        self.queue.remove(worker);
        self.draining.insert(worker);
        self.effects.push_back(Effect::Drain(worker));
        self.replan();
        self.serve();
    }

    /// A worker holds a region that it has fetched from another one. One that is gone holds nothing.
    pub fn handle_copied(&mut self, worker: WorkerId, id: StudyId, key: RegionKey) {
        if let Some(study) = self.studies.get_mut(&id).filter(|_| self.members.contains_key(&worker)) {
            study.note_copy(worker, key);
            self.note_replica(worker, id, key);
        }
        self.serve();
    }

    /// What others read of an instance is in a tier that all workers share. Said before the instance is.
    pub fn handle_shared(&mut self, id: StudyId, instance: InstanceId, keys: &[RegionKey]) {
        if let Some(study) = self.studies.get_mut(&id) {
            study.note_shared(instance, keys);
        }
    }

    /// Has what only draining workers hold copied, and dismisses those that have nothing left.
    pub(super) fn advance_drains(&mut self) {
        let draining: Vec<WorkerId> = self.draining.iter().copied().collect();
        for worker in draining {
            if self.leases_of(worker) > 0 {
                continue;
            }
            let alone = self.held_alone(worker);
            if alone.is_empty() || !self.copy(worker, &alone) {
                self.dismiss(worker);
            }
        }
    }

    /// Regions that somebody will read and only this worker holds.
    fn held_alone(&self, worker: WorkerId) -> Vec<(StudyId, RegionKey)> {
        let held = |(id, study): (&StudyId, &crate::study::Study)| {
            let id = *id;
            study.held_alone(worker).into_iter().map(move |key| (id, key)).collect::<Vec<_>>()
        };
        self.studies.iter().flat_map(held).collect()
    }

    /// Asks others for copies, in turn, and once more where who was asked is gone; false when there is nobody to ask.
    fn copy(&mut self, from: WorkerId, held: &[(StudyId, RegionKey)]) -> bool {
        let others = self.members.iter().filter(|(worker, member)| **worker != from && !member.draining);
        let others: Vec<WorkerId> = others.map(|(worker, _)| *worker).collect();
        if others.is_empty() {
            return false;
        }
        for (number, &(study, key)) in held.iter().enumerate() {
            let Some(member) = self.members.get_mut(&from) else { return false };
            let asked = member.copied.get(&(study, key));
            if asked.is_none_or(|asked| others.binary_search(asked).is_err()) {
                let worker = others[number % others.len()];
                member.copied.insert((study, key), worker);
                self.effects.push_back(Effect::Copy { worker, study, key, from, replica: None });
            }
        }
        true
    }

    fn dismiss(&mut self, worker: WorkerId) {
        self.draining.remove(&worker);
        self.effects.push_back(Effect::Dismiss(worker));
    }
}
