//! Work of each operation of a plan, for the speed of accelerators beside the cores.

use crate::builder::StageProblem;
use crate::planned::planned_study::PlannedStudy;
use crate::{PlanBuilder, PlanningError, PlanningInput, ReuseMode, operations};
use pleach_dispatch::cost_model::{OperationWork, speed_with_accelerators};
use pleach_dispatch::stage::GAIN_UNIT;
use pleach_reuse::NodeId;
use pleach_workflow::Operation;

impl PlannedStudy {
    /// Returns the work of each task of the workflow. Tasks that are equal in the plan's reuse scope count once. `study` is the
    /// input of the plan. Call it before [`take_replanner`](Self::take_replanner).
    ///
    /// # Errors
    /// [`PlanningError`] if the study has more tasks than ids.
    pub fn operation_work(&self, study: PlanningInput<'_>) -> Result<Vec<OperationWork>, PlanningError> {
        of_stages(study, &self.stages, self.mode)
    }
}

/// Speed of the slots of a plan and the accelerators beside them.
pub(crate) struct HybridSpeed {
    /// How many times faster they are than the slots alone.
    pub(crate) all: f64,
    /// By stage and task: how many times faster its fastest kind of slot is than a core.
    pub(crate) fastest: Vec<Vec<f64>>,
}

impl HybridSpeed {
    pub(crate) fn new(builder: &PlanBuilder<'_>, mode: ReuseMode, slots: u32) -> Result<Self, PlanningError> {
        let (study, accelerators) = (builder.study, builder.study.accelerators);
        let mut fastest: Vec<Vec<f64>> =
            builder.stages.iter().map(|stage| vec![1.0; stage.problem.levels()]).collect();
        if accelerators == 0 {
            return Ok(Self { all: 1.0, fastest });
        }
        let work = of_stages(study, &builder.stages, mode)?;
        for (fastest, operation) in fastest.iter_mut().flatten().zip(&work) {
            *fastest = operation.gain.map_or(1.0, |gain| gain.max(1.0));
        }
        Ok(Self { all: speed_with_accelerators(&work, slots, accelerators), fastest })
    }
}

fn of_stages(
    study: PlanningInput<'_>,
    stages: &[StageProblem],
    mode: ReuseMode,
) -> Result<Vec<OperationWork>, PlanningError> {
    let mut work = Vec::new();
    for (stage, problem) in study.workflow.stages.iter().zip(stages) {
        let operations = operations(stage, study.registry);
        let seconds = seconds_by_level(problem, mode)?;
        let of = |(operation, seconds): (_, f64)| of_operation(study, operation, seconds);
        work.extend(operations.iter().map(AsRef::as_ref).zip(seconds).map(of));
    }
    Ok(work)
}

/// Returns the work of an operation that takes `core_seconds` on cores. Values of its parameters have no gains of their own.
fn of_operation(study: PlanningInput<'_>, operation: &dyn Operation, core_seconds: f64) -> OperationWork {
    if operation.needs_accelerator() {
        // It declares no gain: its seconds are those on an accelerator.
        return OperationWork { core_seconds, gain: Some(1.0), on_core: false };
    }
    let gain = operation.accelerated().map(|variant| {
        let gain = study.costs.device_gain(operation, &[], variant.gain());
        f64::from(gain.thousandths) / f64::from(GAIN_UNIT)
    });
    OperationWork { core_seconds, gain, on_core: true }
}

/// Returns the predicted seconds of the tasks of each level, with equal tasks of the reuse scope once.
fn seconds_by_level(problem: &StageProblem, mode: ReuseMode) -> Result<Vec<f64>, PlanningError> {
    let mut seconds = vec![0.0; problem.problem.levels()];
    if mode.is_dataflow() {
        let dataflow = problem.dataflow()?;
        dataflow.tasks().for_each(|task| seconds[dataflow.level(task)] += dataflow.cost(task));
    } else if mode.sharing().is_some() {
        for (level, seconds) in seconds.iter_mut().enumerate() {
            let nodes = problem.tree.level(level);
            *seconds = (nodes.start.0..nodes.end.0).map(|node| problem.tree.cost(NodeId(node))).sum();
        }
    } else {
        let tasks = problem.seconds();
        tasks.for_each(|(_, tasks)| seconds.iter_mut().zip(tasks).for_each(|(sum, task)| *sum += task));
    }
    Ok(seconds)
}
