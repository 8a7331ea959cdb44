//! What a plan saves and what it will cost: the numbers of `pleach plan` and of `plan.json`.

use super::{Material, StageSolution, WeaveError, memory, operations};
use pleach_reuse::{
    CompactGraph, Figures, Jobs, Merging, Runs, StageIndex, bound_seconds, bucket_costs,
    critical_path_seconds, reuse_fraction,
};
use serde::Serialize;
use std::num::NonZeroUsize;

/// The figures of a plan. Instances that serve only the reference are executed, and counted nowhere here but in
/// `reference_tasks` and the predictions.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct PlanFigures {
    pub(crate) evaluations: usize,
    pub(crate) runs: usize,
    pub(crate) buckets: usize,
    pub(crate) per_stage: Vec<StageFigures>,
    /// Of the stage whose output is compared: the segmentation.
    pub(crate) reuse_fraction: f64,
    pub(crate) cost_reuse_fraction: f64,
    /// Of the same stage, in estimated seconds.
    pub(crate) max_bucket_cost: f64,
    pub(crate) min_bucket_cost: f64,
    pub(crate) reference_tasks: usize,
    pub(crate) predicted_makespan_seconds: f64,
    pub(crate) bound_seconds: f64,
    pub(crate) predicted_peak_bytes: u64,
}

/// The figures of one stage.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct StageFigures {
    pub(crate) stage: String,
    pub(crate) instances_without_reuse: usize,
    pub(crate) instances: usize,
    pub(crate) tasks_after_stage_merging: usize,
    pub(crate) tasks: usize,
    pub(crate) reuse_fraction: f64,
    pub(crate) cost_reuse_fraction: f64,
    pub(crate) buckets: usize,
    pub(crate) max_bucket_cost: f64,
    pub(crate) min_bucket_cost: f64,
}

pub(super) fn of(
    material: Material<'_>,
    runs: &Runs,
    graph: &CompactGraph,
    solutions: &[StageSolution],
    workers: u32,
) -> Result<PlanFigures, WeaveError> {
    let evaluations = material.evaluations.len() - usize::from(material.reference_run);
    let all_runs = evaluations * material.tiles.len();
    // The denominator is what stage-level merging leaves, also where nothing is merged.
    let merged = CompactGraph::build(runs, Merging::Merged);
    let mut per_stage = Vec::new();
    for ((number, stage), solution) in (0u32..).zip(&material.workflow.stages).zip(solutions) {
        let figures = Figures::new(&solution.problem, &solution.tree, &solution.buckets, |_| true);
        let counted = merged.of_stage(StageIndex(number)).filter(|&id| !merged.instance(id).reference_only);
        let (mut tasks, mut cost) = (0, 0.0);
        for id in counted {
            let pixels = material.tiles[runs.tile(merged.instance(id).first_run)].pixels;
            tasks += stage.tasks.len();
            cost +=
                operations(stage, material.registry).iter().map(|op| op.cost_seconds(pixels)).sum::<f64>();
        }
        per_stage.push(StageFigures {
            stage: stage.name.clone(),
            instances_without_reuse: all_runs,
            instances: figures.instances,
            tasks_after_stage_merging: tasks,
            tasks: figures.tasks,
            reuse_fraction: reuse_fraction(figures.tasks as f64, tasks as f64),
            // Sums of the same numbers in another order differ in the last bits: no reuse is 0, not 1e-16.
            cost_reuse_fraction: if figures.tasks == tasks {
                0.0
            } else {
                reuse_fraction(figures.cost, cost)
            },
            buckets: figures.buckets,
            max_bucket_cost: figures.max_bucket_cost,
            min_bucket_cost: figures.min_bucket_cost,
        });
    }
    let headline = &per_stage[material.workflow.reference.as_ref().map_or(0, |reference| reference.stage)];
    let seconds = Seconds::of(material, runs, graph, solutions);
    let workers = NonZeroUsize::new(workers as usize).unwrap_or(NonZeroUsize::MIN);
    let jobs = Jobs::new(seconds.buckets, &seconds.bucket_of, graph).map_err(WeaveError::new)?;
    let critical = critical_path_seconds(graph, &seconds.instances);
    Ok(PlanFigures {
        evaluations,
        runs: all_runs,
        buckets: per_stage.iter().map(|stage| stage.buckets).sum(),
        reuse_fraction: headline.reuse_fraction,
        cost_reuse_fraction: headline.cost_reuse_fraction,
        max_bucket_cost: headline.max_bucket_cost,
        min_bucket_cost: headline.min_bucket_cost,
        reference_tasks: solutions.iter().map(|s| s.reference_only.len() * s.problem.levels()).sum(),
        predicted_makespan_seconds: jobs.makespan_seconds(workers),
        bound_seconds: bound_seconds(critical, seconds.unique, workers),
        predicted_peak_bytes: memory::peak(material, runs, graph, solutions, workers),
        per_stage,
    })
}

/// Estimated seconds of everything: stage by stage, the reference's buckets first, as in the execution plan.
struct Seconds {
    buckets: Vec<f64>,
    /// By graph instance.
    bucket_of: Vec<u32>,
    /// By graph instance, nothing shared.
    instances: Vec<f64>,
    /// All tasks once.
    unique: f64,
}

impl Seconds {
    fn of(material: Material<'_>, runs: &Runs, graph: &CompactGraph, solutions: &[StageSolution]) -> Self {
        let count = graph.instances().len();
        let (mut buckets, mut unique) = (Vec::new(), 0.0);
        let mut bucket_of = vec![0; count];
        let mut instances = vec![0.0; count];
        for (stage, solution) in material.workflow.stages.iter().zip(solutions) {
            let operations = operations(stage, material.registry);
            for &id in solution.reference_only.iter().chain(&solution.members) {
                let pixels = material.tiles[runs.tile(graph.instance(id).first_run)].pixels;
                instances[id.0 as usize] = operations.iter().map(|op| op.cost_seconds(pixels)).sum();
            }
            let first = buckets.len() as u32;
            for (bucket, members) in (first..).zip(solution.all_buckets()) {
                members.iter().for_each(|id| bucket_of[id.0 as usize] = bucket);
            }
            buckets.extend(solution.reference_only.iter().map(|id| instances[id.0 as usize]));
            unique += buckets[first as usize..].iter().sum::<f64>() + solution.tree.unique_cost();
            let costs = bucket_costs(&solution.tree, &solution.buckets, |_| true);
            buckets.extend(costs.into_iter().map(|bucket| bucket.cost));
        }
        Self { buckets, bucket_of, instances, unique }
    }
}
