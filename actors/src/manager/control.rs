//! What operators, and the studies' own keepers, ask of the manager.

use super::study_run::{Replanner, RunningStudy, StudyRequest};
use super::view::ManagerView;
use super::{ConnectionId, ManagerActor, StudyOutcome};
use actix::prelude::*;
use pleach_dispatch::PlanId;
use pleach_dispatch::message::ToWorker;
use pleach_dispatch::plan::PlanError;
use pleach_dispatch::study::{self, Study};
use std::fmt;
use std::time::Duration;
use thiserror::Error;

/// Ends all studies early: what runs is finished, nothing more is started.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub struct StopAll;

/// Ends a manager that has no study left, and its workers.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub struct Shutdown;

/// Begins a study.
#[derive(Debug, Message)]
#[rtype(result = "Result<(), BeginError>")]
pub struct StartPlan {
    /// Its number, never used before.
    pub id: PlanId,
    /// The study.
    pub study: StudyRequest,
}

/// Why a study was not begun.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum BeginError {
    /// The plan breaks its own rules.
    #[error("the plan cannot be executed: {0}")]
    Plan(#[from] PlanError),
}

/// Ends a study early, whichever part of it runs; none of it is begun again.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub struct Cancel(pub u32);

/// A study of several parts goes on that an earlier start of the manager began: what workers have kept of it stays.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub struct RetainResults(pub u32);

/// No part of a study follows: workers need not keep anything of it.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub struct DropStudyResults(pub u32);

/// Halts a study: what is reported of it can no longer be kept. Nothing more of it is granted, what its workers report is
/// not taken, and they keep all that they have: the study's next manager is told, or it is canceled.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub struct SuspendStudy(pub PlanId);

/// Puts what nobody has begun of a study into the buckets of another plan, for workers with another amount of memory.
pub struct Recut {
    /// The study.
    pub id: PlanId,
    /// The other plan.
    pub recut: study::Recut,
    /// Takes the place of the study's replanner.
    pub replanner: Option<Box<dyn Replanner>>,
}

impl Message for Recut {
    type Result = Result<(), PlanError>;
}

impl fmt::Debug for Recut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recut").field("id", &self.id).finish_non_exhaustive()
    }
}

/// So many of a study's results are on disk.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub struct RecordDurable {
    /// The study.
    pub study: PlanId,
    /// Results reported, since the study was begun.
    pub records: u64,
}

/// Has a worker leave when it has nothing left that is needed.
#[derive(Debug, Message)]
#[rtype(result = "Result<(), DrainError>")]
pub struct DrainWorker {
    /// Its name.
    pub name: String,
}

/// Why a worker cannot be drained.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum DrainError {
    /// There is none of that name.
    #[error("no worker is named {name}; there are {there}")]
    Unknown {
        /// The name.
        name: String,
        /// Names there are.
        there: String,
    },
}

/// Gives out nothing for a while: workers of an earlier start of the manager come back with what they have.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub struct PauseGrants(pub Duration);

/// Asks how things are.
#[derive(Debug, Message)]
#[rtype(result = "ManagerView")]
pub struct GetView;

impl Handler<StopAll> for ManagerActor {
    type Result = ();

    fn handle(&mut self, StopAll: StopAll, ctx: &mut Self::Context) {
        self.core.handle_stop();
        self.apply_effects(ctx);
    }
}

impl Handler<Shutdown> for ManagerActor {
    type Result = ();

    fn handle(&mut self, Shutdown: Shutdown, ctx: &mut Self::Context) {
        self.broadcast(&ToWorker::Shutdown);
        ctx.stop();
    }
}

impl Handler<StartPlan> for ManagerActor {
    type Result = Result<(), BeginError>;

    fn handle(&mut self, StartPlan { id, study }: StartPlan, ctx: &mut Self::Context) -> Self::Result {
        let StudyRequest { plan, finished, inputs, observer, replanner, keeps, done } = study;
        if self.canceled.contains(&id.study) {
            // Whoever wanted to know may have given up.
            let _ = done.send(StudyOutcome { stopped: true, ..StudyOutcome::default() });
            return Ok(());
        }
        // Before it is submitted: what follows from that is told to it.
        let mut running = RunningStudy::new(&self.core, id, done, observer);
        running.inputs = inputs;
        running.replanner = replanner;
        running.keeps = keeps;
        if keeps {
            self.kept.insert(id.study);
        }
        running.all_instances = plan.open(&finished).into_iter().filter(|open| *open).count();
        self.studies.insert(id, running);
        if let Err(error) = self.core.handle_submit(id, plan, &finished) {
            self.studies.remove(&id);
            return Err(error.into());
        }
        self.replan_soon_all(ctx);
        self.apply_effects(ctx);
        Ok(())
    }
}

