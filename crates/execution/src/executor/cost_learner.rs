//! Learns the costs of operations from the reports of workers in other processes, whose own cost models this process does not
//! see. Replans of the study use them, and so do later plans.

use parking_lot::Mutex;
use pleach_dispatch::InstanceId;
use pleach_dispatch::cost_model::CostModel;
use pleach_dispatch::message::{TaskOutcome, TaskReport};
use pleach_planner::PlannedStudy;
use pleach_study::PreparedStudy;
use pleach_workflow::Operation;
use std::sync::Arc;

/// Cost model of a study on other processes.
pub(super) struct CostLearner {
    /// By stage and task.
    operations: Vec<Vec<Option<Arc<dyn Operation>>>>,
    /// By tile.
    pixels: Vec<u64>,
    /// By instance.
    tile_of: Vec<u32>,
    costs: Arc<Mutex<CostModel>>,
}

impl CostLearner {
    /// Creates the learner of a plan, which updates `costs`.
    pub(super) fn new(
        prepared: &PreparedStudy,
        planned: &PlannedStudy,
        costs: Arc<Mutex<CostModel>>,
    ) -> Self {
        let operations = prepared.study.workflow.stages.iter().map(|stage| {
            let operation =
                |task: &pleach_workflow::Task| prepared.registry.get(&task.operation, task.version);
            stage.tasks.iter().map(|task| operation(task).cloned()).collect()
        });
        let tile = |instance| planned.first_run(InstanceId(instance)).1 as u32;
        Self {
            operations: operations.collect(),
            pixels: prepared.tiles.iter().map(|tile| tile.pixels).collect(),
            tile_of: (0..planned.instances() as u32).map(tile).collect(),
            costs,
        }
    }

    /// Learns from the tasks that were executed in the bucket of an instance.
    pub(super) fn learn(&self, instance: InstanceId, tasks: &[TaskReport]) {
        let Some(tile) = self.tile_of.get(instance.index()) else { return };
        let pixels = self.pixels[*tile as usize];
        let mut costs = self.costs.lock();
        for report in tasks {
            let TaskOutcome::Ran { seconds, .. } = report.done else { continue };
            let of_stage = self.operations.get(report.stage as usize);
            // Workers report the place, so it may be none of the workflow.
            if let Some(Some(operation)) = of_stage.and_then(|tasks| tasks.get(report.task as usize)) {
                // The report does not say which values the task had, so all of them are learned together.
                costs.observe(operation.as_ref(), &[], pixels, seconds);
            }
        }
    }
}
