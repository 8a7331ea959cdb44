//! State machine of the manager: assigns the buckets of several studies to workers that join and leave.
//!
//! Events: studies are submitted and canceled, workers join, request, report, return instances, drain and leave, and time
//! passes. After each, call [`Manager::poll_effect`] until it returns `None`. [`Study`] tracks the instances of one study.
//! The manager picks the next study and the next worker. It keeps no results, reads no clock and sends
//! nothing: time is an argument, and the shell performs the effects.
//!
//! `scheduling` grants ready buckets to waiting workers (`queue`), `rebalance` finds work for idle workers, `drain` lets a
//! worker leave without losing its regions, `time_limit` handles workers that end at a known time, `speed` measures
//! workers, `isolation` reserves workers for suspect instances, `reattach` restores the leases and regions of a
//! reconnected worker, `replicas` copies regions that must survive their worker. `worker_entry` is the manager's record of
//! a worker, `effect` lists the manager's effects.

mod check;
mod drain;
mod effect;
mod isolation;
mod queue;
mod reattach;
mod rebalance;
mod replicas;
mod scheduling;
mod speed;
mod time_limit;
mod worker_entry;

use crate::message::TaskFailure;
use crate::plan::{BucketPlan, ExecutionPlan, PlanError};
use crate::study::{self, Recut, Study};
use crate::{InstanceId, LeaseId, PlanId, WorkerId};
pub use effect::Effect;
use pleach_regions::RegionKey;
use queue::Queue;
use replicas::Replicas;
use speed::{Speed, Speeds};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;
pub use worker_entry::WorkerInfo;
use worker_entry::{StudyFit, WorkerEntry};

/// Lease ids of one manager start. The ids of the next epoch begin after them, so no lease id occurs twice.
const LEASES_OF_AN_EPOCH: u64 = 1 << 40;

/// State machine of the manager: workers, studies and the grants between them.
#[derive(Debug)]
pub struct Manager {
    studies: BTreeMap<PlanId, Study>,
    members: BTreeMap<WorkerId, WorkerEntry>,
    /// Draining members that have not been dismissed.
    draining: BTreeSet<WorkerId>,
    /// Members with a time limit.
    ending: BTreeSet<WorkerId>,
    speeds: Speeds,
    /// Members reserved for isolation: they get no grant until they are empty, since an isolated bucket waits.
    kept: BTreeSet<WorkerId>,
    queue: Queue,
    replicas: Replicas,
    next_worker: u32,
    next_lease: u64,
    /// Time of the last event, on the shell's clock.
    now: Duration,
    /// Grace period without grants: workers of an earlier manager may still reattach.
    holding: bool,
    /// Among buckets of equal rank, a worker gets the one with the fewest bytes to transfer.
    by_data: bool,
    stopping: bool,
    effects: VecDeque<Effect>,
}

impl Manager {
    /// Creates an empty manager. `epoch` counts manager starts and fences older leases.
    #[must_use]
    pub fn new(epoch: u32) -> Self {
        Self {
            studies: BTreeMap::new(),
            members: BTreeMap::new(),
            draining: BTreeSet::new(),
            ending: BTreeSet::new(),
            speeds: Speeds::default(),
            kept: BTreeSet::new(),
            queue: Queue::default(),
            replicas: Replicas::default(),
            next_worker: 0,
            next_lease: u64::from(epoch) * LEASES_OF_AN_EPOCH,
            now: Duration::ZERO,
            holding: false,
            by_data: true,
            stopping: false,
            effects: VecDeque::new(),
        }
    }

    /// Grants buckets in the plan's order, without regard to locality.
    #[must_use]
    pub fn without_locality(self) -> Self {
        Self { by_data: false, ..self }
    }

    /// Adds a study. Its `finished` instances have been reported before (see [`Study::resume`]). A study without open
    /// instances is complete at once.
    ///
    /// # Errors
    /// [`PlanError`] when the plan breaks one of its rules.
    pub fn handle_submit(
        &mut self,
        id: PlanId,
        plan: ExecutionPlan,
        finished: &BTreeSet<InstanceId>,
    ) -> Result<(), PlanError> {
        let mut study = Study::resume(plan, finished)?;
        study.begin_at(self.now);
        for member in self.members.values_mut() {
            member.studies.insert(id, StudyFit::of(&member.facts, study.plan()));
        }
        self.studies.insert(id, study);
        self.follow(id);
        self.schedule();
        Ok(())
    }

    /// Cancels a study: revokes its leases and releases its regions.
    pub fn handle_cancel(&mut self, id: PlanId) {
        let Some(mut study) = self.studies.remove(&id) else { return };
        for (worker, lease) in study.all_leases() {
            self.effects.push_back(Effect::Revoke { worker, study: id, lease });
        }
        let held = study.cancel();
        if !held.is_empty() {
            self.effects.push_back(Effect::Study(id, study::Effect::Release(held)));
        }
        self.forget(id);
        self.schedule();
    }

