//! Exports a plan to the simulator: task keys, inputs and predicted seconds of each instance.

use super::PlannedStudy;
use pleach_dispatch::InstanceId;
use pleach_simulation::workload::StageWorkload;

impl PlannedStudy {
    /// Returns the instances of each stage, instances that only the reference needs last.
    pub fn traces(&self) -> Vec<StageWorkload> {
        let trace = |stage: &super::builder::StageProblem| {
            let mut trace = StageWorkload { levels: stage.problem.levels(), ..StageWorkload::default() };
            for (tables, instances) in stage.tables() {
                trace.instances.extend(instances.iter().map(|instance| InstanceId(instance.0)));
                trace.inputs.extend(tables.inputs);
                trace.keys.extend(tables.keys);
                trace.seconds.extend(tables.costs);
            }
            trace
        };
        self.stages.iter().map(trace).collect()
    }
}
