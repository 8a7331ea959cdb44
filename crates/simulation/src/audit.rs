//! Audit: an independent model of the manager, built from the plans, the events and the manager's effects, without
//! access to its state.
//!
//! Among others, it checks these rules: an instance finishes once unless it was reopened, and is reopened only as far
//! back as needed. Lease ids are unique, and a lease is granted twice only for a straggler. Studies that share workers
//! get equal shares. A worker gets only buckets that it can run, and nothing beside a suspect instance. Inputs exist. A
//! drain loses nothing. Parts of the audit are quadratic: use it for studies of some hundred instances.

mod apply_event;
mod apply_report;
mod grant;
mod replicas;
mod study;
mod throughput;
mod tiles;

use crate::event::{Event, ManagerReply};
use pleach_dispatch::manager::{Effect, Manager, WorkerInfo};
use pleach_dispatch::study::{Effect as Happened, Study};
use pleach_dispatch::{InstanceId, LeaseId, PlanId, WorkerId};
use pleach_regions::RegionKey;
use replicas::{Asker, PendingReplica};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use study::{Fate, StudyModel};
use thiserror::Error;
use throughput::ThroughputModel;
use tiles::TileModel;

/// Crash counts: the manager isolates an instance from [`SUSPECTED_AFTER`], in groups of a [`GROUPS`]th of the smallest lost
/// lease, and fails it after [`GIVEN_UP_AFTER`] crashes alone.
const SUSPECTED_AFTER: u32 = 2;
const GROUPS: usize = 16;
const GIVEN_UP_AFTER: u32 = 3;

/// Number of missing-input reports of an instance that makes the manager fail it.
const MAX_LACKED: u32 = 10;

/// A broken rule.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Violation {
    /// The manager's redundant state is inconsistent.
    #[error("inconsistent state of the manager: {0}")]
    InvariantBroken(String),
    /// An effect breaks a rule.
    #[error("{rule}: {effect}")]
    Effect {
        /// The rule.
        rule: &'static str,
        /// The effect, or other data that shows the violation.
        effect: String,
    },
    /// A report counted although it should not, or the reverse.
    #[error("wrong reply {answer} to {event}")]
    Answer {
        /// The event.
        event: String,
        /// The manager's reply.
        answer: String,
    },
}

/// Creates the violation of a rule by an effect.
fn breach(rule: &'static str, effect: &impl std::fmt::Debug) -> Violation {
    Violation::Effect { rule, effect: format!("{effect:?}") }
}

/// Requires a condition of an effect.
fn require(holds: bool, rule: &'static str, effect: &impl std::fmt::Debug) -> Result<(), Violation> {
    if holds { Ok(()) } else { Err(breach(rule, effect)) }
}

#[derive(Clone, Debug)]
struct WorkerModel {
    facts: WorkerInfo,
    /// Studies introduced to it.
    notified: BTreeSet<PlanId>,
    /// Buckets requested and not granted yet.
    requested: u32,
    wants_after: Option<u32>,
    draining: bool,
    /// Time limit.
    end: Option<Duration>,
    /// Stages of studies that it lacks the time for, as shown by returned instances.
    late: BTreeSet<(PlanId, usize)>,
    speed: ThroughputModel,
}

/// Independent model of a manager.
#[derive(Clone, Debug, Default)]
pub struct Audit {
    studies: BTreeMap<PlanId, StudyModel>,
    workers: BTreeMap<WorkerId, WorkerModel>,
    last_lease: Option<LeaseId>,
    /// The last bucket of the event under check that answers a request: its worker, study and stage, and the number of short
    /// buckets that came along.
    answer: Option<(WorkerId, PlanId, u32, usize)>,
    tiles: TileModel,
    holding: bool,
    stopping: bool,
    /// The manager's time, set by the last tick.
    now: Duration,
    /// Leases that must be revoked.
    revoked: BTreeSet<(WorkerId, PlanId, LeaseId)>,
    /// Instances that the event under check must reopen.
    to_reopen: BTreeMap<PlanId, BTreeSet<InstanceId>>,
    /// Regions of the study that is being canceled.
    given_up: BTreeSet<RegionKey>,
    /// Replicas that workers wait for.
    asks: BTreeMap<Asker, PendingReplica>,
    /// Fetches from a draining worker without an answer, with the worker that was asked, and the fetches that failed.
    copying: BTreeMap<(WorkerId, PlanId, RegionKey), WorkerId>,
    could_not: BTreeSet<(WorkerId, PlanId, RegionKey, WorkerId)>,
    /// Studies that the event under check has ended.
    ended: BTreeSet<PlanId>,
}

