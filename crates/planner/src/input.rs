//! Input of planning: a study's workflow, parameter sets and tiles.

use pleach_dispatch::cost_model::CostModel;
use pleach_regions::RegionKey;
use pleach_reuse::TransferCost;
use pleach_workflow::{Operation, Registry, Stage, UnitSelector, Units, Value, Workflow};
use std::collections::BTreeSet;
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
    /// Positions of the tiles in their specimens. `None` if stages read only regions of their own tile.
    pub units: Option<&'a Units>,
    /// Cost of operations: measured where known, otherwise declared.
    pub costs: &'a CostModel,
    /// Link between workers, for predicted transfers. `None` if all slots are in one process.
    pub link: Option<TransferCost>,
    /// Fixed seconds that each bucket takes on its slot before its first task, such as the wait in a queue. Not negative.
    pub bucket_overhead_seconds: f64,
    /// Accelerators beside the slots of the plan, for the predicted makespan.
    pub accelerators: u32,
}

impl PlanningInput<'_> {
    /// Returns, for each stage, the pixels that it works on on each tile.
    pub(crate) fn stage_pixels(&self) -> Vec<Vec<u64>> {
        let tiles: Vec<u64> = self.tiles.iter().map(|tile| tile.pixels).collect();
        match self.units {
            Some(units) => units.stage_pixels(self.workflow, &tiles),
            None => vec![tiles; self.workflow.stages.len()],
        }
    }

    /// Returns the units that stages read beside their own, each once.
    pub(crate) fn selectors(&self) -> Vec<UnitSelector> {
        let inputs = self.workflow.stages.iter().flat_map(|stage| &stage.inputs);
        let selectors: BTreeSet<UnitSelector> = inputs.filter_map(|input| input.unit()).collect();
        selectors.into_iter().collect()
    }
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
