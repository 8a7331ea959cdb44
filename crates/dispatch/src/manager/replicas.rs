//! What is to survive its worker, where no tier is shared: a second worker fetches it before its instance is reported.
//!
//! The worker that has stored it asks, and waits with its report; the manager says who fetches, on another host where
//! there is one, and asks the next where somebody has no room or leaves. Whom it has asked in vain it does not ask again: when
//! nobody is left the instance is reported without a second copy, and is computed again should its worker be lost.

use super::{Effect, Manager};
use crate::{InstanceId, LeaseId, PlanId, WorkerId};
use pleach_regions::RegionKey;
use std::collections::{BTreeMap, BTreeSet};

/// Whose instance it is, and under which lease: one worker may finish the same instance again.
type Asker = (WorkerId, PlanId, LeaseId, InstanceId);

/// Copies that are on their way.
#[derive(Debug, Default)]
pub(super) struct Replicas(BTreeMap<Asker, Replica>);

#[derive(Debug)]
struct Replica {
    /// Regions that are yet to be fetched, and their bytes.
    waiting: BTreeMap<RegionKey, u64>,
    to: WorkerId,
    /// Those that could not.
    refused: BTreeSet<WorkerId>,
}

impl Manager {
    /// A worker has stored an instance's regions, of so many bytes each, and reports the instance when a second worker has
    /// them: answered by [`Effect::Replicated`], at once where there is nobody or nothing to copy.
    pub fn handle_replicate(
        &mut self,
        worker: WorkerId,
        id: PlanId,
        lease: LeaseId,
        instance: InstanceId,
        regions: &[(RegionKey, u64)],
    ) {
        if !self.members.contains_key(&worker) {
            return;
        }
        let study = self.studies.get(&id);
        let is_single =
            |(key, _): &&(RegionKey, u64)| study.is_some_and(|study| study.is_single(*key, instance, worker));
        let waiting = regions.iter().filter(is_single).copied().collect();
        self.ask_next((worker, id, lease, instance), waiting, BTreeSet::new());
    }

    /// A worker could not fetch a region, or has no room for it.
    pub fn handle_fetch_failed(&mut self, worker: WorkerId, id: PlanId, key: RegionKey) {
        self.ask_others(|asker, replica| {
            asker.1 == id && replica.to == worker && replica.waiting.contains_key(&key)
        });
        self.note_not_copied(worker, id, key);
    }

    /// A worker has let go of a copy, since it needed the room: what only it held is computed again.
    pub fn handle_dropped(&mut self, worker: WorkerId, id: PlanId, key: RegionKey) {
        self.study_event(id, |study| study.handle_dropped(worker, key));
    }

    /// A copy is there.
    pub(super) fn note_replica(&mut self, worker: WorkerId, id: PlanId, key: RegionKey) {
        let mut over = Vec::new();
        for (asker, replica) in &mut self.replicas.0 {
            let is_it = asker.1 == id && replica.to == worker && replica.waiting.remove(&key).is_some();
            if is_it && let Some(study) = self.studies.get_mut(&id) {
                study.note_replica(worker, key);
            }
            if replica.waiting.is_empty() {
                over.push(*asker);
            }
        }
        over.into_iter().for_each(|asker| self.replicated(asker));
    }

    /// A worker is gone: who waits for its copies asks others, and its own askings are void.
    pub(super) fn retarget_replicas(&mut self, worker: WorkerId) {
        self.replicas.0.retain(|asker, _| asker.0 != worker);
        self.ask_others(|_, replica| replica.to == worker);
    }

    /// Nothing of a study is wanted any more.
    pub(super) fn end_replicas(&mut self, id: PlanId) {
        let of_it: Vec<Asker> = self.replicas.0.keys().filter(|asker| asker.1 == id).copied().collect();
        of_it.into_iter().for_each(|asker| self.replicated(asker));
    }

    fn ask_others(&mut self, fails: impl Fn(&Asker, &Replica) -> bool) {
        let failed = self.replicas.0.iter().filter(|(asker, replica)| fails(asker, replica));
        let failed: Vec<Asker> = failed.map(|(asker, _)| *asker).collect();
        for asker in failed {
            if let Some(Replica { waiting, to, mut refused }) = self.replicas.0.remove(&asker) {
                refused.insert(to);
                self.ask_next(asker, waiting, refused);
            }
        }
    }

    fn ask_next(&mut self, asker: Asker, waiting: BTreeMap<RegionKey, u64>, refused: BTreeSet<WorkerId>) {
        let (from, study, ..) = asker;
        let host = self.members.get(&from).and_then(|member| member.facts.host);
        let may = self
            .members
            .iter()
            .filter(|(worker, member)| **worker != from && !member.draining && !refused.contains(worker));
        // The same worker for as long as the members stay the same: what is stored together is held together.
        let order = may.map(|(worker, member)| {
            let is_near = host.is_some() && member.facts.host == host;
            (is_near, *worker < from, *worker)
        });
        match order.min().filter(|_| !waiting.is_empty()) {
            Some((.., to)) => {
                self.effects.extend(waiting.iter().map(|(key, bytes)| Effect::Copy {
                    worker: to,
                    study,
                    key: *key,
                    from,
                    replica: Some(*bytes),
                }));
                self.replicas.0.insert(asker, Replica { waiting, to, refused });
            }
            None => self.replicated(asker),
        }
    }

    fn replicated(&mut self, asker: Asker) {
        self.replicas.0.remove(&asker);
        let (worker, study, lease, instance) = asker;
        if self.members.contains_key(&worker) {
            self.effects.push_back(Effect::Replicated { worker, study, lease, instance });
        }
    }

    /// Compares what is on its way with who is there.
    pub(super) fn check_replicas(&self) -> Result<(), String> {
        let is_void = |(asker, replica): &(&Asker, &Replica)| {
            let there = self.members.contains_key(&asker.0) && self.members.contains_key(&replica.to);
            !there
                || !self.studies.contains_key(&asker.1)
                || replica.waiting.is_empty()
                || replica.to == asker.0
        };
        match self.replicas.0.iter().find(is_void) {
            Some((asker, replica)) => Err(format!("nothing comes of the copies for {asker:?}: {replica:?}")),
            None => Ok(()),
        }
    }
}
