//! Scheduling: assigns ready buckets to waiting workers.
//!
//! Workers take turns. A worker gets a bucket of the study with the fewest leases among those that have one for it, so that
//! studies share the slots evenly. Within a study, the first bucket in order comes first.
//! `short_buckets` grants several at once.

mod short_buckets;

use super::{Effect, Manager, WorkerEntry};
use crate::message::GrantReason;
use crate::plan::GrantOrder;
use crate::storage::ReadCost;
use crate::study::{Eligibility, Study};
use crate::{BucketId, LeaseId, PlanId, WorkerId};

/// Up to this number of waiting workers, busy ones wait for a bucket of their own tiles: an event takes about 1 µs
/// for each.
const MAX_PATIENT_WORKERS: usize = 32;

impl Manager {
    /// Grants ready buckets, one at a time: to workers with idle slots first, then to those that requested a
    /// later stage.
    pub(super) fn schedule(&mut self) {
        self.granted = 0;
        while !self.stopping && !self.holding && self.studies.values().any(Study::has_ready) {
            if self.has_more_grants() {
                break;
            }
            self.release_isolation_workers();
            if !self.serve_isolated() && !self.serve_any() && !self.serve_later() {
                break;
            }
        }
        // Also without a grant: the lease that just ended may be the last one of a draining worker.
        self.advance_drains();
    }

    /// Returns whether the last event has ended its grants early.
    #[must_use]
    pub fn has_more_grants(&self) -> bool {
        self.granted >= self.max_granted
    }

    /// Continues the grants of the last event.
    pub fn handle_grants(&mut self) {
        self.schedule();
    }

    /// Grants an isolated bucket to the empty worker with the latest request. One that has waited for long may have been
    /// lost unnoticed, which would count against the suspects.
    fn serve_isolated(&mut self) -> bool {
        if !self.studies.values().any(Study::has_ready_isolated) {
            return false;
        }
        let empty = self.queue.any().rev().filter(|worker| self.leases_of(*worker) == 0);
        let mut chosen = empty.filter_map(|worker| Some((worker, self.choose(worker, None)?)));
        let is_isolated = |(_, (id, bucket)): &(_, (PlanId, BucketId))| self.studies[id].is_isolated(*bucket);
        let found = chosen.find(is_isolated);
        drop(chosen);
        let Some((worker, (study, bucket))) = found else { return false };
        if self.answer_request(worker) {
            self.grant(worker, study, bucket, GrantReason::Request);
        }
        true
    }

    fn serve_any(&mut self) -> bool {
        let found = self.queue.any().find_map(|worker| Some((worker, self.choose(worker, None)?)));
        let Some(found) = found else { return false };
        // Workers with a bucket for each slot may request more than they have slots.
        let is_idle = |worker: WorkerId| self.queue.has(worker) && self.has_idle_slot(worker);
        let (worker, (study, bucket)) = if self.is_in_order_of_release(found.1.0) {
            self.nearest(found)
        } else {
            self.nearer(found, |holder| is_idle(holder).then_some(None))
        };
        if !self.answer_request(worker) {
            return true;
        }
        let instances = self.grant(worker, study, bucket, GrantReason::Request);
        self.grant_short(worker, (study, bucket), instances, None);
        true
    }

    /// Removes a worker from the queue for one bucket of its request, and queues it again for the rest. Returns whether
    /// it is a member.
    pub(super) fn answer_request(&mut self, worker: WorkerId) -> bool {
        self.queue.take(worker);
        let Some(member) = self.members.get_mut(worker) else { return false };
        assert!(member.requested > 0, "{worker} was queued for a bucket that it has not requested");
        assert!(!member.is_draining(), "{worker} drains, and was queued for a bucket");
        member.requested -= 1;
        if member.requested > 0 {
            self.queue.push(worker);
        }
        true
    }

    fn serve_later(&mut self) -> bool {
        let mut waiting = self.queue.later();
        let found = waiting.find_map(|(worker, after)| Some((worker, self.choose(worker, Some(after))?)));
        drop(waiting);
        let Some(found) = found else { return false };
        let after = |holder| self.queue.later().find(|(worker, _)| *worker == holder).map(|(_, after)| after);
        let (worker, (study, bucket)) = self.nearer(found, |holder| after(holder).map(Some));
        let after = after(worker);
        self.queue.leave_after(worker);
        if let Some(member) = self.members.get_mut(worker) {
            assert!(member.wants_later, "{worker} was queued for a later stage that it has not requested");
            assert!(!member.is_draining(), "{worker} drains, and was queued for a later stage");
            member.wants_later = false;
        }
        let instances = self.grant(worker, study, bucket, GrantReason::LaterRequest);
        self.grant_short(worker, (study, bucket), instances, after);
        true
    }

