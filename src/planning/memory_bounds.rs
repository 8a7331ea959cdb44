//! How many bytes a plan takes: at most, and at least. Nothing is admitted or refused here.
//!
//! Limits and peaks are those of trees. What buckets share beyond trees is held for longer, and only a rehearsal knows it.

use super::{PlanBuilder, PlanningError, operations};
use pleach_dispatch::dry_run::{self, DryRun};
use pleach_dispatch::memory_model::{MinimumMemory, TaskMemory};
use pleach_dispatch::plan::ExecutionPlan;
use pleach_reuse::{
    Buckets, Capacity, LevelBytes, Limits, LimitsError, StageBytes, choose_limits, peak_bytes,
};
use pleach_workflow::{Operation, Registry, Stage, TaskInput};
use std::num::{NonZeroU32, NonZeroUsize};
use std::sync::Arc;

/// The memory without which a study cannot be executed, and what asks for it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MemoryFloor {
    pub(crate) bytes: u64,
    /// The stage that is at work when most is held, by index.
    pub(crate) stage: usize,
    /// And on which tile.
    pub(crate) tile: usize,
}

/// The memory of a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct WorkerMemory {
    /// What it may hold.
    pub(crate) memory_bytes: u64,
    /// What it can store in slower tiers besides.
    pub(crate) below_bytes: u64,
}

impl WorkerMemory {
    /// Whether a plan with these needs can be executed within it.
    pub(crate) fn fits(self, needs: &MinimumMemory) -> bool {
        needs.with_spill(self.below_bytes) <= self.memory_bytes
    }
}

/// Rehearses a plan with the sizes that operations declare. Every check of a plan against a worker's memory goes by this
/// one estimate.
///
/// # Errors
/// [`PlanningError`] when the plan breaks its own rules.
pub(super) fn dry_run(plan: &ExecutionPlan, registry: &Registry) -> Result<DryRun, PlanningError> {
    let operations: Vec<_> = plan.stages.iter().map(|stage| operations(stage, registry)).collect();
    let bytes =
        |stage: usize, pixels: u64| operations[stage].iter().map(|op| task_bytes(op, pixels)).collect();
    dry_run::rehearse(plan, bytes).map_err(PlanningError::new)
}

fn task_bytes(operation: &Arc<dyn Operation>, pixels: u64) -> TaskMemory {
    let outputs: Vec<u64> = operation.outputs().iter().map(|port| port.element.bytes(pixels)).collect();
    TaskMemory { scratch: operation.memory_bytes(pixels).saturating_sub(outputs.iter().sum()), outputs }
}

impl PlanBuilder<'_> {
    /// As few and as large buckets as keep so many workers busy and fit the memory, each worker with a bucket of its own
    /// or, where even buckets of one instance are too large for that, all with one. The needs of the largest tile
    /// count for all.
    ///
    /// # Errors
    /// [`PlanningError`] when a strategy refuses the study.
    pub(crate) fn limits(&self, workers: NonZeroU32, budget_bytes: u64) -> Result<Limits, PlanningError> {
        let cores = NonZeroUsize::try_from(workers).unwrap_or(NonZeroUsize::MIN);
        let pixels = self.material.tiles.iter().map(|tile| tile.pixels).max().unwrap_or(0);
        let mut all =
            Limits { max_buckets: NonZeroUsize::MIN, max_bucket_size: NonZeroUsize::MAX, peak_bytes: 0 };
        for (stage, problem) in self.material.workflow.stages.iter().zip(&self.stages) {
            let levels = level_bytes(stage, &operations(stage, self.material.registry), pixels);
            let input_bytes = stage.inputs.iter().map(|input| input.region.element.bytes(pixels)).sum();
            let bytes = StageBytes { input_bytes, levels: &levels };
            let choose = |concurrent_buckets, budget_bytes| {
                let machine = Capacity { cores, concurrent_buckets, budget_bytes };
                choose_limits(&problem.problem, &problem.tree, bytes, machine)
            };
            // Too little for anything: it is refused with what it takes once there is a plan.
            let limits = match choose(cores, budget_bytes) {
                Err(LimitsError::Memory { .. }) => match choose(NonZeroUsize::MIN, budget_bytes) {
                    Err(LimitsError::Memory { .. }) => choose(NonZeroUsize::MIN, u64::MAX),
                    limits => limits,
                },
                limits => limits,
            };
            let limits = limits.map_err(PlanningError::new)?;
            all.max_buckets = all.max_buckets.max(limits.max_buckets);
            all.max_bucket_size = all.max_bucket_size.min(limits.max_bucket_size);
            all.peak_bytes = all.peak_bytes.max(limits.peak_bytes);
        }
        Ok(all)
    }
}

/// The bytes that the dearest buckets hold, one a worker, each run depth-first, one task at a time.
pub(super) fn peak(loom: &PlanBuilder<'_>, solutions: &[Buckets], workers: NonZeroUsize) -> u64 {
    let mut peaks: Vec<u64> = Vec::new();
    let stages = loom.material.workflow.stages.iter().zip(&loom.stages);
    for ((stage, problem), solution) in stages.zip(solutions) {
        let operations = operations(stage, loom.material.registry);
        let of_tile = loom.material.tiles.iter().map(|tile| {
            let inputs = stage.inputs.iter().map(|input| input.region.element.bytes(tile.pixels));
            (inputs.sum(), level_bytes(stage, &operations, tile.pixels))
        });
        let of_tile: Vec<(u64, Vec<LevelBytes>)> = of_tile.collect();
        peaks.extend(solution.iter().map(|members| {
            let (input_bytes, levels) = &of_tile[loom.tile(problem.members[members[0].0 as usize])];
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
        // A stage's output is handed over when the instance is finished: after its last task.
        let leaves = stage.outputs.iter().any(|output| output.task == level);
        LevelBytes {
            output_bytes,
            scratch_bytes: operation.memory_bytes(pixels).saturating_sub(output_bytes),
            last_read: if leaves { stage.tasks.len() - 1 } else { last_reader },
        }
    });
    levels.collect()
}
