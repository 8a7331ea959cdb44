//! Memory bounds of a plan.
//!
//! Limits and peaks are those of reuse trees. Beyond trees, shared outputs live longer, and only a dry run finds the peak.

use crate::{PlanBuilder, PlanningError, operations};
use pleach_dispatch::dry_run::{self, DryRun};
use pleach_dispatch::memory_model::{MinimumMemory, TaskMemory};
use pleach_dispatch::plan::ExecutionPlan;
use pleach_reuse::{
    Buckets, Capacity, LevelBytes, Limits, LimitsError, OverheadChoice, StageBytes, StageLoad, choose_limits,
    peak_bytes, weigh_overhead,
};
use pleach_workflow::{Operation, Registry, Stage, TaskInput};
use std::num::{NonZeroU32, NonZeroUsize};
use std::sync::Arc;

/// Stage and tile of the bucket that runs at a plan's memory peak, by index.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PeakLocation {
    /// Stage.
    pub stage: usize,
    /// Tile.
    pub tile: usize,
}

/// Memory of a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct WorkerMemory {
    /// RAM budget in bytes.
    pub memory_bytes: u64,
    /// Capacity of its spill tiers in bytes.
    pub spill_bytes: u64,
}

impl WorkerMemory {
    /// Returns whether a plan with these needs runs on the worker.
    pub fn fits(self, needs: &MinimumMemory) -> bool {
        needs.with_spill(self.spill_bytes) <= self.memory_bytes
    }
}

/// Runs a plan dry with the sizes that operations declare. Every check of a plan against a worker's memory uses this one
/// estimate.
///
/// # Errors
/// [`PlanningError`] if the plan breaks one of its rules.
pub(crate) fn dry_run(plan: &ExecutionPlan, registry: &Registry) -> Result<DryRun, PlanningError> {
    let operations: Vec<_> = plan.stages.iter().map(|stage| operations(stage, registry)).collect();
    let bytes =
        |stage: usize, pixels: u64| operations[stage].iter().map(|op| task_bytes(op, pixels)).collect();
    dry_run::rehearse(plan, bytes).map_err(PlanningError::from)
}

fn task_bytes(operation: &Arc<dyn Operation>, pixels: u64) -> TaskMemory {
    let outputs: Vec<u64> = operation.outputs().iter().map(|port| port.element.bytes(pixels)).collect();
    TaskMemory { scratch: operation.memory_bytes(pixels).saturating_sub(outputs.iter().sum()), outputs }
}