    /// Prefers locality. If the worker would not have all inputs of its bucket in memory, and a worker that holds some of them
    /// waits as well, returns the worker with the lowest cost of reads, and its bucket. Among equals, `found`, then holders in the
    /// order of their ids.
    ///
    /// `waits` returns the request of a waiting worker: `Some(None)` for any bucket, `Some(Some(stage))` for
    /// one after a stage. `None` if the worker has no such request.
    fn nearer(
        &self,
        found: (WorkerId, (PlanId, BucketId)),
        waits: impl Fn(WorkerId) -> Option<Option<usize>>,
    ) -> (WorkerId, (PlanId, BucketId)) {
        let (worker, (id, bucket)) = found;
        let own = self.read_cost(worker, found.1);
        if !self.by_data || own == ReadCost::NONE {
            return found;
        }
        let holders = self.studies.get(&id).map(|study| study.holders_of(bucket)).unwrap_or_default();
        let others = holders.into_iter().filter(|holder| *holder != worker).filter_map(|holder| {
            let chosen = self.choose(holder, waits(holder)?)?;
            Some((self.read_cost(holder, chosen), (holder, chosen)))
        });
        let nearest = others.min_by_key(|(cost, _)| *cost).filter(|(cost, _)| *cost < own);
        nearest.map_or(found, |(_, nearest)| nearest)
    }

    /// Returns the expected cost for a worker to read the inputs of a bucket.
    fn read_cost(&self, worker: WorkerId, (id, bucket): (PlanId, BucketId)) -> ReadCost {
        let reader = self.members.get(worker).map(|member| member.reader(worker));
        let cost = self.studies.get(&id).zip(reader).map(|(study, reader)| study.read_cost(bucket, reader));
        cost.unwrap_or(ReadCost::MAX)
    }

    fn is_in_order_of_release(&self, id: PlanId) -> bool {
        self.studies.get(&id).is_some_and(|study| study.plan().order == GrantOrder::Release)
    }

    /// Returns the waiting worker with the lowest cost of reads for a bucket that all of them would get, the one of the
    /// earliest request among equals.
    fn nearest(&self, found: (WorkerId, (PlanId, BucketId))) -> (WorkerId, (PlanId, BucketId)) {
        let (worker, next) = found;
        if !self.by_data {
            return found;
        }
        let waiting = self.queue.any().filter(|other| self.choose(*other, None) == Some(next));
        let nearest = waiting.take(MAX_PATIENT_WORKERS).min_by_key(|other| self.read_cost(*other, next));
        (nearest.unwrap_or(worker), next)
    }

    /// Picks a worker's next bucket. `None` while the worker runs an isolated instance, or is reserved and not empty.
    fn choose(&self, worker: WorkerId, after: Option<usize>) -> Option<(PlanId, BucketId)> {
        self.choose_from(worker, after, self.may_steal(worker))
    }

    /// As [`choose`](Self::choose). `may_steal` allows buckets of tiles of other workers.
    pub(super) fn choose_from(
        &self,
        worker: WorkerId,
        after: Option<usize>,
        may_steal: bool,
    ) -> Option<(PlanId, BucketId)> {
        let member = self.members.get(worker)?;
        if self.studies.values().any(|study| study.runs_isolated(worker)) {
            return None;
        }
        let is_alone = self.leases_of(worker) == 0;
        if !is_alone && self.reserved.contains(&worker) {
            return None;
        }
        let mut best: Option<(usize, PlanId, BucketId)> = None;
        for (&id, study) in &self.studies {
            if best.is_some_and(|(leases, _, _)| leases <= study.leases()) || !self.has_room(worker, id) {
                continue;
            }
            if self.waits_for_slot(worker, study) {
                continue;
            }
            let Some(runs) = self.runs(worker, member, id) else { continue };
            let near = self.by_data.then(|| member.reader(worker));
            // A request for a later stage takes what it can get: its worker has other work.
            let idle = if after.is_none() { self.queue.waiting() } else { 1 };
            if let Some(bucket) =
                study.first_ready(Eligibility { after, runs: &runs, is_alone, near, idle, may_steal })
            {
                best = Some((study.leases(), id, bucket));
            }
        }
        best.map(|(_, id, bucket)| (id, bucket))
    }

