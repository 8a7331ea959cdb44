//! Granularity of a study: tasks of a stage, and stages, that would better run as one.
//!
//! Instances and times are those of a plan after stage merging that runs each distinct task once. A joined stage runs the tasks
//! of its first part in each instance, so its time is an upper bound: tasks that its buckets share still run once.

use crate::builder::StageProblem;
use crate::{PlanBuilder, PlanningError, PlanningInput};
use pleach_reuse::{FusionSavings, GranularityProblem, Merging, StageIndex, TaskGraph, TaskReads};
use pleach_workflow::{InputOrigin, Stage, TaskInput, Workflow};
use serde::Serialize;

/// Overhead of a task in seconds where none is given: grant, keys, lookup and accounting on a worker.
pub const TASK_OVERHEAD_SECONDS: f64 = 20e-6;

/// Overhead of a stage instance in seconds: lease, report and journal. A study of 200,000 empty evaluations takes 0.13 ms of processor
/// time for each, sampling and analysis included (`benches/RESULTS.md`).
pub const STAGE_OVERHEAD_SECONDS: f64 = 100e-6;

/// Granularity of all stages, and of their tasks.
#[derive(Clone, Debug, Serialize)]
pub struct GranularityRecord {
    /// Overhead of a task instance in seconds.
    pub task_overhead_seconds: f64,
    /// Overhead of a stage instance in seconds.
    pub stage_overhead_seconds: f64,
    /// Tasks of each stage.
    pub stages: Vec<Grains>,
    /// Stages of the workflow.
    pub workflow: Grains,
}

/// Steps that may run as one, and the groups with the least total time.
#[derive(Clone, Debug, Serialize)]
pub struct Grains {
    /// Name of the stage, or of the workflow.
    pub name: String,
    /// Tasks, or stages.
    pub steps: Vec<Grain>,
    /// Names of the steps of each group.
    pub groups: Vec<Vec<String>>,
    /// Total seconds of separate steps, overheads and transfers included.
    pub separate_seconds: f64,
    /// Total seconds of the groups.
    pub seconds: f64,
}

/// A task or a stage.
#[derive(Clone, Debug, Serialize)]
pub struct Grain {
    /// Name.
    pub name: String,
    /// Distinct instances.
    pub instances: u64,
    /// Predicted total seconds of its instances.
    pub seconds: f64,
}

impl Grains {
    /// Returns the share of the time that the groups save, 0–1.
    #[must_use]
    pub fn saved_fraction(&self) -> f64 {
        if self.separate_seconds > 0.0 { 1.0 - self.seconds / self.separate_seconds } else { 0.0 }
    }

    fn solve(
        name: &str,
        steps: &[&str],
        problem: &GranularityProblem<'_>,
        savings: FusionSavings<'_>,
    ) -> Self {
        let found = problem.solve(savings);
        let grain = |((name, instances), seconds): ((&&str, &u64), f64)| Grain {
            name: (*name).to_owned(),
            instances: *instances,
            seconds,
        };
        let named = |group: &Vec<usize>| group.iter().map(|step| steps[*step].to_owned()).collect();
        Self {
            name: name.to_owned(),
            steps: steps.iter().zip(problem.instances()).zip(problem.own_seconds()).map(grain).collect(),
            groups: found.groups.iter().map(named).collect(),
            separate_seconds: found.separate_seconds,
            seconds: found.seconds,
        }
    }
}

/// Finds the groups of tasks and of stages with the least total time, with this overhead of a task.
///
/// # Errors
/// [`PlanningError`] if the study has more runs or tasks than ids, or this machine lacks the memory.
pub fn granularity(
    study: PlanningInput<'_>,
    task_overhead_seconds: f64,
) -> Result<GranularityRecord, PlanningError> {
    let builder = &PlanBuilder::set_up(study, Merging::Merged)?;
    let workflow = study.workflow;
    let stages = workflow.stages.iter().zip(&builder.stages);
    Ok(GranularityRecord {
        task_overhead_seconds,
        stage_overhead_seconds: STAGE_OVERHEAD_SECONDS,
        stages: stages
            .map(|(stage, problem)| of_tasks(stage, problem, task_overhead_seconds))
            .collect::<Result<_, _>>()?,
        workflow: of_stages(builder, workflow)?,
    })
}