    /// Suspends a study: grants nothing more of it. Its workers keep their leases and regions until the study is canceled or
    /// reattached by another manager ([`handle_adopt`](Self::handle_adopt)).
    pub fn handle_suspend(&mut self, id: PlanId) {
        self.studies.get_mut(&id).into_iter().for_each(Study::halt);
    }

    /// Adds a worker. It gets no bucket until it sends a request. If the manager is stopping, [`Effect::Stop`]
    /// follows.
    pub fn handle_join(&mut self, facts: WorkerInfo) -> WorkerId {
        let worker = WorkerId(self.next_worker);
        self.next_worker += 1;
        let suited = |(id, study): (&PlanId, &Study)| (*id, StudyFit::of(&facts, study.plan()));
        let studies = self.studies.iter().map(suited).collect();
        let member = WorkerEntry {
            facts,
            wanted: 0,
            wants_later: false,
            draining: false,
            end: None,
            speed: Speed::default(),
            copied: BTreeMap::new(),
            studies,
        };
        self.speeds.add(member.facts.slots, member.speed);
        self.members.insert(worker, member);
        if self.stopping {
            self.effects.push_back(Effect::Stop);
        }
        self.replan();
        worker
    }

    /// Handles a worker's request for `buckets` more. With `after`, the request is for one bucket of a later stage than that
    /// and replaces an earlier such request. Requests of unknown workers are ignored: they have left.
    pub fn handle_request(&mut self, worker: WorkerId, buckets: u32, after: Option<u32>) {
        let Some(member) = self.members.get_mut(&worker).filter(|member| buckets > 0 && !member.draining)
        else {
            return;
        };
        match after {
            Some(stage) => {
                if std::mem::replace(&mut member.wants_later, true) {
                    self.queue.leave_after(worker);
                }
                self.queue.push_after(worker, stage as usize);
            }
            None => {
                if member.wanted == 0 {
                    self.queue.push(worker);
                }
                member.wanted = member.wanted.saturating_add(buckets);
            }
        }
        self.schedule();
    }

    /// Finishes an instance. Returns whether the report counted: a report under an expired lease is fenced, since another
    /// worker has the instance now.
    pub fn handle_done(
        &mut self,
        worker: WorkerId,
        id: PlanId,
        lease: LeaseId,
        instance: InstanceId,
    ) -> bool {
        let now = self.now;
        self.study_event(id, |study| study.handle_done(worker, lease, instance, now))
    }

    /// Fails an instance and everything that reads from it. Returns whether the report counted.
    pub fn handle_failed(
        &mut self,
        worker: WorkerId,
        id: PlanId,
        lease: LeaseId,
        instance: InstanceId,
        cause: &TaskFailure,
    ) -> bool {
        self.study_event(id, |study| study.handle_failed(worker, lease, instance, cause))
    }

    /// Handles an instance whose input regions could not be fetched from peers (see
    /// [`Study::handle_missing_input`]). Returns whether the report counted.
    pub fn handle_missing_input(
        &mut self,
        worker: WorkerId,
        id: PlanId,
        lease: LeaseId,
        instance: InstanceId,
        keys: &[RegionKey],
    ) -> bool {
        self.study_event(id, |study| study.handle_missing_input(worker, lease, instance, keys))
    }

    /// Takes back unstarted instances of a lease. Returns whether the lease belonged to the worker.
    pub fn handle_returned(
        &mut self,
        worker: WorkerId,
        id: PlanId,
        lease: LeaseId,
        instances: &[InstanceId],
    ) -> bool {
        if !instances.is_empty() {
            self.note_late(worker, id, lease);
        }
        self.study_event(id, |study| study.handle_returned(worker, lease, instances))
    }

    /// Moves unstarted instances into other buckets (see [`Study::handle_replanned`]).
    ///
    /// # Errors
    /// [`PlanError`] when the buckets refer to an outdated state. Nothing changes then.
    pub fn handle_replanned(&mut self, id: PlanId, buckets: Vec<BucketPlan>) -> Result<(), PlanError> {
        let Some(study) = self.studies.get_mut(&id) else { return Ok(()) };
        study.handle_replanned(buckets)?;
        self.schedule();
        Ok(())
    }

    /// Moves all unstarted instances into the buckets of another plan (see [`Study::handle_recut`]). Workers with enough
    /// memory for that plan get work of it from now on.
    ///
    /// # Errors
    /// [`PlanError`] when the plan has other instances. Nothing changes then.
    pub fn handle_recut(&mut self, id: PlanId, recut: Recut) -> Result<(), PlanError> {
        let Some(study) = self.studies.get_mut(&id) else { return Ok(()) };
        study.handle_recut(recut)?;
        for member in self.members.values_mut() {
            let suited = StudyFit::of(&member.facts, study.plan());
            if let Some(known) = member.studies.get_mut(&id) {
                known.runs = suited.runs;
            }
        }
        self.schedule();
        Ok(())
    }