    /// Returns whether a worker gets no bucket of a study before one of its slots is free: in the order of release, it gets
    /// none in advance.
    pub(super) fn waits_for_slot(&self, worker: WorkerId, study: &Study) -> bool {
        let slots = self.members.get(worker).map_or(0, |member| member.facts().slots as usize);
        study.plan().order == GrantOrder::Release && self.leases_of(worker) >= slots
    }

    /// Returns whether a worker's request may take from the tiles of other workers. A busy worker that asks ahead or for a later
    /// stage may not, since its own tiles may have ready buckets soon. Each event serves such workers again, so only few may wait.
    pub(super) fn may_steal(&self, worker: WorkerId) -> bool {
        self.has_idle_slot(worker) || self.queue.waiting() > MAX_PATIENT_WORKERS
    }

    /// Returns whether a worker has fewer leases than slots.
    fn has_idle_slot(&self, worker: WorkerId) -> bool {
        let slots = self.members.get(worker).map_or(0, |member| member.facts().slots as usize);
        self.leases_of(worker) < slots
    }

    /// Returns whether a worker's memory suffices for a study beside those it knows. Each study can be finished
    /// one task at a time, and all of them together if the sum of their minimums fits.
    pub(super) fn has_room(&self, worker: WorkerId, id: PlanId) -> bool {
        let Some(member) = self.members.get(worker) else { return false };
        if member.studies.get(&id).is_some_and(|suited| suited.introduced) {
            return true;
        }
        let introduced = member.studies.iter().filter(|(_, suited)| suited.introduced).map(|(id, _)| *id);
        let all = introduced.chain([id]).fold(0u64, |sum, id| sum.saturating_add(self.min_bytes(worker, id)));
        all <= member.facts().memory_bytes
    }

    /// Returns the minimum memory of a study on a worker.
    #[must_use]
    pub fn min_bytes(&self, worker: WorkerId, id: PlanId) -> u64 {
        let spill_bytes = self.members.get(worker).map_or(0, |member| member.facts().spill_bytes);
        self.studies.get(&id).map_or(0, |study| study.plan().needs.with_spill(spill_bytes))
    }

    /// Returns the number of granted instances.
    pub(in crate::manager) fn grant(
        &mut self,
        worker: WorkerId,
        id: PlanId,
        bucket: BucketId,
        reason: GrantReason,
    ) -> usize {
        let lease = self.next_lease();
        let most = self.max_instances(worker, id, bucket);
        let link = self.members.get(worker).and_then(WorkerEntry::link);
        let has_slot = self.has_idle_slot(worker);
        let Some(study) = self.studies.get_mut(&id) else { return 0 };
        let bucket = most.map_or(bucket, |most| study.split_front(bucket, most));
        let Some(mut work) = study.grant(bucket, worker, lease, self.now) else { return 0 };
        study.measure_overhead(lease, (bucket, worker), (has_slot, link), self.now);
        // The facts of a study must precede its first bucket.
        self.send_study(worker, id);
        self.use_tile(worker, id, &mut work);
        let instances = work.instances.len();
        self.granted += instances;
        self.effects.push_back(Effect::Assign { worker, study: id, lease, work, reason });
        instances
    }

    pub(super) fn next_lease(&mut self) -> LeaseId {
        // A worker may have reattached any lease, also one with an id that this manager would grant next.
        while self.studies.values().any(|study| study.leased(LeaseId(self.next_lease)).is_some()) {
            self.next_lease += 1;
        }
        let lease = LeaseId(self.next_lease);
        self.next_lease += 1;
        lease
    }

    pub(super) fn send_study(&mut self, worker: WorkerId, id: PlanId) {
        let suited = self.members.get_mut(worker).and_then(|member| member.studies.get_mut(&id));
        if suited.is_some_and(|suited| !std::mem::replace(&mut suited.introduced, true)) {
            self.effects.push_back(Effect::Introduce { worker, study: id });
        }
    }
}
