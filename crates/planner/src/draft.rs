//! Candidate of a plan, with the minimum memory that its dry run found. The planner compares several and finishes one.

use crate::memory::memory_bounds::{PeakLocation, dry_run};
use crate::memory::memory_check;
use crate::planned::{execution_plan, makespan};
use crate::{PlanBuilder, PlannedStudy, PlanningError, ReuseMode};
use pleach_dispatch::InstanceId;
use pleach_dispatch::memory_model::MinimumMemory;
use pleach_dispatch::plan::ExecutionPlan;
use pleach_reuse::Buckets;

/// Candidate of a plan.
#[derive(Debug)]
pub(crate) struct Draft {
    mode: ReuseMode,
    solutions: Vec<Buckets>,
    plan: ExecutionPlan,
    /// Instance of the bucket that runs at the peak.
    most_expensive: Option<InstanceId>,
}

impl Draft {
    /// Builds the buckets of `mode` and runs them dry.
    ///
    /// # Errors
    /// [`PlanningError`] if the strategy refuses the number of instances, or this machine lacks the memory for the plan.
    pub(crate) fn new(builder: &PlanBuilder<'_>, mode: ReuseMode) -> Result<Self, PlanningError> {
        let solutions = builder.solve(mode)?;
        memory_check::for_execution(builder.study, &builder.graph)?;
        let mut plan = execution_plan::build(builder, &solutions, mode);
        let rehearsal = dry_run(&plan, builder.study.registry)?;
        plan.needs = rehearsal.needs;
        plan.ranks = makespan::ranks(builder, mode);
        Ok(Self { mode, solutions, plan, most_expensive: rehearsal.dearest })
    }

    /// Minimum memory of a worker.
    pub(crate) fn needs(&self) -> &MinimumMemory {
        &self.plan.needs
    }

    /// Buckets of each stage.
    pub(crate) fn solutions(&self) -> &[Buckets] {
        &self.solutions
    }

    /// Returns the stage and tile of the bucket that runs at the peak.
    pub(crate) fn peak(&self, builder: &PlanBuilder<'_>) -> PeakLocation {
        let location = |instance: InstanceId| {
            let instance = builder.graph.instance(pleach_reuse::InstanceId(instance.0));
            PeakLocation { stage: instance.stage.0 as usize, tile: builder.runs.tile(instance.first_run) }
        };
        self.most_expensive.map(location).unwrap_or_default()
    }

    /// Finishes the plan.
    ///
    /// # Errors
    /// [`PlanningError`] if the study has more tasks than ids.
    pub(crate) fn finish(
        self,
        builder: PlanBuilder<'_>,
        workers: u32,
    ) -> Result<PlannedStudy, PlanningError> {
        PlannedStudy::new(builder, self.plan, &self.solutions, self.mode, workers)
    }
}
