//! Executes a plan on the manager's workers, and replaces it by one for less memory if smaller workers join.

use super::error::StudyRunError;
use super::planning::{PlannedCapacity, plan, replan};
use super::replan_forecasts::ReplanForecasts;
use crate::service::studies::StudyContext;
use parking_lot::Mutex;
use pleach_actors::embedded::PlanOutcome;
use pleach_actors::manager::{
    GetSnapshot, GetView, RecordDurable, ReplacePlan, StartPlan, StudyRequest, SuspendStudy,
};
use pleach_api::submission::PlanChoice;
use pleach_cache::StudyLabel;
use pleach_dispatch::PlanId;
use pleach_dispatch::cost_model::CostModel;
use pleach_dispatch::memory_model::MinimumMemory;
use pleach_dispatch::message::InputFile;
use pleach_dispatch::plan::{ExecutionPlan, PlanError};
use pleach_dispatch::study::{ReplacementPlan, Study};
use pleach_execution::executor::{ExecutionRequest, Executor};
use pleach_planner::{StudyReplanner, WorkerMemory};
use pleach_regions::RegionKey;
use pleach_results::cache_walk;
use pleach_study::{Defect, PreparedStudy};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;
use tracing::{info, warn};

/// Interval between checks for workers with too little memory for a study's plan, 1 s.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Executes a plan on the manager's workers.
pub(super) struct ClusterExecutor<'a> {
    pub(super) shared: &'a Arc<StudyContext>,
    pub(super) prepared: &'a PreparedStudy,
    pub(super) choice: PlanChoice,
    pub(super) id: PlanId,
    /// Whether workers retain task results until the study ends.
    pub(super) retains: bool,
    pub(super) label: Option<Arc<StudyLabel>>,
    pub(super) inputs: HashMap<RegionKey, InputFile>,
    pub(super) replan: Option<StudyReplanner>,
}

impl Executor for ClusterExecutor<'_> {
    type Error = StudyRunError;

    fn execute(&mut self, work: ExecutionRequest) -> Result<PlanOutcome, StudyRunError> {
        let (done, mut outcome) = oneshot::channel();
        let mut needs = work.plan.needs.clone();
        let forecaster = self.replan.as_ref().and_then(StudyReplanner::forecaster);
        let inputs = std::mem::take(&mut self.inputs);
        let content = |key| inputs.get(&key).map(cache_walk::identity_of_input);
        // Built on this thread, because it takes seconds for a large plan.
        let study =
            Study::resume(work.plan, &work.finished).map_err(Defect::new)?.with_tile_contents(content);
        let study = StudyRequest {
            study,
            inputs,
            code: self.shared.code_packages(self.id.study),
            observer: work.observer,
            replanner: self
                .replan
                .take()
                .map(|replan| Box::new(replan.with_costs(Arc::clone(&work.costs))) as _),
            retains_results: self.retains,
            label: self.label.clone(),
            done,
        };
        let begun = self.shared.manager.send(StartPlan { id: self.id, study });
        self.shared.network.block_on(begun).map_err(Defect::new)?;
        let mut tried = Vec::new();
        let mut forecasts = ReplanForecasts::new(self.shared, self.id, forecaster);
        let outcome = loop {
            let waited = async { tokio::time::timeout(LOOK_EVERY, &mut outcome).await };
            match self.shared.network.block_on(waited) {
                Ok(outcome) => break outcome.map_err(Defect::new)?,
                Err(_) => {
                    self.suit(&mut needs, &mut tried, &work.costs, &mut forecasts)?;
                    forecasts.update()?;
                }
            }
        };
        Ok(PlanOutcome { outcome, peak_bytes: 0, retained_bytes: 0 })
    }

    fn broken(&self) -> Box<dyn FnOnce() + Send> {
        let (manager, id) = (self.shared.manager.clone(), self.id);
        Box::new(move || manager.do_send(SuspendStudy(id)))
    }

    fn durable(&self) -> Box<dyn FnMut(u64) + Send> {
        let (manager, study) = (self.shared.manager.clone(), self.id);
        Box::new(move |records| manager.do_send(RecordDurable { study, records }))
    }
}

impl ClusterExecutor<'_> {
    /// Moves unstarted instances to buckets that fit workers with less memory, if such workers have joined and such a
    /// plan exists. `needs` is the minimum memory of the present plan, `tried` the memory of the workers at the last
    /// attempt.
    fn suit(
        &self,
        needs: &mut MinimumMemory,
        tried: &mut Vec<WorkerMemory>,
        costs: &Arc<Mutex<CostModel>>,
        forecasts: &mut ReplanForecasts<'_>,
    ) -> Result<(), StudyRunError> {
        let view = self.shared.network.block_on(self.shared.manager.send(GetView)).map_err(Defect::new)?;
        let workers = PlannedCapacity::of(&view);
        let mut memory = workers.memory.clone();
        // A set of sizes: more workers of a known size, or another order, need no second attempt.
        memory.sort_unstable();
        memory.dedup();
        let too_small = workers.too_small(needs);
        if too_small == 0 || *tried == memory {
            return Ok(());
        }
        *tried = memory;
        // A copy, because reports update the model meanwhile.
        let measured = costs.lock().clone();
        let mut planned = plan(self.prepared, &measured, self.choice, &workers)?;
        let new_needs = planned.study.plan.needs.clone();
        if workers.too_small(&new_needs) >= too_small {
            return Ok(());
        }
        // After planning, which takes long: changes after the snapshot can make the replacement invalid.
        let snapshot = self.shared.manager.send(GetSnapshot(self.id));
        let Some(snapshot) = self.shared.network.block_on(snapshot).map_err(Defect::new)? else {
            // The plan has ended meanwhile.
            return Ok(());
        };
        let ExecutionPlan { buckets, sharing, .. } = std::mem::take(&mut planned.study.plan);
        let replacement = ReplacementPlan::new(buckets, &snapshot, new_needs.clone(), sharing);
        let replacement = replacement.map_err(Defect::new)?;
        let replanner = replan(&mut planned, self.choice);
        let forecaster = replanner.as_ref().and_then(StudyReplanner::forecaster);
        let replanner = replanner.map(|replan| Box::new(replan.with_costs(Arc::clone(costs))) as _);
        let recut = self.shared.manager.send(ReplacePlan { id: self.id, replacement, replanner });
        match self.shared.network.block_on(recut).map_err(Defect::new)? {
            Ok(()) => {
                let (id, megabytes) = (self.id.study, new_needs.min_bytes.div_ceil(1_000_000));
                info!(
                    study = id,
                    megabytes,
                    "study {id} replanned for less memory per worker: needs {megabytes} MB at once"
                );
                *needs = new_needs;
                forecasts.replace(forecaster);
            }
            // Instances became unstarted after the snapshot.
            Err(PlanError::NotInOneBucket(_)) => tried.clear(),
            Err(error) => {
                warn!(
                    study = self.id.study,
                    "failed to replan study {} for less memory: {error}", self.id.study
                )
            }
        }
        Ok(())
    }
}
