//! Savings and predicted cost of a plan, as in `pleach plan` and `plan.json`.

use crate::builder::{StageProblem, WorkTotal};
use crate::memory::memory_bounds;
use crate::planned::makespan::forecast;
use crate::{MakespanForecast, PlanBuilder, PlanningError, ReuseMode};
use pleach_reuse::{BucketCost, Buckets, ReuseSummary, TransferForecast, bucket_cost_hrv, reuse_fraction};
use pleach_workflow::Stage;
use serde::Serialize;
use std::collections::BTreeMap;
use std::num::NonZeroUsize;

/// Summary of a plan. Instances that serve only the defaults (evaluation 0) count in `reference_tasks` and the predictions only.
#[derive(Clone, Debug, Serialize)]
pub struct PlanSummary {
    /// Evaluations, without the defaults.
    pub evaluations: usize,
    /// Runs: evaluations times tiles.
    pub runs: usize,
    /// Number of buckets.
    pub buckets: usize,
    /// Stages, in order.
    pub per_stage: Vec<StageSummary>,
    /// Share of tasks saved in the stage whose output is compared (the segmentation).
    pub reuse_fraction: f64,
    /// Share of predicted seconds saved.
    pub cost_reuse_fraction: f64,
    /// Cost of that stage's most expensive bucket, in predicted seconds.
    pub max_bucket_cost: f64,
    /// Cost of the cheapest bucket, in predicted seconds.
    pub min_bucket_cost: f64,
    /// Horizontal runtime variance of that stage's buckets.
    pub bucket_cost_hrv: f64,
    /// Tasks that only the defaults need, whether their result is the reference or is compared with it.
    pub reference_tasks: usize,
    /// Fixed seconds of each bucket in the predictions.
    pub bucket_overhead_seconds: f64,
    /// Accelerators beside the slots.
    #[serde(skip_serializing_if = "is_zero")]
    pub accelerators: u32,
    /// Makespan of list scheduling of the buckets.
    pub predicted_makespan_seconds: f64,
    /// Lower bound of all plans with this reuse scope.
    pub lower_bound_seconds: f64,
    /// Outputs that workers are predicted to receive from each other, or to compute again.
    pub transfers: TransferForecast,
    /// Predicted peak of the largest buckets' trees. Outputs retained for other buckets add to it.
    pub predicted_peak_bytes: u64,
    /// Index in `per_stage` of the stage that fractions and bucket costs are of.
    #[serde(skip)]
    pub headline: usize,
}

/// Summary of one stage.
#[derive(Clone, Debug, Serialize)]
pub struct StageSummary {
    /// Stage name.
    pub stage: String,
    /// Stage instances before merging: one for each run.
    pub instances_without_reuse: usize,
    /// Stage instances after merging.
    pub instances: usize,
    /// Tasks of the merged instances, without task reuse.
    pub tasks_after_stage_merging: usize,
    /// Tasks to execute, as known before execution. Tasks equal by value only are among them. Recomputed tasks, which are
    /// cheaper than a lookup or were evicted, come on top.
    pub tasks: usize,
    /// Share of tasks saved.
    pub reuse_fraction: f64,
    /// Share of predicted seconds saved.
    pub cost_reuse_fraction: f64,
    /// Number of buckets.
    pub buckets: usize,
    /// Cost of the most expensive bucket, in predicted seconds. A task that buckets share counts in the first of them.
    pub max_bucket_cost: f64,
    /// Cost of the cheapest bucket, in predicted seconds.
    pub min_bucket_cost: f64,
    /// Horizontal runtime variance (HRV) of the buckets: the sample standard deviation of their costs in relation to the
    /// mean (paper 002 §4.1). 0 for one bucket.
    pub bucket_cost_hrv: f64,
    /// Tasks that several buckets need and one executes.
    pub transferred: usize,
    /// Transferred tasks by task name. Tasks without any are left out.
    pub transferred_tasks: BTreeMap<String, usize>,
    /// Tasks with the tree scope.
    #[serde(skip)]
    pub tasks_with_tree_reuse: usize,
}