impl Audit {
    /// Checks one event, its time since the beginning, the manager's reply, and all resulting effects. `plans` are the
    /// plans that events refer to.
    ///
    /// # Errors
    /// Returns the first violation.
    pub fn check(
        &mut self,
        now: Duration,
        event: &Event,
        answer: &ManagerReply,
        effects: &[Effect],
        plans: &[pleach_dispatch::plan::ExecutionPlan],
        manager: &Manager,
    ) -> Result<(), Violation> {
        // Only ticks carry the time to the manager, so the model must not know a later one.
        if *event == Event::Tick {
            self.now = self.now.max(now);
        }
        // The event comes first: effects are checked against the state that the event leaves.
        self.apply_event(event, answer, plans)?;
        self.answer = None;
        for effect in effects {
            self.follow(event, effect, manager)?;
        }
        self.settle(event, manager)?;
        manager.sanity_check().map_err(Violation::InvariantBroken)
    }

    /// Returns the leases: study, lease, worker, and unreported instances.
    pub fn granted(&self) -> impl Iterator<Item = (PlanId, LeaseId, WorkerId, &BTreeSet<InstanceId>)> {
        let of = |(study, model): (&PlanId, &'_ StudyModel)| {
            let study = *study;
            let leases: Vec<_> = model.leases.keys().map(|lease| (study, *lease)).collect();
            leases
        };
        let all: Vec<(PlanId, LeaseId)> = self.studies.iter().flat_map(of).collect();
        all.into_iter().map(|(study, lease)| {
            let granted = &self.studies[&study].leases[&lease];
            (study, lease, granted.worker, &granted.open)
        })
    }

    /// Returns the present workers.
    pub fn workers(&self) -> impl Iterator<Item = WorkerId> {
        self.workers.keys().copied()
    }

    /// Returns the studies that are neither complete nor canceled.
    pub fn studies(&self) -> impl Iterator<Item = PlanId> {
        self.studies.keys().copied()
    }

    /// Returns the regions of a study that a worker holds.
    #[must_use]
    pub fn regions_of(&self, study: PlanId, worker: WorkerId) -> Vec<RegionKey> {
        let holders = self.studies.get(&study).map(|model| &model.holders);
        let held = holders.into_iter().flatten().filter(|(_, holders)| holders.contains(&worker));
        held.map(|(key, _)| *key).collect()
    }

    /// Returns the instances of a study that are done.
    #[must_use]
    pub fn done(&self, study: PlanId) -> BTreeSet<InstanceId> {
        let fates = self.studies.get(&study).map(|model| &model.fate);
        let all = (0..).map(InstanceId).zip(fates.into_iter().flatten());
        all.filter(|(_, fate)| **fate == Fate::Done).map(|(id, _)| id).collect()
    }

