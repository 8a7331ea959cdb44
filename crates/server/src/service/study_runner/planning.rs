//! Plans of a study for the present workers.

use pleach_actors::manager::ManagerView;
use pleach_api::submission::PlanChoice;
use pleach_dispatch::cost_model::CostModel;
use pleach_dispatch::memory_model::MinimumMemory;
use pleach_planner::{
    BucketLimitOptions, DEFAULT_LINK, Plan, PlanOptions, PlanRequest, PlanningError, PlanningInput,
    StudyReplanner, WorkerMemory,
};
use pleach_reuse::BUCKETS_PER_CORE;
use pleach_study::PreparedStudy;
use std::num::{NonZeroU32, NonZeroUsize};

/// Capacity of the workers that a study is planned for.
#[derive(Clone, Debug)]
pub(crate) struct PlannedCapacity {
    slots: NonZeroU32,
    /// Memory of each worker.
    pub(super) memory: Vec<WorkerMemory>,
}

impl PlannedCapacity {
    /// Returns the capacity of the present workers, at least 1 slot.
    pub(crate) fn of(view: &ManagerView) -> Self {
        let slots: u32 = view.workers.iter().map(|worker| worker.slots).sum();
        let memory = view.workers.iter().map(|worker| WorkerMemory {
            memory_bytes: worker.memory_bytes,
            spill_bytes: worker.spill_bytes,
        });
        Self { slots: NonZeroU32::new(slots).unwrap_or(NonZeroU32::MIN), memory: memory.collect() }
    }

    /// Returns the number of workers with too little memory for a plan with these needs.
    pub(super) fn too_small(&self, needs: &MinimumMemory) -> usize {
        self.memory.iter().filter(|memory| !memory.fits(needs)).count()
    }
}

/// Plans a study with a cost model.
pub(super) fn plan(
    prepared: &PreparedStudy,
    costs: &CostModel,
    choice: PlanChoice,
    workers: &PlannedCapacity,
) -> Result<Plan, PlanningError> {
    let request = PlanRequest {
        options: PlanOptions::new(choice.strategy, choice.reuse),
        buckets: BucketLimitOptions {
            max_bucket_size: choice.max_bucket_size,
            max_buckets: choice.max_buckets,
        },
        slots: workers.slots,
        workers: &workers.memory,
        tree_fallback: true,
    };
    // Links are measured by each worker for itself, while it runs tasks.
    let input = PlanningInput { costs, link: Some(DEFAULT_LINK), ..prepared.planning_input() };
    let mut plan = pleach_planner::plan(input, &request)?;
    plan.study.plan.durable = prepared.study.durable;
    Ok(plan)
}

/// Takes the replanner out of a plan, for replanning while the study runs. The number of buckets may fall only if the
/// plan has no more buckets than its slots need. `None` for strategies other than TRTMA and ranges, and if the user
/// gave the number of buckets.
pub(super) fn replan(planned: &mut Plan, choice: PlanChoice) -> Option<StudyReplanner> {
    let Plan { study, record, .. } = planned;
    if !matches!(record.strategy, "trtma" | "ranges") || choice.max_buckets.is_some() {
        return None;
    }
    let most = record.max_buckets.and_then(NonZeroUsize::new).unwrap_or(NonZeroUsize::MAX);
    let usual = BUCKETS_PER_CORE.saturating_mul(NonZeroUsize::new(record.workers as usize)?);
    // More buckets than usual were needed for the workers' memory.
    let least = if most > usual { most } else { NonZeroUsize::MIN };
    Some(study.take_replanner(most, least))
}
