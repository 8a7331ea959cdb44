//! What a plan saves and what it will cost: the numbers of `pleach plan` and of `plan.json`.

use super::planner::{StageProblem, WorkTotal};
use super::{Forecast, PlanBuilder, PlanningError, ReuseMode, forecast, memory_bounds};
use pleach_reuse::{BucketCost, Buckets, ReuseSummary, reuse_fraction};
use pleach_workflow::Stage;
use serde::Serialize;
use std::collections::BTreeMap;
use std::num::NonZeroUsize;

/// The figures of a plan. Instances that serve only the defaults (evaluation 0) are executed, and counted nowhere here but in
/// `reference_tasks` and the predictions.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct PlanSummary {
    pub(crate) evaluations: usize,
    pub(crate) runs: usize,
    pub(crate) buckets: usize,
    pub(crate) per_stage: Vec<StageSummary>,
    /// Of the stage whose output is compared: the segmentation.
    pub(crate) reuse_fraction: f64,
    pub(crate) cost_reuse_fraction: f64,
    /// Of the same stage, in estimated seconds.
    pub(crate) max_bucket_cost: f64,
    pub(crate) min_bucket_cost: f64,
    /// Tasks executed for the defaults and nothing else, whether they give the reference or are held against it.
    pub(crate) reference_tasks: usize,
    pub(crate) predicted_makespan_seconds: f64,
    pub(crate) lower_bound_seconds: f64,
    /// Of the dearest buckets' trees; what is kept for other buckets comes on top.
    pub(crate) predicted_peak_bytes: u64,
    /// Which of `per_stage` the fractions and the bucket costs are of.
    #[serde(skip)]
    pub(crate) headline: usize,
}

/// The figures of one stage.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct StageSummary {
    pub(crate) stage: String,
    pub(crate) instances_without_reuse: usize,
    pub(crate) instances: usize,
    pub(crate) tasks_after_stage_merging: usize,
    /// Tasks executed, as far as it is known before: what turns out to be equal in value only is among them, and what
    /// is cheaper to compute again than to look for, or was let go of, comes on top.
    pub(crate) tasks: usize,
    pub(crate) reuse_fraction: f64,
    pub(crate) cost_reuse_fraction: f64,
    pub(crate) buckets: usize,
    /// Estimated seconds. A task that several buckets share counts in the first of them.
    pub(crate) max_bucket_cost: f64,
    pub(crate) min_bucket_cost: f64,
    /// Tasks that several buckets need and one executes.
    pub(crate) transferred: usize,
    /// The same by name of the task, of those of which there are any.
    pub(crate) transferred_tasks: BTreeMap<String, usize>,
    /// Tasks if buckets shared nothing but first tasks, each within itself.
    #[serde(skip)]
    pub(crate) tasks_with_tree_reuse: usize,
}

/// The figures of a solution of `loom`.
///
/// # Errors
/// [`PlanningError`] when the study has more tasks than ids.
pub(crate) fn of(
    loom: &PlanBuilder<'_>,
    solutions: &[Buckets],
    level: ReuseMode,
    workers: u32,
) -> Result<PlanSummary, PlanningError> {
    let PlanBuilder { material, .. } = loom;
    let evaluations = material.evaluations.len() - usize::from(material.defaults_run);
    let runs = evaluations * material.tiles.len();
    let (mut per_stage, mut reference_tasks) = (Vec::new(), 0);
    let stages = material.workflow.stages.iter().zip(&loom.stages).zip(&loom.after_merging);
    for (((stage, problem), after), solution) in stages.zip(solutions) {
        let figures = StageSummary::new(stage, problem, *after, solution, level)?;
        reference_tasks += if level.is_dataflow() {
            problem.dataflow()?.len() - figures.tasks
        } else {
            problem.reference_only.len() * problem.problem.levels()
        };
        per_stage.push(StageSummary { instances_without_reuse: runs, ..figures });
    }
    let headline = material.workflow.reference.as_ref().map_or(0, |reference| reference.stage);
    let Forecast { makespan_seconds, lower_bound_seconds } = forecast(loom, solutions, level, workers)?;
    let workers = NonZeroUsize::new(workers as usize).unwrap_or(NonZeroUsize::MIN);
    Ok(PlanSummary {
        evaluations,
        runs,
        buckets: per_stage.iter().map(|stage| stage.buckets).sum(),
        reuse_fraction: per_stage[headline].reuse_fraction,
        cost_reuse_fraction: per_stage[headline].cost_reuse_fraction,
        max_bucket_cost: per_stage[headline].max_bucket_cost,
        min_bucket_cost: per_stage[headline].min_bucket_cost,
        reference_tasks,
        predicted_makespan_seconds: makespan_seconds,
        lower_bound_seconds,
        predicted_peak_bytes: memory_bounds::peak(loom, solutions, workers),
        per_stage,
        headline,
    })
}

impl StageSummary {
    /// All but the number of replicas, which is the study's.
    fn new(
        stage: &Stage,
        problem: &StageProblem,
        after: WorkTotal,
        solution: &Buckets,
        level: ReuseMode,
    ) -> Result<Self, PlanningError> {
        let trees = ReuseSummary::new(&problem.problem, &problem.tree, solution, |_| true);
        let mut figures = Self {
            stage: stage.name.clone(),
            instances_without_reuse: 0,
            instances: trees.instances,
            tasks_after_stage_merging: after.tasks,
            tasks: trees.tasks,
            reuse_fraction: 0.0,
            cost_reuse_fraction: 0.0,
            buckets: trees.buckets,
            max_bucket_cost: trees.max_bucket_cost,
            min_bucket_cost: trees.min_bucket_cost,
            transferred: 0,
            transferred_tasks: BTreeMap::new(),
            tasks_with_tree_reuse: trees.tasks,
        };
        let mut seconds = trees.cost;
        if level.is_dataflow() {
            let dataflow = problem.dataflow()?;
            let costs = dataflow.first_costs(solution);
            let each = || costs.iter().map(|BucketCost { cost, .. }| *cost);
            figures.tasks = costs.iter().map(|bucket| bucket.tasks).sum();
            figures.max_bucket_cost = each().fold(0.0, f64::max);
            figures.min_bucket_cost = each().reduce(f64::min).unwrap_or(0.0);
            let buckets = dataflow.buckets_per_task(solution);
            for task in dataflow.tasks().filter(|task| buckets[task.0 as usize] > 1) {
                let name = stage.tasks[dataflow.level(task)].name.clone();
                *figures.transferred_tasks.entry(name).or_default() += 1;
                figures.transferred += 1;
            }
            seconds = each().sum();
        }
        // The denominator is what stage-level merging leaves, also where nothing is merged.
        figures.reuse_fraction = reuse_fraction(figures.tasks as f64, after.tasks as f64);
        // Sums of the same numbers in another order differ in the last bits: no reuse is 0, not 1e-16.
        if figures.tasks != after.tasks {
            figures.cost_reuse_fraction = reuse_fraction(seconds, after.seconds);
        }
        Ok(figures)
    }
}