/// Finds the groups of a stage's tasks. Tasks of an instance run on one worker and transfer nothing.
fn of_tasks(stage: &Stage, problem: &StageProblem, overhead_seconds: f64) -> Result<Grains, PlanningError> {
    let mut read_outside = vec![false; stage.tasks.len()];
    stage.outputs.iter().for_each(|output| read_outside[output.task] = true);
    for (number, task) in stage.tasks.iter().enumerate().filter(|(_, task)| task.guard.is_some()) {
        // A guarded task may be skipped, alone.
        read_outside[number] = true;
        for read in &task.reads {
            if let TaskInput::Task { task, .. } = *read {
                read_outside[task] = true;
            }
        }
    }
    let names: Vec<&str> = stage.tasks.iter().map(|task| task.name.as_str()).collect();
    let found = GranularityProblem::of_tasks(&problem.tasks, problem.dataflow()?, &read_outside);
    let transfer_seconds = &vec![0.0; names.len()];
    Ok(Grains::solve(&stage.name, &names, &found, FusionSavings { overhead_seconds, transfer_seconds }))
}

/// Finds the groups of stages. With a link between workers, each instance receives its inputs over it.
fn of_stages(builder: &PlanBuilder<'_>, workflow: &Workflow) -> Result<Grains, PlanningError> {
    let reads = workflow.stages.iter().map(|stage| {
        let origins = || stage.inputs.iter().map(|input| input.origin);
        let of_stage = |origin| match origin {
            InputOrigin::Stage { stage, .. } => Some(stage),
            InputOrigin::Input(_) | InputOrigin::Reference => None,
        };
        let inputs = origins().any(|origin| of_stage(origin).is_none());
        TaskReads { tasks: origins().filter_map(of_stage).collect(), inputs }
    });
    let graph = TaskGraph::new(reads.collect())?;
    let mut read_outside = vec![false; workflow.stages.len()];
    // Runs of other evaluations read the reference.
    workflow.reference.iter().for_each(|reference| read_outside[reference.stage] = true);
    let responses = std::iter::once(&workflow.response).chain(&workflow.alternatives);
    responses.for_each(|response| read_outside[response.stage] = true);
    let (mut instances, mut means) = (Vec::new(), Vec::new());
    for (number, problem) in (0..).zip(&builder.stages) {
        let dataflow = problem.dataflow()?;
        let count = builder.graph.of_stage(StageIndex(number)).count();
        let seconds: f64 = dataflow.tasks().map(|task| dataflow.cost(task)).sum();
        instances.push(count as u64);
        means.push(seconds / count.max(1) as f64);
    }
    let tiles = builder.study.tiles;
    let pixels = tiles.iter().map(|tile| tile.pixels).sum::<u64>() / tiles.len().max(1) as u64;
    let transfer = |stage: &Stage| {
        let bytes = stage.outputs.iter().map(|output| output.region.element.bytes(pixels)).sum();
        builder.study.link.map_or(0.0, |link| link.seconds(bytes))
    };
    let transfer_seconds = &workflow.stages.iter().map(transfer).collect::<Vec<_>>();
    let names: Vec<&str> = workflow.stages.iter().map(|stage| stage.name.as_str()).collect();
    let problem = GranularityProblem::of_means(&graph, instances, &means, &read_outside);
    let savings = FusionSavings { overhead_seconds: STAGE_OVERHEAD_SECONDS, transfer_seconds };
    Ok(Grains::solve(&workflow.name, &names, &problem, savings))
}
