//! Requests of operators and of the owners of studies.

use super::replanning::drop_elsewhere;
use super::study_run::{RunningStudy, StudyRequest};
use super::view::ManagerView;
use super::{Connection, ManagerActor};
use actix::prelude::*;
use pleach_dispatch::PlanId;
use pleach_dispatch::message::ToWorker;
use pleach_dispatch::plan::PlanError;
use pleach_dispatch::study::{self, Replanner, Study, StudyOutcome, StudySnapshot};
use std::fmt;
use std::time::Duration;
use thiserror::Error;

/// Ends all studies early. Started work finishes, and no new work starts.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub struct StopAll;

/// Ends a manager without studies, and its workers.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub struct Shutdown;

/// Starts a plan of a study.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub struct StartPlan {
    /// Plan id, never used before.
    pub id: PlanId,
    /// Plan and its inputs.
    pub study: StudyRequest,
}

/// Ends a study early in any of its rounds, and prevents its later plans from starting.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub struct Cancel(pub u32);

/// Retains the results of a study with several rounds that an earlier epoch of the manager started.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub struct RetainResults(pub u32);

/// Drops the retained results of a study that has no further round.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub struct DropStudyResults(pub u32);

/// Suspends a study whose reports can no longer be stored. The manager grants no bucket of the study and accepts no
/// reports. Workers keep their results and report them to the study's next manager, unless the study is canceled.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub struct SuspendStudy(pub PlanId);

/// Moves a study's unstarted instances to the buckets of another plan, for workers with a different memory size.
pub struct ReplacePlan {
    /// The study.
    pub id: PlanId,
    /// Replacement plan.
    pub replacement: study::ReplacementPlan,
    /// Replaces the study's replanner.
    pub replanner: Option<Box<dyn Replanner>>,
}

impl Message for ReplacePlan {
    type Result = Result<(), PlanError>;
}

impl fmt::Debug for ReplacePlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReplacePlan").field("id", &self.id).finish_non_exhaustive()
    }
}

/// Reports the number of a study's results on disk.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub struct RecordDurable {
    /// The study.
    pub study: PlanId,
    /// Results on disk, counted since the study started.
    pub records: u64,
}

/// Drains a worker: it leaves once no other worker needs its regions.
#[derive(Debug, Message)]
#[rtype(result = "Result<(), DrainError>")]
pub struct DrainWorker {
    /// Name of the worker.
    pub name: String,
}

/// Reason for a worker that cannot be drained.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum DrainError {
    /// No worker has this name.
    #[error("worker {name} is not connected; connected workers: {connected}")]
    Unknown {
        /// Requested name.
        name: String,
        /// Names of the connected workers.
        connected: String,
    },
}

/// Pauses grants for a grace period, so that workers of an earlier epoch reattach first.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub struct PauseGrants(pub Duration);

/// Requests a snapshot of a plan for a [`ReplacePlan`]. `None` if the plan does not run.
#[derive(Debug, Message)]
#[rtype(result = "Option<StudySnapshot>")]
pub struct GetSnapshot(pub PlanId);

/// Requests the present state of studies and workers.
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
    type Result = ();

    fn handle(&mut self, StartPlan { id, study }: StartPlan, ctx: &mut Self::Context) {
        let StudyRequest { study, inputs, code, observer, replanner, retains_results, label, done } = study;
        if self.canceled.contains(&id.study) {
            // The receiver may have been dropped.
            let _ = done.send(StudyOutcome { stopped: true, ..StudyOutcome::default() });
            drop_elsewhere(study);
            return;
        }
        // Inserted before the submission, because effects of the submission look up the study.
        let mut running = RunningStudy::new(&self.core, id, done, observer);
        running.inputs = inputs;
        running.code = code;
        running.replanner = replanner;
        running.retains_results = retains_results;
        running.label = label;
        if retains_results {
            self.retained.insert(id.study);
        }
        running.all_instances = study.unfinished();
        self.studies.insert(id, running);
        self.send_code_to_all();
        self.core.handle_start(id, study);
        self.schedule_replans(ctx);
        self.apply_effects(ctx);
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
                self.replanning.discard(id);
                drop_elsewhere(running.replanner);
            }
        }
        self.apply_effects(ctx);
        self.forget(study);
    }
}

impl Handler<RetainResults> for ManagerActor {
    type Result = ();

    fn handle(&mut self, RetainResults(study): RetainResults, _: &mut Self::Context) {
        self.retained.insert(study);
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
            // The study stays in the table, where reports of a suspended study are recognized.
            running.is_halted = true;
            running.outcome.stopped = true;
            running.end();
        }
        self.apply_effects(ctx);
    }
}

impl Handler<ReplacePlan> for ManagerActor {
    type Result = Result<(), PlanError>;

    fn handle(
        &mut self,
        ReplacePlan { id, replacement, replanner }: ReplacePlan,
        ctx: &mut Self::Context,
    ) -> Self::Result {
        // The study may have ended meanwhile.
        let Some(running) = self.studies.get_mut(&id) else { return Ok(()) };
        let merged = self.core.handle_replacement(id, replacement)?;
        // A running replan refers to the former buckets.
        self.replanning.discard(id);
        drop_elsewhere((merged.former, std::mem::replace(&mut running.replanner, replanner)));
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
        self.send_all_acks();
    }
}

impl Handler<DrainWorker> for ManagerActor {
    type Result = Result<(), DrainError>;

    fn handle(&mut self, DrainWorker { name }: DrainWorker, ctx: &mut Self::Context) -> Self::Result {
        let named = |(_, connection): &(_, &Connection)| connection.newcomer.name == name;
        let worker = self.connections.iter().find(named).and_then(|(_, connection)| connection.worker());
        let Some(worker) = worker else {
            let there: Vec<&str> =
                self.connections.iter().map(|(_, connection)| connection.newcomer.name.as_str()).collect();
            let connected = if there.is_empty() { "none".to_owned() } else { there.join(", ") };
            return Err(DrainError::Unknown { name, connected });
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

impl Handler<GetSnapshot> for ManagerActor {
    type Result = MessageResult<GetSnapshot>;

    fn handle(&mut self, GetSnapshot(id): GetSnapshot, _: &mut Self::Context) -> Self::Result {
        MessageResult(self.core.study(id).map(Study::snapshot))
    }
}

impl Handler<GetView> for ManagerActor {
    type Result = MessageResult<GetView>;

    fn handle(&mut self, GetView: GetView, _: &mut Self::Context) -> Self::Result {
        MessageResult(self.snapshot())
    }
}

impl ManagerActor {
    /// Lets workers drop the retained results of a study. Disconnected workers get the message when they reattach.
    fn forget(&mut self, study: u32) {
        if self.retained.remove(&study) {
            self.broadcast(&ToWorker::DropRetained { study });
        }
    }
}
