//! Exports the merge problems of a plan: task keys, inputs and predicted seconds of each instance, for the simulator.

use crate::PlannedStudy;
use pleach_dispatch::InstanceId;
use pleach_reuse::TaskGraph;

/// Stage instances of one stage, with their tasks.
#[derive(Clone, Debug)]
pub struct StageTables {
    /// Number of tasks of each instance.
    pub levels: usize,
    /// Instances, as the plan numbers them.
    pub instances: Vec<InstanceId>,
    /// Input of each instance, as in [`MergeProblem`](pleach_reuse::MergeProblem).
    pub inputs: Vec<u32>,
    /// Keys of the tasks of each instance.
    pub keys: Vec<u32>,
    /// Predicted seconds of the tasks of each instance.
    pub seconds: Vec<f64>,
    /// Inputs of each task.
    pub tasks: TaskGraph,
}

impl PlannedStudy {
    /// Returns the tables of each stage, instances that only the reference needs last.
    #[must_use]
    pub fn stage_tables(&self) -> Vec<StageTables> {
        let tables = |stage: &crate::builder::StageProblem| {
            let mut all = StageTables {
                levels: stage.problem.levels(),
                instances: Vec::new(),
                inputs: Vec::new(),
                keys: Vec::new(),
                seconds: Vec::new(),
                tasks: stage.tasks.clone(),
            };
            for (tables, instances) in stage.tables() {
                all.instances.extend(instances.iter().map(|instance| InstanceId(instance.0)));
                all.inputs.extend(tables.inputs);
                all.keys.extend(tables.keys);
                all.seconds.extend(tables.costs);
            }
            all
        };
        self.stages.iter().map(tables).collect()
    }
}
