//! Checks that a plan's tables fit into the planning process, before they are built.
//!
//! Three estimates: runs and their stage instances before merging, tables that buckets are built from after merging, and the
//! execution plan. Each is an upper bound, fitted to peaks of planning processes, and adds to the memory in use at that
//! point. `tests/memory_limit.rs` tries limits around them.

use crate::{PlanningError, PlanningInput, memory_limit};
use pleach_reuse::{CompactGraph, StageIndex};
use pleach_workflow::Value;

/// Bytes of an evaluation's list of stage values, without the values: list, entry of a half-full hash table, allocator overhead.
const KEY_BYTES: u64 = 112;

/// Bytes of a stage instance during merging: instance, inputs, consumers, hash table key, and one number for each run.
const MERGING_BYTES: u64 = 120;

/// Bytes of a stage instance, and of each of its tasks, in the tables of planning: keys, costs, reuse tree, task graph.
/// For 57,934 instances of the nuclei workflow with 260,700 tasks, `pleach plan` used 33 MB beside parameter sets. This
/// estimate gives 49 MB.
const TABLE_BYTES: [u64; 2] = [400, 100];

/// Bytes of a stage instance, and of each of its tasks, in the execution plan: region keys, inputs, outputs, values, and the
/// dry run. For the same instances, `pleach run` used 135 MB with the tables. This estimate gives 104 MB more than them.
const EXECUTION_BYTES: [u64; 2] = [800, 220];

const ADVICE: &str = "fewer evaluations or tiles, or more memory, are needed";

/// Refuses a study if its runs do not fit.
pub(crate) fn for_runs(study: PlanningInput<'_>) -> Result<(), PlanningError> {
    let (evaluations, tiles) = (study.evaluations.len() as u64, study.tiles.len() as u64);
    let stages = &study.workflow.stages;
    let values: u64 = stages.iter().map(|stage| (stage.parameters.len() * size_of::<Value>()) as u64).sum();
    let keys = evaluations.saturating_mul(stages.len() as u64 * KEY_BYTES + values);
    let runs = evaluations.saturating_mul(tiles);
    let instances = runs.saturating_mul(stages.len() as u64);
    // Saturation keeps an absurd product above every limit, where a wrapped one would pass the check.
    let needed = keys.saturating_add(instances.saturating_mul(MERGING_BYTES));
    check(needed, &format!("{runs} runs of {} stages", stages.len()))
}

/// Refuses a study if its tables do not fit.
pub(crate) fn for_tables(study: PlanningInput<'_>, graph: &CompactGraph) -> Result<(), PlanningError> {
    for_instances(study, graph, TABLE_BYTES)
}

/// Refuses a study if its execution plan does not fit.
pub(crate) fn for_execution(study: PlanningInput<'_>, graph: &CompactGraph) -> Result<(), PlanningError> {
    for_instances(study, graph, EXECUTION_BYTES)
}

fn for_instances(
    study: PlanningInput<'_>,
    graph: &CompactGraph,
    [of_instance, of_task]: [u64; 2],
) -> Result<(), PlanningError> {
    let stages = (0u32..).map(StageIndex).zip(&study.workflow.stages);
    let of = |(index, stage): (StageIndex, &pleach_workflow::Stage)| {
        let instances = graph.of_stage(index).count() as u64;
        instances.saturating_mul(of_instance + stage.tasks.len() as u64 * of_task)
    };
    let needed = stages.map(of).fold(0, u64::saturating_add);
    check(needed, &format!("{} stage instances", graph.instances().len()))
}

fn check(needed_bytes: u64, work: &str) -> Result<(), PlanningError> {
    Ok(memory_limit::check_room(needed_bytes, work, ADVICE)?)
}
