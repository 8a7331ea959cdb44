//! Ready buckets for workers that wait: which worker's turn it is, and which study's.
//!
//! Workers take turns. A worker's bucket is of the study that has fewest leases of those that have one for it, so that
//! studies share the slots evenly; within a study, what is first in order.

use super::{Effect, Manager};
use crate::study::{Eligibility, Study};
use crate::{BucketId, LeaseId, PlanId, WorkerId};

impl Manager {
    /// Gives out what is ready, one bucket each in turn: to workers with idle slots first, then to those that asked for a
    /// later stage.
    pub(super) fn schedule(&mut self) {
        while !self.stopping && !self.holding && self.studies.values().any(Study::has_ready) {
            self.release_isolation_workers();
            if !self.serve_any() && !self.serve_later() {
                break;
            }
        }
        self.advance_drains();
    }

    fn serve_any(&mut self) -> bool {
        let found = self.queue.any().find_map(|worker| Some((worker, self.choose(worker, None)?)));
        let Some(found) = found else { return false };
        // Of those that have a slot for each of their buckets some ask for more than they have slots.
        let is_idle = |worker: WorkerId| {
            let slots = self.members.get(&worker).map_or(0, |member| member.facts.slots as usize);
            self.queue.has(worker) && self.leases_of(worker) < slots
        };
        let (worker, (study, bucket)) = self.nearer(found, |holder| is_idle(holder).then_some(None));
        self.queue.take(worker);
        let Some(member) = self.members.get_mut(&worker) else { return true };
        member.wanted -= 1;
        if member.wanted > 0 {
            self.queue.push(worker);
        }
        self.grant(worker, study, bucket, false);
        true
    }

    fn serve_later(&mut self) -> bool {
        let mut waiting = self.queue.later();
        let found = waiting.find_map(|(worker, after)| Some((worker, self.choose(worker, Some(after))?)));
        drop(waiting);
        let Some(found) = found else { return false };
        let later = |holder| self.queue.later().find(|(waiting, _)| *waiting == holder);
        let (worker, (study, bucket)) =
            self.nearer(found, |holder| later(holder).map(|(_, after)| Some(after)));
        self.queue.leave_after(worker);
        if let Some(member) = self.members.get_mut(&worker) {
            member.wants_later = false;
        }
        self.grant(worker, study, bucket, true);
        true
    }

    /// Where what a worker would get has to be brought to it, and somebody who has it waits as well, after which stage
    /// `waits` says: the same for that one. Among those that wait for the same it does not matter who is first, and who was
    /// stays it.
    fn nearer(
        &self,
        found: (WorkerId, (PlanId, BucketId)),
        waits: impl Fn(WorkerId) -> Option<Option<usize>>,
    ) -> (WorkerId, (PlanId, BucketId)) {
        let (worker, (id, bucket)) = found;
        let is_near = |(id, bucket): (PlanId, BucketId), worker: WorkerId| {
            self.studies.get(&id).is_some_and(|study| study.remote_bytes(bucket, worker) == 0)
        };
        if !self.by_data || is_near((id, bucket), worker) {
            return found;
        }
        let holders = self.studies.get(&id).map(|study| study.holders_of(bucket)).unwrap_or_default();
        let nearer = |holder: WorkerId| {
            let chosen = self.choose(holder, waits(holder)?)?;
            is_near(chosen, holder).then_some((holder, chosen))
        };
        holders.into_iter().filter(|holder| *holder != worker).find_map(nearer).unwrap_or(found)
    }

    /// What a worker is to get: nothing while it has something that must be alone, or is to have nothing else.
    fn choose(&self, worker: WorkerId, after: Option<usize>) -> Option<(PlanId, BucketId)> {
        let member = self.members.get(&worker)?;
        if self.studies.values().any(|study| study.runs_isolated(worker)) {
            return None;
        }
        let is_alone = self.leases_of(worker) == 0;
        if !is_alone && self.kept.contains(&worker) {
            return None;
        }
        let mut best: Option<(usize, PlanId, BucketId)> = None;
        for (&id, study) in &self.studies {
            if best.is_some_and(|(leases, _, _)| leases <= study.leases()) || !self.has_room(worker, id) {
                continue;
            }
            let Some(runs) = self.runs(worker, member, id) else { continue };
            let near = self.by_data.then_some(worker);
            if let Some(bucket) = study.first_ready(Eligibility { after, runs: &runs, is_alone, near }) {
                best = Some((study.leases(), id, bucket));
            }
        }
        best.map(|(_, id, bucket)| (id, bucket))
    }

    /// Whether a worker's memory is enough for a study beside those it has been told of: each can be brought to its end
    /// one task at a time, and so can all of them when what that takes fits together.
    pub(super) fn has_room(&self, worker: WorkerId, id: PlanId) -> bool {
        let Some(member) = self.members.get(&worker) else { return false };
        if member.studies.get(&id).is_some_and(|suited| suited.told) {
            return true;
        }
        let told = member.studies.iter().filter(|(_, suited)| suited.told).map(|(id, _)| *id);
        let all = told.chain([id]).fold(0u64, |sum, id| sum.saturating_add(self.least_bytes(worker, id)));
        all <= member.facts.memory_bytes
    }

    /// What a study takes of a worker's memory at least.
    #[must_use]
    pub fn least_bytes(&self, worker: WorkerId, id: PlanId) -> u64 {
        let below_bytes = self.members.get(&worker).map_or(0, |member| member.facts.below_bytes);
        self.studies.get(&id).map_or(0, |study| study.plan().needs.with_spill(below_bytes))
    }

    fn grant(&mut self, worker: WorkerId, id: PlanId, bucket: BucketId, later: bool) {
        let lease = self.next_lease();
        let most = self.max_instances(worker, id, bucket);
        let Some(study) = self.studies.get_mut(&id) else { return };
        let bucket = most.map_or(bucket, |most| study.split_front(bucket, most));
        let Some(work) = study.grant(bucket, worker, lease, self.now) else { return };
        self.send_study(worker, id);
        self.effects.push_back(Effect::Assign { worker, study: id, lease, work, later });
    }

    pub(super) fn next_lease(&mut self) -> LeaseId {
        let lease = LeaseId(self.next_lease);
        self.next_lease += 1;
        lease
    }

    pub(super) fn send_study(&mut self, worker: WorkerId, id: PlanId) {
        let suited = self.members.get_mut(&worker).and_then(|member| member.studies.get_mut(&id));
        if suited.is_some_and(|suited| !std::mem::replace(&mut suited.told, true)) {
            self.effects.push_back(Effect::Introduce { worker, study: id });
        }
    }
}
