//! A plan that is yet to be judged by the memory it needs: several are made of one [`Loom`], and one of them is woven.

use super::memory::{Least, rehearse};
use super::{Level, Loom, WeaveError, Woven, execution, room};
use pleach_dispatch::InstanceId;
use pleach_dispatch::memory::Needs;
use pleach_dispatch::plan::ExecutionPlan;
use pleach_reuse::Buckets;

/// See the module.
#[derive(Debug)]
pub(crate) struct Draft {
    level: Level,
    solutions: Vec<Buckets>,
    plan: ExecutionPlan,
    /// An instance of the bucket that is at work when most is held.
    most_expensive: Option<InstanceId>,
}

impl Draft {
    /// Makes the buckets of `level`, and rehearses them.
    ///
    /// # Errors
    /// [`WeaveError`] when the strategy does not take so many instances, or the plan does not fit into memory.
    pub(crate) fn new(loom: &Loom<'_>, level: Level) -> Result<Self, WeaveError> {
        let solutions = loom.solve(level)?;
        room::for_execution(loom.material, &loom.graph)?;
        let mut plan = execution(loom, &solutions, level);
        let rehearsal = rehearse(&plan, loom.material.registry)?;
        plan.needs = rehearsal.needs;
        Ok(Self { level, solutions, plan, most_expensive: rehearsal.dearest })
    }

    /// What a worker needs for it.
    pub(crate) fn needs(&self) -> &Needs {
        &self.plan.needs
    }

    /// The buckets of each stage.
    pub(crate) fn solutions(&self) -> &[Buckets] {
        &self.solutions
    }

    /// What it comes to where so much can be stored below memory, and what asks for it.
    pub(crate) fn least(&self, loom: &Loom<'_>, below_bytes: u64) -> Least {
        let place = self.most_expensive.map(|instance| {
            let instance = loom.graph.instance(pleach_reuse::InstanceId(instance.0));
            (instance.stage.0 as usize, loom.runs.tile(instance.first_run))
        });
        let (stage, tile) = place.unwrap_or_default();
        Least { bytes: self.plan.needs.with_below(below_bytes), stage, tile }
    }

    /// The finished plan.
    ///
    /// # Errors
    /// [`WeaveError`] when the study has more tasks than ids.
    pub(crate) fn weave(self, loom: Loom<'_>, workers: u32) -> Result<Woven, WeaveError> {
        Woven::new(loom, self.plan, &self.solutions, self.level, workers)
    }
}