    /// Applies an effect to the model and checks whether it is allowed.
    fn follow(&mut self, event: &Event, effect: &Effect, manager: &Manager) -> Result<(), Violation> {
        match effect {
            Effect::Introduce { worker, study } => self.introduced(*worker, *study, effect),
            Effect::Assign { worker, study, lease, work, reason } => {
                self.assigned(event, *worker, *study, *lease, work, *reason)?;
                self.is_fair(*study, *lease, manager, effect)
            }
            Effect::TileShared { worker, tile } => {
                let is_new = self.tiles.told.insert((*worker, *tile));
                require(is_new, "worker informed twice that a tile is shared", effect)
            }
            Effect::Revoke { worker, study, lease } => require(
                self.revoked.remove(&(*worker, *study, *lease)),
                "lease revoked without a reason",
                effect,
            ),
            Effect::QueryAnswer { worker, found } => self.query_answered(event, *worker, *found, effect),
            Effect::Share { worker, study, lease, longer_than } => {
                self.steal_requested(event, (*worker, *study, *lease), *longer_than, effect)
            }
            Effect::Copy { worker, study, key, from, replica: Some(_) } => {
                self.follow_replica((*worker, *study, *key, *from), effect)
            }
            Effect::Replicated { worker, study, lease, instance } => {
                self.is_replicated((*worker, *study, *lease, *instance), effect)
            }
            Effect::Copy { worker, study, key, from, replica: None } => {
                let fits = self.workers.get(worker).is_some_and(|model| !model.draining)
                    && self.workers.get(from).is_some_and(|model| model.draining);
                let held = self.studies.get(study).is_some_and(|model| {
                    model.is_used(*key)
                        && model.holders.get(key).is_some_and(|holders| holders.contains(from))
                });
                let of = (*from, *study, *key);
                self.copying.insert(of, *worker);
                let could = !self.could_not.contains(&(of.0, of.1, of.2, *worker));
                require(fits && held && could && worker != from, "fetch that is not allowed", effect)
            }
            Effect::Study(study, happened) => self.happened(event, *study, happened),
            Effect::Over { worker, study } => {
                let knew = self.workers.get_mut(worker).is_some_and(|model| model.notified.remove(study));
                require(
                    knew && self.ended.contains(study),
                    "end of a study that the worker does not have",
                    effect,
                )
            }
            Effect::Replan(study) => {
                require(self.studies.contains_key(study), "replan of an unknown study", effect)
            }
            Effect::Drain(worker) => {
                let fresh = self.workers.get_mut(worker).filter(|model| !model.draining);
                let fresh = fresh.filter(|_| matches!(event, Event::Drain { worker: of } if of == worker));
                let model = fresh.ok_or_else(|| breach("second or unrequested drain", effect))?;
                (model.draining, model.requested, model.wants_after) = (true, 0, None);
                Ok(())
            }
            Effect::Dismiss(worker) => self.dismissed(*worker, effect),
            Effect::Stop => require(self.stopping, "unrequested stop", effect),
            Effect::Stopped => {
                require(self.stopping && self.workers.is_empty(), "stopped before all workers left", effect)
            }
        }
    }

    /// Checks a dismissal: a worker may leave if no sole copy is lost, or if no worker is left to take it.
    fn dismissed(&mut self, worker: WorkerId, effect: &Effect) -> Result<(), Violation> {
        let draining = self.workers.get(&worker).is_some_and(|model| model.draining);
        let busy = self.studies.values().any(|model| model.leases_of(worker) > 0);
        let others = || self.workers.iter().filter(|(_, model)| !model.draining).map(|(other, _)| *other);
        let could = |study: PlanId, key: RegionKey| {
            others().any(|other| !self.could_not.contains(&(worker, study, key, other)))
        };
        let missed =
            self.studies.iter().any(|(study, model)| model.only_with(worker).any(|key| could(*study, key)));
        require(draining && !busy, "worker with leases dismissed", effect)?;
        require(!missed, "worker with sole copies dismissed", effect)
    }

