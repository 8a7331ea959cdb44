//! Plans of a study for the present workers.

use pleach_actors::manager::{ManagerView, WorkerView};
use pleach_api::submission::PlanChoice;
use pleach_dispatch::cost_model::CostModel;
use pleach_dispatch::memory_model::MinimumMemory;
use pleach_planner::{
    BucketLimitOptions, DEFAULT_LINK, Plan, PlanOptions, PlanRequest, PlanningError, PlanningInput,
    StudyReplanner, WorkerMemory,
};
use pleach_reuse::{BUCKETS_PER_CORE, TransferCost};
use pleach_study::PreparedStudy;
use std::num::{NonZeroU32, NonZeroUsize};

/// Size for the comparison of measured links, 16 MiB: a mask of a tile of 4096² pixels.
const PLANE_BYTES: u64 = 16 << 20;

/// Capacity of the workers that a study is planned for.
#[derive(Clone, Debug)]
pub(crate) struct PlannedCapacity {
    slots: NonZeroU32,
    /// Open slots of accelerators.
    accelerators: u32,
    /// Memory of each worker.
    pub(super) memory: Vec<WorkerMemory>,
    /// Cost of transfers between workers.
    pub(super) transfers: TransferCost,
}

impl PlannedCapacity {
    /// Returns the capacity of the present workers, at least 1 slot.
    pub(crate) fn of(view: &ManagerView) -> Self {
        let slots: u32 = view.workers.iter().map(|worker| worker.slots).sum();
        let memory = view.workers.iter().map(|worker| WorkerMemory {
            memory_bytes: worker.memory_bytes,
            spill_bytes: worker.spill_bytes,
        });
        let open = |worker: &WorkerView| worker.accelerators.saturating_sub(worker.closed_slots.len() as u32);
        let measured = view.workers.iter().filter_map(|worker| worker.transfers).collect();
        Self {
            slots: NonZeroU32::new(slots).unwrap_or(NonZeroU32::MIN),
            accelerators: view.workers.iter().map(open).sum(),
            memory: memory.collect(),
            transfers: median(measured).unwrap_or(DEFAULT_LINK),
        }
    }

    /// Returns the number of workers with too little memory for a plan with these needs.
    pub(super) fn too_small(&self, needs: &MinimumMemory) -> usize {
        self.memory.iter().filter(|memory| !memory.fits(needs)).count()
    }
}

/// Returns the median of some transfer costs, by the time for a plane of an image.
fn median(mut costs: Vec<TransferCost>) -> Option<TransferCost> {
    costs.sort_by(|a, b| a.seconds(PLANE_BYTES).total_cmp(&b.seconds(PLANE_BYTES)));
    costs.get(costs.len() / 2).copied()
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
    let bucket_overhead_seconds = choice.overhead_seconds.unwrap_or_else(|| costs.bucket_overhead_seconds());
    let link = Some(workers.transfers);
    let accelerators = workers.accelerators;
    let input =
        PlanningInput { costs, link, bucket_overhead_seconds, accelerators, ..prepared.planning_input() };
    let mut plan = pleach_planner::plan(input, &request)?;
    plan.study.plan.durable = prepared.study.durable;
    plan.study.plan.order = choice.order;
    if !prepared.study.retained.is_empty() {
        plan.study.plan.retain(&prepared.study.retained);
    }
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
    Some(study.take_replanner(most, least).with_overhead(choice.overhead_seconds))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pleach_actors::manager::WorkerState;

    fn view(links: &[Option<(f64, f64)>]) -> ManagerView {
        let worker = |link: &Option<(f64, f64)>| WorkerView {
            name: "w".to_owned(),
            host: None,
            state: WorkerState::Active,
            slots: 2,
            accelerators: 0,
            closed_slots: Vec::new(),
            leases: 0,
            bytes: 0,
            transfers: link.map(|(bytes_per_second, latency_seconds)| TransferCost {
                bytes_per_second,
                latency_seconds,
            }),
            memory_bytes: 1,
            spill_bytes: 0,
            lacking: Vec::new(),
            code: Default::default(),
            lease_end_seconds: None,
            duplicate: None,
        };
        ManagerView { workers: links.iter().map(worker).collect(), ..ManagerView::default() }
    }

    #[test]
    fn transfers_are_predicted_by_the_median_link() {
        let transfers = |links: &[Option<(f64, f64)>]| PlannedCapacity::of(&view(links)).transfers;
        assert_eq!(transfers(&[]), DEFAULT_LINK);
        assert_eq!(transfers(&[None, None]), DEFAULT_LINK);
        let (slow, fast) = (Some((1e6, 0.1)), Some((1e9, 1e-3)));
        assert_eq!(transfers(&[None, slow]).bytes_per_second, 1e6);
        assert_eq!(transfers(&[fast, slow, fast, None]).bytes_per_second, 1e9);
        assert_eq!(transfers(&[slow, fast, slow]).bytes_per_second, 1e6);
    }
}