impl Handler<Cancel> for ManagerActor {
    type Result = ();

    fn handle(&mut self, Cancel(study): Cancel, ctx: &mut Self::Context) {
        self.canceled.insert(study);
        let parts: Vec<PlanId> = self.studies.keys().filter(|id| id.study == study).copied().collect();
        for id in parts {
            self.core.handle_cancel(id);
            if let Some(mut running) = self.studies.remove(&id) {
                running.outcome.stopped = true;
                running.end();
            }
        }
        self.apply_effects(ctx);
        self.forget(study);
    }
}

impl Handler<RetainResults> for ManagerActor {
    type Result = ();

    fn handle(&mut self, RetainResults(study): RetainResults, _: &mut Self::Context) {
        self.kept.insert(study);
    }
}

impl Handler<DropStudyResults> for ManagerActor {
    type Result = ();

    fn handle(&mut self, DropStudyResults(study): DropStudyResults, _: &mut Self::Context) {
        self.forget(study);
    }
}

impl Handler<SuspendStudy> for ManagerActor {
    type Result = ();

    fn handle(&mut self, SuspendStudy(id): SuspendStudy, ctx: &mut Self::Context) {
        self.core.handle_suspend(id);
        if let Some(running) = self.studies.get_mut(&id) {
            running.is_halted = true;
            running.outcome.stopped = true;
            running.end();
        }
        self.apply_effects(ctx);
    }
}

impl Handler<Recut> for ManagerActor {
    type Result = Result<(), PlanError>;

    fn handle(&mut self, Recut { id, recut, replanner }: Recut, ctx: &mut Self::Context) -> Self::Result {
        // It may have ended meanwhile.
        let Some(running) = self.studies.get_mut(&id) else { return Ok(()) };
        self.core.handle_recut(id, recut)?;
        running.replanner = replanner;
        self.schedule_replan(id, ctx);
        self.apply_effects(ctx);
        Ok(())
    }
}

impl Handler<RecordDurable> for ManagerActor {
    type Result = ();

    fn handle(&mut self, RecordDurable { study, records }: RecordDurable, _: &mut Self::Context) {
        if let Some(running) = self.studies.get_mut(&study) {
            running.durable = running.durable.max(records);
        }
        let ids: Vec<ConnectionId> = self.connections.keys().copied().collect();
        ids.into_iter().for_each(|id| self.tell_safe(id));
    }
}

impl Handler<DrainWorker> for ManagerActor {
    type Result = Result<(), DrainError>;

    fn handle(&mut self, DrainWorker { name }: DrainWorker, ctx: &mut Self::Context) -> Self::Result {
        let named = |connection: &&super::Connection| connection.newcomer.name == name;
        let worker = self.connections.values().find(named).and_then(|connection| connection.worker);
        let Some(worker) = worker else {
            let there: Vec<&str> =
                self.connections.values().map(|connection| connection.newcomer.name.as_str()).collect();
            let there = if there.is_empty() { "none".to_owned() } else { there.join(", ") };
            return Err(DrainError::Unknown { name, there });
        };
        self.core.handle_drain(worker);
        self.apply_effects(ctx);
        Ok(())
    }
}

impl Handler<PauseGrants> for ManagerActor {
    type Result = ();

    fn handle(&mut self, PauseGrants(time): PauseGrants, ctx: &mut Self::Context) {
        self.core.pause_grants();
        ctx.run_later(time, |actor, ctx| {
            actor.core.resume_grants();
            actor.apply_effects(ctx);
        });
    }
}

impl Handler<GetView> for ManagerActor {
    type Result = MessageResult<GetView>;

    fn handle(&mut self, GetView: GetView, _: &mut Self::Context) -> Self::Result {
        MessageResult(self.look())
    }
}

impl ManagerActor {
    /// Workers that are away are told when they come back.
    fn forget(&mut self, study: u32) {
        if self.kept.remove(&study) {
            self.broadcast(&ToWorker::DropRetained { study });
        }
    }

    /// A study that is begun was cut for as many processors as its planner thought of.
    fn replan_soon_all(&mut self, ctx: &mut Context<Self>) {
        let ids: Vec<PlanId> = self.studies.keys().copied().collect();
        for id in ids {
            if self.core.study(id).is_some_and(|study: &Study| study.leases() == 0) {
                self.schedule_replan(id, ctx);
            }
        }
    }
}
