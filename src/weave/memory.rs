//! How many bytes a plan takes: at most, and at least. Nothing is admitted or refused here.

use super::{Material, StageSolution, WeaveError, Woven, operations};
use pleach_dispatch::memory::TaskBytes;
use pleach_dispatch::rehearsal;
use pleach_reuse::{CompactGraph, LevelBytes, Runs, peak_bytes};
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

/// The bytes that the dearest buckets hold, one a worker, each run depth-first.
pub(super) fn peak(
    material: Material<'_>,
    runs: &Runs,
    graph: &CompactGraph,
    solutions: &[StageSolution],
    workers: NonZeroUsize,
) -> u64 {
    let mut peaks: Vec<u64> = Vec::new();
    for (stage, solution) in material.workflow.stages.iter().zip(solutions) {
        peaks.extend(bucket_peaks(material, runs, graph, stage, solution).map(|(_, bytes)| bytes));
    }
    peaks.sort_unstable_by(|a, b| b.cmp(a));
    peaks.iter().take(workers.get()).sum()
}

/// The tile of every bucket, and the bytes it holds at most, run depth-first, one task at a time.
fn bucket_peaks<'a>(
    material: Material<'a>,
    runs: &'a Runs,
    graph: &'a CompactGraph,
    stage: &'a Stage,
    solution: &'a StageSolution,
) -> impl Iterator<Item = (usize, u64)> {
    let operations = operations(stage, material.registry);
    solution.buckets.iter().map(move |members| {
        let first = solution.members[members[0].0 as usize];
        let tile = runs.tile(graph.instance(first).first_run);
        let pixels = material.tiles[tile].pixels;
        let input_bytes = stage.inputs.iter().map(|input| input.region.element.bytes(pixels)).sum();
        let levels = level_bytes(stage, &operations, pixels);
        (tile, peak_bytes(&solution.problem, &solution.tree, members, input_bytes, &levels))
    })
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
