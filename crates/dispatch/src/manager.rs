//! State machine of the manager: assigns the buckets of several studies to workers that join and leave.
//!
//! Events: studies are submitted and canceled, workers join, request, report, return instances, drain and leave, and time
//! passes. After each, call [`Manager::poll_effect`] until it returns `None`. [`Study`] tracks the instances of one study.
//! The manager picks the next study and the next worker. It keeps no results, reads no clock and sends
//! nothing: time is an argument, and the shell performs the effects.
//!
//! `scheduling` grants ready buckets to waiting workers (`queue`), `tiles` has the workers of each tile, `rebalance` finds work for idle workers, `drain`
//! lets a worker leave without losing its regions, `time_limit` handles workers that end at a known time, `speed`
//! measures workers, `isolation` reserves workers for suspect instances, `reattach` restores the leases and regions
//! of a reconnected worker, `replicas` copies regions that must survive their worker. `members` is the manager's
//! record of each worker, `reports` handles reports about leased instances, `queries` answers the shell, and `effect`
//! lists the manager's effects.

mod check;
mod drain;
mod effect;
mod isolation;
mod members;
mod queries;
mod queue;
mod reattach;
mod rebalance;
mod replicas;
mod reports;
mod scheduling;
mod speed;
mod tiles;
mod time_limit;

use crate::message::GrantReason;
use crate::plan::{ExecutionPlan, PlanError};
use crate::study::{self, Merged, NewBuckets, ReplacementPlan, Study};
use crate::{InstanceId, PlanId, WorkerId};
pub use effect::Effect;
pub use members::WorkerInfo;
use members::{Members, StudyFit, WorkerEntry};
use queue::Queue;
use replicas::Replicas;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;
use tiles::Tiles;

/// Lease ids of one manager start. The ids of the next epoch begin after them, so no lease id occurs twice.
const LEASES_OF_AN_EPOCH: u64 = 1 << 40;

/// State machine of the manager: workers, studies and the grants between them.
#[derive(Debug)]
pub struct Manager {
    studies: BTreeMap<PlanId, Study>,
    members: Members,
    /// Members reserved for isolation: they get no grant until they are empty, since an isolated bucket waits.
    reserved: BTreeSet<WorkerId>,
    queue: Queue,
    /// Workers whose query was refused since the last tick, with the path of their next task.
    refused: BTreeMap<WorkerId, Duration>,
    replicas: Replicas,
    next_lease: u64,
    /// Time of the last event, on the shell's clock.
    now: Duration,
    /// Grace period without grants: workers of an earlier manager may still reattach.
    holding: bool,
    /// Among buckets of equal rank, a worker gets the one with the fewest bytes to transfer.
    by_data: bool,
    stopping: bool,
    /// Instances granted in one event, at most.
    max_granted: usize,
    /// Instances granted in this event.
    granted: usize,
    tiles: Tiles,
    /// Drops ended studies.
    dispose: fn(Study),
    effects: VecDeque<Effect>,
}

impl Manager {
    /// Creates an empty manager. `epoch` counts manager starts and fences older leases.
    #[must_use]
    pub fn new(epoch: u32) -> Self {
        Self {
            studies: BTreeMap::new(),
            members: Members::default(),
            reserved: BTreeSet::new(),
            queue: Queue::default(),
            refused: BTreeMap::new(),
            replicas: Replicas::default(),
            // Cannot overflow below 2^24 manager starts.
            next_lease: u64::from(epoch) * LEASES_OF_AN_EPOCH,
            now: Duration::ZERO,
            holding: false,
            by_data: true,
            stopping: false,
            max_granted: usize::MAX,
            granted: 0,
            tiles: Tiles::default(),
            dispose: drop,
            effects: VecDeque::new(),
        }
    }

    /// Grants buckets in the plan's order, without regard to locality.
    #[must_use]
    pub fn without_locality(self) -> Self {
        Self { by_data: false, ..self }
    }

