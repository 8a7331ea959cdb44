//! How many bytes a plan takes: at most, and at least. Nothing is admitted or refused here.

use super::{Loom, WeaveError, Woven, operations};
use pleach_dispatch::memory::TaskBytes;
use pleach_dispatch::rehearsal;
use pleach_reuse::{Buckets, LevelBytes, peak_bytes};
use pleach_workflow::{Operation, Read, Registry, Stage};
use std::num::NonZeroUsize;
use std::sync::Arc;

/// The memory without which a study cannot be executed, and what asks for it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Least {
    pub(crate) bytes: u64,
    /// The stage that is at work when most is held, by index.
    pub(crate) stage: usize,
    /// And on which tile.
    pub(crate) tile: usize,
}

/// Rehearses the plan with what operations declare, notes in it what it needs, and says what that comes to.
///
/// # Errors
/// [`WeaveError`] when the plan breaks its own rules.
pub(crate) fn rehearse(woven: &mut Woven, registry: &Registry) -> Result<Least, WeaveError> {
    let stages = &woven.plan.stages;
    let operations: Vec<_> = stages.iter().map(|stage| operations(stage, registry)).collect();
    let bytes =
        |stage: usize, pixels: u64| operations[stage].iter().map(|op| task_bytes(op, pixels)).collect();
    let rehearsal = rehearsal::rehearse(&woven.plan, bytes).map_err(WeaveError::new)?;
    woven.plan.needs = rehearsal.needs;
    let place = rehearsal.dearest.map(|instance| (woven.stage(instance), woven.first_run(instance).1));
    let (stage, tile) = place.unwrap_or_default();
    Ok(Least { bytes: woven.plan.needs.least_bytes, stage, tile })
}

fn task_bytes(operation: &Arc<dyn Operation>, pixels: u64) -> TaskBytes {
    let outputs: Vec<u64> = operation.outputs().iter().map(|port| port.element.bytes(pixels)).collect();
    TaskBytes { scratch: operation.memory_bytes(pixels).saturating_sub(outputs.iter().sum()), outputs }
}

/// The bytes that the dearest buckets hold, one a worker, each run depth-first, one task at a time.
pub(super) fn peak(loom: &Loom<'_>, solutions: &[Buckets], workers: NonZeroUsize) -> u64 {
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
            other.reads.iter().any(|read| matches!(*read, Read::Task { task, .. } if task == level))
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