    /// Removes a worker. `lost` marks a worker that left without a message: the crash count of its leased
    /// instances increases.
    pub fn handle_leave(&mut self, worker: WorkerId, lost: bool) {
        let Some(member) = self.members.remove(&worker) else { return };
        if !member.draining {
            self.speeds.remove(member.facts.slots, member.speed);
        }
        self.ending.remove(&worker);
        self.kept.remove(&worker);
        self.queue.remove(worker);
        self.draining.remove(&worker);
        self.retarget_replicas(worker);
        let ids: Vec<PlanId> = self.studies.keys().copied().collect();
        for id in ids {
            if let Some(study) = self.studies.get_mut(&id) {
                study.handle_leave(worker, lost);
            }
            self.follow(id);
        }
        self.replan();
        self.schedule();
        self.end_if_stopped();
    }

    /// Stops granting. Running instances may still be reported. [`Effect::Stopped`] follows when all workers have
    /// left, unless all studies complete before.
    pub fn handle_stop(&mut self) {
        if !self.stopping && !self.studies.is_empty() {
            self.stopping = true;
            self.effects.push_back(Effect::Stop);
            self.end_if_stopped();
        }
    }

    /// Returns the next effect, in order. `None` if none is pending.
    pub fn poll_effect(&mut self) -> Option<Effect> {
        self.effects.pop_front()
    }

    /// Returns a study that is neither complete nor canceled. `None` for any other.
    #[must_use]
    pub fn study(&self, id: PlanId) -> Option<&Study> {
        self.studies.get(&id)
    }

    /// Counts the slots of workers that are not draining.
    #[must_use]
    pub fn slots(&self) -> u32 {
        let slots = self.members.values().filter(|member| !member.draining).map(|member| member.facts.slots);
        slots.fold(0, u32::saturating_add)
    }

    /// Counts workers that are not draining and can run some stage of a study: they have its operations and enough memory.
    #[must_use]
    pub fn able_workers(&self, id: PlanId) -> usize {
        let runs =
            |member: &WorkerEntry| member.studies.get(&id).is_some_and(|suited| suited.runs.contains(&true));
        self.members.values().filter(|member| !member.draining && runs(member)).count()
    }

    /// Returns the number of leases of a worker and whether it drains. `None` if it has left.
    #[must_use]
    pub fn worker(&self, worker: WorkerId) -> Option<(usize, bool)> {
        let member = self.members.get(&worker)?;
        Some((self.leases_of(worker), member.draining))
    }

    /// Returns the facts that a worker reported when it joined. `None` if it has left.
    #[must_use]
    pub fn worker_info(&self, worker: WorkerId) -> Option<&WorkerInfo> {
        self.members.get(&worker).map(|member| &member.facts)
    }

    /// Returns the operations, by name and version, of the studies' stages that a worker does not have.
    #[must_use]
    pub fn missing_operations(&self, worker: WorkerId) -> Vec<(String, u32)> {
        let Some(operations) = self.members.get(&worker).and_then(|member| member.facts.operations.as_ref())
        else {
            return Vec::new();
        };
        let stages = self.studies.values().flat_map(|study| &study.plan().stages);
        let needed =
            stages.flat_map(|stage| stage.tasks.iter().map(|task| (task.operation.clone(), task.version)));
        let lacking: BTreeSet<_> = needed.filter(|operation| !operations.contains(operation)).collect();
        lacking.into_iter().collect()
    }

    fn leases_of(&self, worker: WorkerId) -> usize {
        self.studies.values().map(|study| study.leases_of(worker)).sum()
    }

    fn study_event(&mut self, id: PlanId, event: impl FnOnce(&mut Study) -> bool) -> bool {
        let Some(study) = self.studies.get_mut(&id) else { return false };
        let counted = event(study);
        self.follow(id);
        self.schedule();
        counted
    }

    /// Forwards the effects of a study. Forgets the study once it is complete.
    fn follow(&mut self, id: PlanId) {
        let Some(study) = self.studies.get_mut(&id) else { return };
        let mut complete = false;
        while let Some(effect) = study.poll_effect() {
            complete |= effect == study::Effect::Complete;
            self.effects.push_back(match effect {
                study::Effect::Revoke { worker, lease } => Effect::Revoke { worker, study: id, lease },
                effect => Effect::Study(id, effect),
            });
        }
        if complete {
            self.studies.remove(&id);
            self.forget(id);
        }
    }

    fn forget(&mut self, id: PlanId) {
        self.end_replicas(id);
        for (worker, member) in &mut self.members {
            member.copied.retain(|(study, _), _| *study != id);
            if member.studies.remove(&id).is_some_and(|suited| suited.introduced) {
                self.effects.push_back(Effect::Over { worker: *worker, study: id });
            }
        }
    }

    fn replan(&mut self) {
        self.effects.extend(self.studies.keys().map(|id| Effect::Replan(*id)));
    }

    fn end_if_stopped(&mut self) {
        if self.stopping && self.members.is_empty() && !self.studies.is_empty() {
            self.effects.push_back(Effect::Stopped);
        }
    }
}