    /// Ends the grants of an event after this number of instances, so that no event takes long. The shell continues them with
    /// [`handle_grants`](Self::handle_grants).
    #[must_use]
    pub fn with_max_granted(self, instances: usize) -> Self {
        Self { max_granted: instances, ..self }
    }

    /// Passes ended studies to a function. Dropping a study of a million instances takes a tenth of a second, so the shell
    /// drops it on another thread.
    #[must_use]
    pub fn disposing(self, dispose: fn(Study)) -> Self {
        Self { dispose, ..self }
    }

    /// Adds a study of this plan (see [`handle_start`](Self::handle_start)). Its `finished` instances have been reported
    /// before (see [`Study::resume`]).
    ///
    /// # Errors
    /// [`PlanError`] when the plan breaks one of its rules.
    pub fn handle_submit(
        &mut self,
        id: PlanId,
        plan: ExecutionPlan,
        finished: &BTreeSet<InstanceId>,
    ) -> Result<(), PlanError> {
        self.handle_start(id, Study::resume(plan, finished)?);
        Ok(())
    }

    /// Adds a study in its initial state, which takes as long to build as to plan. A study without open instances is
    /// complete at once.
    pub fn handle_start(&mut self, id: PlanId, mut study: Study) {
        study.begin_at(self.now);
        study.adopt_homes(|tile| self.tiles.home(tile));
        for (_, member) in self.members.iter_mut() {
            member.studies.insert(id, StudyFit::of(member.facts(), study.plan()));
        }
        self.studies.insert(id, study);
        // Before any grant: a study without open instances completes here.
        self.follow(id);
        self.schedule();
    }

    /// Cancels a study: revokes its leases and releases its regions.
    pub fn handle_cancel(&mut self, id: PlanId) {
        let Some(mut study) = self.studies.remove(&id) else { return };
        // Revoked before the release: without their regions, the buckets would report missing inputs.
        for (worker, lease) in study.all_leases() {
            self.effects.push_back(Effect::Revoke { worker, study: id, lease });
        }
        let held = study.cancel();
        if !held.is_empty() {
            self.effects.push_back(Effect::Study(id, study::Effect::Release(held)));
        }
        self.forget(id);
        (self.dispose)(study);
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
        let suited = |(id, study): (&PlanId, &Study)| (*id, StudyFit::of(&facts, study.plan()));
        let studies = self.studies.iter().map(suited).collect();
        let worker = self.members.add(facts, studies);
        assert!(!self.reserved.contains(&worker), "{worker} is new, and reserved for isolation");
        debug_assert!(self.queue.count(worker) == (0, 0), "{worker} is new, and waits for a bucket");
        if self.stopping {
            // The earlier broadcast has not reached this worker. The other workers ignore the repetition.
            self.effects.push_back(Effect::Stop);
        }
        self.replan();
        worker
    }

    /// Adds operations that a worker can run from now on, by name and version. Its requests are served by buckets with them.
    pub fn handle_operations(&mut self, worker: WorkerId, operations: BTreeSet<(String, u32)>) {
        let Some(member) = self.members.get_mut(worker) else { return };
        if !member.add_operations(operations) {
            return;
        }
        for (id, study) in &self.studies {
            let runs = StudyFit::of(member.facts(), study.plan()).runs;
            if let Some(known) = member.studies.get_mut(id) {
                known.runs = runs;
            }
        }
        self.replan();
        self.schedule();
    }

