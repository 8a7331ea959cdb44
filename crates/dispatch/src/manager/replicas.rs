//! Replicas of outputs: a second worker fetches an instance's outputs before the instance is reported.
//!
//! Workers ask for replicas only without a tier shared by all workers. The worker that has stored the outputs
//! asks for a replica and delays its report. The manager picks the worker that fetches, on another host if
//! possible, and asks the next one if a worker has no room or leaves. It asks no worker twice. If no worker is
//! left, the instance is reported without a replica and is recomputed if its worker is lost.

use super::{Effect, Manager};
use crate::{InstanceId, LeaseId, PlanId, WorkerId};
use pleach_regions::RegionKey;
use std::collections::{BTreeMap, BTreeSet};

/// The asking worker, its instance and its lease: one worker may finish the same instance again under another lease.
type Asker = (WorkerId, PlanId, LeaseId, InstanceId);

/// Replicas that are being fetched.
#[derive(Debug, Default)]
pub(super) struct Replicas(BTreeMap<Asker, Replica>);

#[derive(Debug)]
struct Replica {
    /// Regions that have yet to be fetched, and their bytes.
    waiting: BTreeMap<RegionKey, u64>,
    to: WorkerId,
    /// Workers that could not fetch them.
    refused: BTreeSet<WorkerId>,
}

impl Manager {
    /// Handles the request for a replica of an instance's stored regions, with the bytes of each. The worker reports the
    /// instance after [`Effect::Replicated`], which follows at once if no region or no other worker qualifies.
    pub fn handle_replicate(
        &mut self,
        worker: WorkerId,
        id: PlanId,
        lease: LeaseId,
        instance: InstanceId,
        regions: &[(RegionKey, u64)],
    ) {
        // The request has crossed the departure of the worker.
        if !self.members.contains(worker) {
            return;
        }
        let study = self.studies.get(&id);
        let is_single =
            |(key, _): &&(RegionKey, u64)| study.is_some_and(|study| study.is_single(*key, instance, worker));
        let waiting = regions.iter().filter(is_single).copied().collect();
        self.ask_next((worker, id, lease, instance), waiting, BTreeSet::new());
    }

    /// Handles a worker that could not fetch a region or has no room for it.
    pub fn handle_fetch_failed(&mut self, worker: WorkerId, id: PlanId, key: RegionKey) {
        self.ask_others(|asker, replica| {
            asker.1 == id && replica.to == worker && replica.waiting.contains_key(&key)
        });
        self.note_not_copied(worker, id, key);
    }

    /// Handles a worker that has dropped a replica under memory pressure. A lost sole copy is recomputed.
    pub fn handle_dropped(&mut self, worker: WorkerId, id: PlanId, key: RegionKey) {
        self.study_event(id, |study| study.handle_dropped(worker, key));
    }

    /// Records a fetched replica.
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

    /// Handles the loss of a worker: its pending replicas go to other workers, and its own requests are void.
    pub(super) fn retarget_replicas(&mut self, worker: WorkerId) {
        // Own requests first: they need no other target.
        self.replicas.0.retain(|asker, _| asker.0 != worker);
        self.ask_others(|_, replica| replica.to == worker);
    }

    /// Answers all requests of a study that has ended.
    pub(super) fn end_replicas(&mut self, id: PlanId) {
        // The workers delay reports until these answers, whether the study continues or not.
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
        let host = self.members.get(from).and_then(|member| member.facts().host);
        let may = self.members.staying().filter(|(worker, _)| *worker != from && !refused.contains(worker));
        // The same worker as long as the members stay the same: regions that are stored together are replicated together.
        let order = may.map(|(worker, member)| {
            let is_near = host.is_some() && member.facts().host == host;
            // Another host first, because a host takes all its workers with it. Then the next id after `from`, so that
            // not all workers choose the same one.
            (is_near, worker < from, worker)
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
                assert!(to != from, "{from} would fetch its own regions: {asker:?}");
                assert!(!refused.contains(&to), "{to} is asked twice for {asker:?}");
                self.replicas.0.insert(asker, Replica { waiting, to, refused });
            }
            None => self.replicated(asker),
        }
    }

    fn replicated(&mut self, asker: Asker) {
        self.replicas.0.remove(&asker);
        let (worker, study, lease, instance) = asker;
        if self.members.contains(worker) {
            self.effects.push_back(Effect::Replicated { worker, study, lease, instance });
        }
    }

    /// Compares pending replicas with the members.
    pub(super) fn check_replicas(&self) -> Result<(), String> {
        let is_void = |(asker, replica): &(&Asker, &Replica)| {
            let there = self.members.contains(asker.0) && self.members.contains(replica.to);
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
