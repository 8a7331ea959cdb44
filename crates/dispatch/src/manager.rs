//! The manager: workers that come and go, studies that share them, and who gets the next bucket.
//!
//! Events: studies are submitted and canceled, workers join, ask, report, hand back, drain and leave, and time passes. After
//! each, call [`Manager::poll_effect`] until it returns `None`. What becomes of a study's instances is the
//! [`Study`]'s; this says which study's turn it is and which worker's, and keeps no results, reads no clock and sends
//! nothing: time is an argument, and effects are for the shell to perform.
//!
//! `schedule` gives ready buckets to waiting workers (`queue`), `help` finds something for workers that are idle while others
//! are not, `drain` lets a worker go without losing what it holds, `end` minds those that end at a known time, `speed` measures
//! how fast workers are, `alone` finds somebody for what must run by itself, `attach` takes up what a worker had before,
//! `replicas` has copied what is to survive its worker; `member` is what it knows of a worker, `effect` what it has done.

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

/// Lease ids of one start of the manager: those of the next one begin behind them, so that no lease is ever given twice.
const LEASES_OF_AN_EPOCH: u64 = 1 << 40;

/// See the module.
#[derive(Debug)]
pub struct Manager {
    studies: BTreeMap<PlanId, Study>,
    members: BTreeMap<WorkerId, WorkerEntry>,
    /// Members that are to leave and have not been dismissed.
    draining: BTreeSet<WorkerId>,
    /// Members that have to end at a known time.
    ending: BTreeSet<WorkerId>,
    speeds: Speeds,
    /// Members that get nothing more until they have nothing: something waits that has to be alone.
    kept: BTreeSet<WorkerId>,
    queue: Queue,
    replicas: Replicas,
    next_worker: u32,
    next_lease: u64,
    /// When the last event was, since whatever the shell counts from.
    now: Duration,
    /// Nothing is granted: workers of an earlier manager may still bring what they have.
    holding: bool,
    /// Of buckets of equal turn, a worker gets the one for which least has to be brought to it.
    by_data: bool,
    stopping: bool,
    effects: VecDeque<Effect>,
}

impl Manager {
    /// A manager in its `epoch`-th life, without studies and workers.
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

    /// The same, which gives buckets in the plan's order, wherever the data is.
    #[must_use]
    pub fn without_locality(self) -> Self {
        Self { by_data: false, ..self }
    }

    /// Takes a study of which `finished` instances have reported before (see [`Study::resume`]); one of which nothing is
    /// open is complete at once.
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

    /// Ends a study: nothing of it is wanted any more.
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

    /// Halts a study: nothing more of it is granted, and its workers keep what they have until it is canceled, or another
    /// manager takes it up ([`handle_adopt`](Self::handle_adopt)).
    pub fn handle_suspend(&mut self, id: PlanId) {
        self.studies.get_mut(&id).into_iter().for_each(Study::halt);
    }

    /// A worker is there; it gets nothing until it asks, and is told to leave when the manager is about to stop.
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

    /// A worker asks for `buckets` more; with `after`, for one of a later stage than that, which takes the place of an
    /// earlier such request. Unknown workers are ignored: they have left.
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

    /// An instance is finished. Returns whether the report counted: one under a lease that is over does not, since another
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

    /// An instance failed, and with it everything that reads from it. Returns whether the report counted.
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

    /// An instance lacks regions that were to be had from others (see [`Study::handle_missing_input`]).
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

    /// A worker hands back instances of a lease that it has not begun.
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

    /// Puts what nobody has begun into other buckets (see [`Study::handle_replanned`]).
    ///
    /// # Errors
    /// [`PlanError`] when it is about a state that is over. Nothing changes then.
    pub fn handle_replanned(&mut self, id: PlanId, buckets: Vec<BucketPlan>) -> Result<(), PlanError> {
        let Some(study) = self.studies.get_mut(&id) else { return Ok(()) };
        study.handle_replanned(buckets)?;
        self.schedule();
        Ok(())
    }

    /// Puts everything unstarted into the buckets of another plan (see [`Study::handle_recut`]). Workers whose memory that
    /// plan suits get work of it from now on.
    ///
    /// # Errors
    /// [`PlanError`] when it is no plan for the same instances. Nothing changes then.
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

    /// A worker is gone; `lost`: without a word, and what it executed may be to blame.
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

    /// Nothing more is assigned; what runs may still be reported. [`Effect::Stopped`] follows when all workers have
    /// left, unless all studies are complete before.
    pub fn handle_stop(&mut self) {
        if !self.stopping && !self.studies.is_empty() {
            self.stopping = true;
            self.effects.push_back(Effect::Stop);
            self.end_if_stopped();
        }
    }

    /// The next thing to do, in order.
    pub fn poll_effect(&mut self) -> Option<Effect> {
        self.effects.pop_front()
    }

    /// A study that is neither complete nor canceled.
    #[must_use]
    pub fn study(&self, id: PlanId) -> Option<&Study> {
        self.studies.get(&id)
    }

    /// Processors of workers that are not about to leave.
    #[must_use]
    pub fn slots(&self) -> u32 {
        let slots = self.members.values().filter(|member| !member.draining).map(|member| member.facts.slots);
        slots.fold(0, u32::saturating_add)
    }

    /// Workers that are not about to leave and can run some stage of a study: they have its operations and enough memory.
    #[must_use]
    pub fn able_workers(&self, id: PlanId) -> usize {
        let runs =
            |member: &WorkerEntry| member.studies.get(&id).is_some_and(|suited| suited.runs.contains(&true));
        self.members.values().filter(|member| !member.draining && runs(member)).count()
    }

    /// Leases that a worker has, and whether it is about to leave.
    #[must_use]
    pub fn worker(&self, worker: WorkerId) -> Option<(usize, bool)> {
        let member = self.members.get(&worker)?;
        Some((self.leases_of(worker), member.draining))
    }

    /// What is known of a worker.
    #[must_use]
    pub fn worker_info(&self, worker: WorkerId) -> Option<&WorkerInfo> {
        self.members.get(&worker).map(|member| &member.facts)
    }

    /// Operations of the studies' stages that a worker lacks.
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

    /// Passes on what happened to a study; one that is complete is forgotten.
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
            if member.studies.remove(&id).is_some_and(|suited| suited.told) {
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