    /// Handles a worker's request for `buckets` more. With `after`, the request is for one bucket of a later stage than that
    /// and replaces an earlier such request. Requests of unknown workers are ignored: they have left.
    pub fn handle_request(&mut self, worker: WorkerId, buckets: u32, after: Option<u32>) {
        // The request of a draining worker has crossed the drain message.
        let Some(member) = self.members.get_mut(worker).filter(|member| buckets > 0 && !member.is_draining())
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
                // A worker is queued once, whatever the number of buckets that it has requested.
                if member.requested == 0 {
                    self.queue.push(worker);
                }
                // Saturates: the worker sends the number.
                member.requested = member.requested.saturating_add(buckets);
            }
        }
        self.schedule();
    }

    /// Handles the query of a worker before it runs a last task of an instance, with a path of `longer_than`. Grants a ready
    /// bucket with a longer path, if there is one. [`Effect::QueryAnswer`] follows. Otherwise busy workers are asked for one at
    /// the next tick, for later queries.
    pub fn handle_query(&mut self, worker: WorkerId, longer_than: Duration) {
        let Some(member) = self.members.get(worker) else { return };
        let may_get = !member.is_draining() && !self.stopping && !self.holding;
        // Also of the tiles of other workers, whose last tasks can wait as well.
        let found = self.choose_from(worker, None, true).filter(|(id, bucket)| {
            let study = self.studies.get(id);
            may_get && study.is_some_and(|study| study.path(*bucket) > longer_than)
        });
        if let Some((id, bucket)) = found {
            self.grant(worker, id, bucket, GrantReason::Request);
            // The bucket's tile is the worker's own now, so its waiting request may take more of the tile.
            self.schedule();
        } else {
            self.refused.insert(worker, longer_than);
        }
        self.effects.push_back(Effect::QueryAnswer { worker, found: found.is_some() });
    }

    /// Moves unstarted instances into other buckets (see [`Study::handle_replanned`]).
    ///
    /// # Errors
    /// [`PlanError`] when the buckets contradict the plan. Nothing changes then.
    pub fn handle_replanned(&mut self, id: PlanId, new: NewBuckets) -> Result<Merged, PlanError> {
        let Some(study) = self.studies.get_mut(&id) else { return Ok(Merged::default()) };
        let merged = study.handle_replanned(new)?;
        self.schedule();
        Ok(merged)
    }

    /// Moves all unstarted instances into the buckets of another plan (see [`Study::handle_replacement`]). Workers with enough
    /// memory for that plan get work of it from now on.
    ///
    /// # Errors
    /// [`PlanError`] when the plan contradicts the present one or leaves out an unstarted instance. Nothing changes then.
    pub fn handle_replacement(&mut self, id: PlanId, plan: ReplacementPlan) -> Result<Merged, PlanError> {
        let Some(study) = self.studies.get_mut(&id) else { return Ok(Merged::default()) };
        let merged = study.handle_replacement(plan)?;
        for (_, member) in self.members.iter_mut() {
            let suited = StudyFit::of(member.facts(), study.plan());
            if let Some(known) = member.studies.get_mut(&id) {
                known.runs = suited.runs;
            }
        }
        self.schedule();
        Ok(merged)
    }

    /// Removes a worker. `lost` marks a worker that left without a message: the crash count of its leased
    /// instances increases.
    pub fn handle_leave(&mut self, worker: WorkerId, lost: bool) {
        if !self.members.remove(worker) {
            return;
        }
        self.reserved.remove(&worker);
        self.queue.remove(worker);
        self.refused.remove(&worker);
        self.tiles.remove_worker(worker);
        self.retarget_replicas(worker);
        // Grants follow after all studies: one that has not handled the departure still names the worker as a holder.
        let ids: Vec<PlanId> = self.studies.keys().copied().collect();
        for id in ids {
            if let Some(study) = self.studies.get_mut(&id) {
                study.handle_leave(worker, lost);
            }
            self.follow(id);
        }
        assert!(self.leases_of(worker) == 0, "{worker} has left the manager, and has leases");
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
            let ended = self.studies.remove(&id);
            let open = ended.as_ref().map_or(0, Study::unfinished);
            assert!(open == 0, "{id} is complete with {open} open instances");
            ended.iter().for_each(|study| self.keep_homes(study));
            self.forget(id);
            ended.map(self.dispose);
        }
    }

    fn forget(&mut self, id: PlanId) {
        self.end_replicas(id);
        for (worker, member) in self.members.iter_mut() {
            member.copied.retain(|(study, _), _| *study != id);
            if member.studies.remove(&id).is_some_and(|suited| suited.introduced) {
                self.effects.push_back(Effect::Over { worker, study: id });
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
