//! A plan as simulations take it: what the tasks of each instance are, what they share and what they are believed to take.

use super::PlannedStudy;
use pleach_dispatch::InstanceId;
use pleach_simulation::workload::StageWorkload;

impl PlannedStudy {
    /// The instances of each stage, those that serve the reference only behind the others.
    pub(crate) fn traces(&self) -> Vec<StageWorkload> {
        let trace = |stage: &super::planner::StageProblem| {
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