    fn happened(&mut self, event: &Event, study: PlanId, happened: &Happened) -> Result<(), Violation> {
        if let (Event::Cancel { study: canceled }, Happened::Release(keys)) = (event, happened)
            && *canceled == study
        {
            let held = std::mem::take(&mut self.given_up);
            return require(held.iter().eq(keys), "wrong regions released for a canceled study", happened);
        }
        let Some(model) = self.studies.get_mut(&study) else {
            return Err(breach("effect for an ended study", happened));
        };
        match happened {
            Happened::Release(keys) => {
                let needed = keys.iter().any(|key| model.is_used(*key));
                keys.iter().for_each(|key| _ = model.holders.remove(key));
                require(!needed, "region released before its last reader", happened)
            }
            Happened::Finished(id) => {
                let is_open = model.fate(*id) == Some(Fate::Open) && model.leased(*id).next().is_none();
                require(is_open, "instance finished twice or by another worker", happened)?;
                let reported = matches!(event, Event::Done { instance, study: of, .. }
                    if instance == id && *of == study);
                let unexecuted = matches!(event, Event::Holds { .. })
                    && model.plan.instances.at(*id).outputs.iter().all(|output| !output.reported)
                    && (model.is_stored(*id) || model.has_no_reader(*id));
                require(reported || unexecuted, "instance finished without a report", happened)?;
                model.close(*id, Fate::Done);
                if let Event::Done { worker, .. } = event {
                    model.hold(*worker, *id);
                    model.losses.remove(id);
                }
                Ok(())
            }
            Happened::Reopened(id) => {
                let expected = self.to_reopen.entry(study).or_insert_with(|| model.instances_to_reopen());
                require(expected.remove(id), "instance reopened without a reason", happened)?;
                model.reopen(*id);
                Ok(())
            }
            Happened::Failed { instance, origin, cause } => {
                let is_open = model.fate(*instance) == Some(Fate::Open);
                let is_free = model.leased(*instance).next().is_none();
                require(is_open && is_free, "instance failed that is leased or not open", happened)?;
                let lacked = model.lacked.get(instance).is_some_and(|times| *times >= MAX_LACKED);
                let kills = model.losses.get(instance).is_some_and(|lost| lost.alone >= GIVEN_UP_AFTER);
                let itself = match (event, cause.at.as_str()) {
                    (Event::Failed { instance: failed, .. }, "t1") => failed == instance,
                    (Event::Lacking { .. }, "input") => lacked,
                    (_, "worker") => kills,
                    _ => false,
                };
                let right = if origin == instance { itself } else { model.has_failed_parent(*instance) };
                require(right, "instance failed without a reason", happened)?;
                model.close(*instance, Fate::Failed);
                Ok(())
            }
            Happened::Revoke { .. } => Err(breach("revocation not passed on by the manager", happened)),
            Happened::Complete => {
                require(
                    model.is_complete() && model.leases.is_empty(),
                    "incomplete study reported as complete",
                    happened,
                )?;
                self.studies.remove(&study);
                self.ended.insert(study);
                Ok(())
            }
        }
    }

    /// Checks the state after all effects of an event.
    fn settle(&mut self, event: &Event, manager: &Manager) -> Result<(), Violation> {
        self.tiles.settle()?;
        let kept = std::mem::take(&mut self.given_up);
        require(kept.is_empty(), "regions of an ended study not released", &kept)?;
        let unrevoked = std::mem::take(&mut self.revoked);
        require(unrevoked.is_empty(), "lease not revoked", &unrevoked)?;
        let left: BTreeSet<_> = std::mem::take(&mut self.to_reopen).into_values().flatten().collect();
        require(left.is_empty(), "instance with lost outputs not reopened", &left)?;
        let ended = std::mem::take(&mut self.ended);
        let knows = self.workers.iter().find(|(_, model)| !model.notified.is_disjoint(&ended));
        require(knows.is_none(), "worker not informed of the end of a study", &knows)?;
        for (id, model) in &self.studies {
            let lost = model.instances_to_reopen();
            require(lost.is_empty(), "instance with lost outputs not reopened", &lost)?;
            require(!model.is_complete(), "end of a study not reported", id)?;
            let brought = match event {
                Event::Holds { study, keys, .. } if study == id => keys.as_slice(),
                _ => &[],
            };
            let stored = brought.iter().filter_map(|key| model.producers.get(key)).copied().find(|id| {
                let is_open = model.fate(*id) == Some(Fate::Open);
                is_open && model.leased(*id).next().is_none() && model.is_stored(*id)
            });
            require(stored.is_none(), "instance open although its outputs exist", &stored)?;
            let open = model.fate.iter().filter(|fate| **fate == Fate::Open).count();
            let counted = manager.study(*id).map(Study::unfinished);
            require(counted == Some(open), "wrong number of open instances", &(id, counted, open))?;
        }
        self.no_stuck_waiter()?;
        self.is_work_conserving(manager)
    }
}
