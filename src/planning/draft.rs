//! A plan that is yet to be judged by the memory it needs: several are made of one [`PlanBuilder`], and one of them is woven.

use super::memory_bounds::{MemoryFloor, dry_run};
use super::{PlanBuilder, PlannedStudy, PlanningError, ReuseMode, execution, room};
use pleach_dispatch::InstanceId;
use pleach_dispatch::memory_model::MinimumMemory;
use pleach_dispatch::plan::ExecutionPlan;
use pleach_reuse::Buckets;

/// See the module.
#[derive(Debug)]
pub(crate) struct Draft {
    level: ReuseMode,
    solutions: Vec<Buckets>,
    plan: ExecutionPlan,
    /// An instance of the bucket that is at work when most is held.
    most_expensive: Option<InstanceId>,
}

impl Draft {
    /// Makes the buckets of `level`, and rehearses them.
    ///
    /// # Errors
    /// [`PlanningError`] when the strategy does not take so many instances, or the plan does not fit into memory.
    pub(crate) fn new(loom: &PlanBuilder<'_>, level: ReuseMode) -> Result<Self, PlanningError> {
        let solutions = loom.solve(level)?;
        room::for_execution(loom.material, &loom.graph)?;
        let mut plan = execution(loom, &solutions, level);
        let rehearsal = dry_run(&plan, loom.material.registry)?;
        plan.needs = rehearsal.needs;
        Ok(Self { level, solutions, plan, most_expensive: rehearsal.dearest })
    }

    /// What a worker needs for it.
    pub(crate) fn needs(&self) -> &MinimumMemory {
        &self.plan.needs
    }

    /// The buckets of each stage.
    pub(crate) fn solutions(&self) -> &[Buckets] {
        &self.solutions
    }

    /// What it comes to where so much can be stored below memory, and what asks for it.
    pub(crate) fn least(&self, loom: &PlanBuilder<'_>, below_bytes: u64) -> MemoryFloor {
        let place = self.most_expensive.map(|instance| {
            let instance = loom.graph.instance(pleach_reuse::InstanceId(instance.0));
            (instance.stage.0 as usize, loom.runs.tile(instance.first_run))
        });
        let (stage, tile) = place.unwrap_or_default();
        MemoryFloor { bytes: self.plan.needs.with_spill(below_bytes), stage, tile }
    }

    /// The finished plan.
    ///
    /// # Errors
    /// [`PlanningError`] when the study has more tasks than ids.
    pub(crate) fn weave(self, loom: PlanBuilder<'_>, workers: u32) -> Result<PlannedStudy, PlanningError> {
        PlannedStudy::new(loom, self.plan, &self.solutions, self.level, workers)
    }
}