impl PlanBuilder<'_> {
    /// Chooses number and size of buckets by their overhead, without regard to memory.
    pub(crate) fn weigh_overhead(&self, workers: NonZeroU32) -> OverheadChoice {
        let cores = NonZeroUsize::try_from(workers).unwrap_or(NonZeroUsize::MIN);
        let loads: Vec<StageLoad> = self
            .stages
            .iter()
            .map(|stage| StageLoad { instances: stage.members.len(), seconds: stage.tree.unique_cost() })
            .collect();
        weigh_overhead(&loads, cores, self.study.bucket_overhead_seconds)
    }

    /// Chooses the fewest and largest buckets that keep the slots busy, with `buckets_per_core` for each, and fit the
    /// memory. Each slot runs a bucket of its own or, if even buckets of one instance are too large for that, one bucket
    /// runs at a time. The needs of the largest tile count for all.
    ///
    /// # Errors
    /// [`PlanningError`] if a strategy refuses the study.
    pub(crate) fn limits(
        &self,
        workers: NonZeroU32,
        buckets_per_core: NonZeroUsize,
        budget_bytes: u64,
    ) -> Result<Limits, PlanningError> {
        let cores = NonZeroUsize::try_from(workers).unwrap_or(NonZeroUsize::MIN);
        // One limit holds for all tiles, so the largest tile decides.
        let mut all =
            Limits { max_buckets: NonZeroUsize::MIN, max_bucket_size: NonZeroUsize::MAX, peak_bytes: 0 };
        for ((stage, problem), pixels) in
            self.study.workflow.stages.iter().zip(&self.stages).zip(&self.pixels)
        {
            let pixels = pixels.iter().copied().max().unwrap_or(0);
            let levels = level_bytes(stage, &operations(stage, self.study.registry), pixels);
            let input_bytes = stage.inputs.iter().map(|input| input.bytes(pixels)).sum();
            let bytes = StageBytes { input_bytes, levels: &levels };
            let choose = |concurrent_buckets, budget_bytes| {
                let machine = Capacity { cores, buckets_per_core, concurrent_buckets, budget_bytes };
                choose_limits(&problem.problem, &problem.tree, bytes, machine)
            };
            // Too little memory for any plan: `fit` reports the minimum once a plan exists.
            let limits = match choose(cores, budget_bytes) {
                Err(LimitsError::Memory { .. }) => match choose(NonZeroUsize::MIN, budget_bytes) {
                    Err(LimitsError::Memory { .. }) => choose(NonZeroUsize::MIN, u64::MAX),
                    limits => limits,
                },
                limits => limits,
            };
            let limits = limits.map_err(PlanningError::from)?;
            // The strictest limits of any stage hold for all: more buckets and smaller ones both need less memory.
            all.max_buckets = all.max_buckets.max(limits.max_buckets);
            // A limit of all instances of a stage is none, and must not make the buckets of larger stages smaller.
            if limits.max_bucket_size.get() < problem.members.len() {
                all.max_bucket_size = all.max_bucket_size.min(limits.max_bucket_size);
            }
            all.peak_bytes = all.peak_bytes.max(limits.peak_bytes);
        }
        Ok(all)
    }
}

/// Returns the bytes of the largest buckets, one for each slot, each run depth-first, one task at a time.
pub(crate) fn peak(builder: &PlanBuilder<'_>, solutions: &[Buckets], workers: NonZeroUsize) -> u64 {
    let mut peaks: Vec<u64> = Vec::new();
    let stages = builder.study.workflow.stages.iter().zip(&builder.stages);
    for (((stage, problem), solution), pixels) in stages.zip(solutions).zip(&builder.pixels) {
        let operations = operations(stage, builder.study.registry);
        let of_tile = pixels.iter().map(|pixels| {
            let inputs = stage.inputs.iter().map(|input| input.bytes(*pixels));
            (inputs.sum(), level_bytes(stage, &operations, *pixels))
        });
        let of_tile: Vec<(u64, Vec<LevelBytes>)> = of_tile.collect();
        peaks.extend(solution.iter().map(|members| {
            let (input_bytes, levels) = &of_tile[builder.tile(problem.members[members[0].0 as usize])];
            peak_bytes(&problem.problem, &problem.tree, members, *input_bytes, levels)
        }));
    }
    peaks.sort_unstable_by(|a, b| b.cmp(a));
    peaks.iter().take(workers.get()).sum()
}

fn level_bytes(stage: &Stage, operations: &[Arc<dyn Operation>], pixels: u64) -> Vec<LevelBytes> {
    let levels = stage.tasks.iter().zip(operations).enumerate();
    let levels = levels.map(|(level, (task, operation))| {
        let output_bytes = task.writes.iter().map(|region| region.element.bytes(pixels)).sum();
        let reads = |other: &pleach_workflow::Task| {
            other.reads.iter().any(|read| matches!(*read, TaskInput::Task { task, .. } if task == level))
        };
        let last_reader = stage.tasks.iter().rposition(reads).unwrap_or(level);
        // A stage's output leaves when the instance is finished: after its last task.
        let leaves = stage.outputs.iter().any(|output| output.task == level);
        LevelBytes {
            output_bytes,
            scratch_bytes: operation.memory_bytes(pixels).saturating_sub(output_bytes),
            last_read: if leaves { stage.tasks.len() - 1 } else { last_reader },
        }
    });
    levels.collect()
}
