//! Whether the tables of a plan fit into memory, before they are made.
//!
//! Three estimates: of runs and their stage instances, before any is merged; of the tables that buckets are made from, once
//! it is known how many instances there are; and of the plan that is executed. Each is an upper bound beside what the
//! process has taken by then, from the peaks of a process that planned; `tests/memory_limit.rs` looks at limits around them.

use super::{PlanningError, PlanningInput};
use crate::memory_limit;
use pleach_reuse::{CompactGraph, StageIndex};
use pleach_workflow::Value;
use thiserror::Error;

/// Bytes of an evaluation's values of a stage beside the values: a list, its place in a hash table that is half full, and
/// what the allocator adds.
const KEY_BYTES: u64 = 112;

/// Bytes of a stage instance while equal ones are merged: itself, what it reads, its consumers, its key in a hash table, and
/// the number that each run has for it.
const MERGING_BYTES: u64 = 120;

/// Bytes of a stage instance, and of each of its tasks, in the tables that buckets and figures are made from: keys, costs, the
/// reuse tree, the graph of tasks. Of the nuclei workflow's 57,934 instances of 260,700 tasks, `pleach plan` took 33 MB
/// beside parameter sets; this is 49 MB.
const TABLE_BYTES: [u64; 2] = [400, 100];

/// The same in the plan that is executed, beside these tables: keys of regions, inputs, outputs, values, and the dry run that
/// says how much memory it needs. Of the same instances, `pleach run` took 135 MB with the tables; this is 104 MB more.
const EXECUTION_BYTES: [u64; 2] = [800, 220];

/// A plan that does not fit.
#[derive(Debug, Error)]
#[error("{0}")]
struct TooLarge(String);

const ADVICE: &str = "fewer evaluations or tiles, or more memory, are needed";

/// Refuses a study whose runs do not fit.
pub(super) fn for_runs(material: PlanningInput<'_>) -> Result<(), PlanningError> {
    let (evaluations, tiles) = (material.evaluations.len() as u64, material.tiles.len() as u64);
    let stages = &material.workflow.stages;
    let values: u64 = stages.iter().map(|stage| (stage.parameters.len() * size_of::<Value>()) as u64).sum();
    let keys = evaluations.saturating_mul(stages.len() as u64 * KEY_BYTES + values);
    let runs = evaluations.saturating_mul(tiles);
    let instances = runs.saturating_mul(stages.len() as u64);
    let needed = keys.saturating_add(instances.saturating_mul(MERGING_BYTES));
    check(needed, &format!("{runs} runs of {} stages", stages.len()))
}

/// Refuses a study whose tables do not fit.
pub(super) fn for_tables(material: PlanningInput<'_>, graph: &CompactGraph) -> Result<(), PlanningError> {
    for_instances(material, graph, TABLE_BYTES)
}

/// Refuses a study whose tables fit, and its plan does not.
pub(super) fn for_execution(material: PlanningInput<'_>, graph: &CompactGraph) -> Result<(), PlanningError> {
    for_instances(material, graph, EXECUTION_BYTES)
}

fn for_instances(
    material: PlanningInput<'_>,
    graph: &CompactGraph,
    [of_instance, of_task]: [u64; 2],
) -> Result<(), PlanningError> {
    let stages = (0u32..).map(StageIndex).zip(&material.workflow.stages);
    let of = |(index, stage): (StageIndex, &pleach_workflow::Stage)| {
        let instances = graph.of_stage(index).count() as u64;
        instances.saturating_mul(of_instance + stage.tasks.len() as u64 * of_task)
    };
    let needed = stages.map(of).fold(0, u64::saturating_add);
    check(needed, &format!("{} stage instances", graph.instances().len()))
}

fn check(needed_bytes: u64, work: &str) -> Result<(), PlanningError> {
    memory_limit::check_room(needed_bytes, work, ADVICE)
        .map_err(|problem| PlanningError::new(TooLarge(problem)))
}