/// Plans without accelerators do not mention them.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes fields by reference")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// Summarizes `solutions`, the buckets of each stage.
///
/// # Errors
/// [`PlanningError`] if the study has more tasks than ids.
pub(crate) fn summarize(
    builder: &PlanBuilder<'_>,
    solutions: &[Buckets],
    mode: ReuseMode,
    workers: u32,
) -> Result<PlanSummary, PlanningError> {
    let PlanBuilder { study, .. } = builder;
    let evaluations = study.evaluations.len() - usize::from(study.defaults_run);
    let runs = evaluations * study.tiles.len();
    let (mut per_stage, mut reference_tasks) = (Vec::new(), 0);
    let stages = study.workflow.stages.iter().zip(&builder.stages).zip(&builder.after_merging);
    for (((stage, problem), after), solution) in stages.zip(solutions) {
        let summary = StageSummary::new(stage, problem, *after, solution, mode)?;
        reference_tasks += if mode.is_dataflow() {
            problem.dataflow()?.len() - summary.tasks
        } else {
            problem.reference_only.len() * problem.problem.levels()
        };
        per_stage.push(StageSummary { instances_without_reuse: runs, ..summary });
    }
    let headline = study.workflow.reference.as_ref().map_or(0, |reference| reference.stage);
    let MakespanForecast { makespan_seconds, lower_bound_seconds, transfers } =
        forecast(builder, solutions, mode, workers)?;
    let workers = NonZeroUsize::new(workers as usize).unwrap_or(NonZeroUsize::MIN);
    Ok(PlanSummary {
        evaluations,
        runs,
        buckets: per_stage.iter().map(|stage| stage.buckets).sum(),
        reuse_fraction: per_stage[headline].reuse_fraction,
        cost_reuse_fraction: per_stage[headline].cost_reuse_fraction,
        max_bucket_cost: per_stage[headline].max_bucket_cost,
        min_bucket_cost: per_stage[headline].min_bucket_cost,
        bucket_cost_hrv: per_stage[headline].bucket_cost_hrv,
        reference_tasks,
        bucket_overhead_seconds: study.bucket_overhead_seconds,
        accelerators: study.accelerators,
        predicted_makespan_seconds: makespan_seconds,
        lower_bound_seconds,
        transfers,
        predicted_peak_bytes: memory_bounds::peak(builder, solutions, workers),
        per_stage,
        headline,
    })
}

impl StageSummary {
    /// Sums up a stage, without its number of replicas.
    fn new(
        stage: &Stage,
        problem: &StageProblem,
        after: WorkTotal,
        solution: &Buckets,
        mode: ReuseMode,
    ) -> Result<Self, PlanningError> {
        let trees = ReuseSummary::new(&problem.problem, &problem.tree, solution, |_| true);
        let mut summary = Self {
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
            bucket_cost_hrv: trees.bucket_cost_hrv,
            transferred: 0,
            transferred_tasks: BTreeMap::new(),
            tasks_with_tree_reuse: trees.tasks,
        };
        let mut seconds = trees.cost;
        if mode.is_dataflow() {
            let dataflow = problem.dataflow()?;
            let costs = dataflow.first_costs(solution);
            let each = || costs.iter().map(|BucketCost { cost, .. }| *cost);
            summary.tasks = costs.iter().map(|bucket| bucket.tasks).sum();
            summary.max_bucket_cost = each().fold(0.0, f64::max);
            summary.min_bucket_cost = each().reduce(f64::min).unwrap_or(0.0);
            summary.bucket_cost_hrv = bucket_cost_hrv(&costs);
            let buckets = dataflow.buckets_per_task(solution);
            for task in dataflow.tasks().filter(|task| buckets[task.0 as usize] > 1) {
                let name = stage.tasks[dataflow.level(task)].name.clone();
                *summary.transferred_tasks.entry(name).or_default() += 1;
                summary.transferred += 1;
            }
            seconds = each().sum();
        }
        // The denominator is the work after stage merging, also for plans without merging.
        summary.reuse_fraction = reuse_fraction(summary.tasks as f64, after.tasks as f64);
        // Sums of the same numbers in another order differ in their last bits: no reuse is 0, not 1e-16.
        if summary.tasks != after.tasks {
            summary.cost_reuse_fraction = reuse_fraction(seconds, after.seconds);
        }
        Ok(summary)
    }
}
