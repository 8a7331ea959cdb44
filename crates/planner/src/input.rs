//! Input of planning: a study's workflow, parameter sets and tiles.

use pleach_dispatch::cost_model::CostModel;
use pleach_regions::RegionKey;
use pleach_reuse::TransferCost;
use pleach_workflow::{Operation, Registry, Stage, Value, Workflow};
use std::sync::Arc;

/// Input of planning.
#[derive(Clone, Copy, Debug)]
pub struct PlanningInput<'a> {
    /// Workflow of the study.
    pub workflow: &'a Workflow,
    /// Operations that the workflow may name.
    pub registry: &'a Registry,
    /// Parameter sets, evaluation 0 (the defaults) first where it is run.
    pub evaluations: &'a Arc<Vec<Vec<Value>>>,
    /// Evaluation 0 is run.
    pub defaults_run: bool,
    /// Evaluation 0 is run, and its result is the reference.
    pub reference_run: bool,
    /// Tiles.
    pub tiles: &'a [PlanTile],
    /// Cost of operations: measured where known, otherwise declared.
    pub costs: &'a CostModel,
    /// Link between workers, for predicted transfers. `None` if all slots are in one process.
    pub link: Option<TransferCost>,
}

/// Link between workers where it is unknown: 10 Gbit/s, with a latency of 1 ms.
pub const DEFAULT_LINK: TransferCost = TransferCost { bytes_per_second: 1.25e9, latency_seconds: 1e-3 };

/// Tile to plan for.
#[derive(Clone, Debug)]
pub struct PlanTile {
    /// Number of pixels.
    pub pixels: u64,
    /// Keys of its files: one for each input of the workflow, then the reference file, if there is one, once for each
    /// of [`Workflow::reference_elements`].
    pub inputs: Vec<RegionKey>,
}

/// Returns the operations of a stage's tasks, in order. A checked workflow names only registered operations.
pub(crate) fn operations(stage: &Stage, registry: &Registry) -> Vec<Arc<dyn Operation>> {
    stage.tasks.iter().filter_map(|task| registry.get(&task.operation, task.version).cloned()).collect()
}
