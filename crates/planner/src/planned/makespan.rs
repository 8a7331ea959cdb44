//! Predicts a plan's makespan on a number of workers, and the lower bound of all plans with the same reuse scope.
//!
//! Predictions follow from the cost model, and from the fixed overhead of each bucket. Memory does not limit them. Beyond
//! trees, outputs are transferred between workers or computed again, by the rule of running workers.

use crate::builder::StageProblem;
use crate::planned::operation_work::HybridSpeed;
use crate::{PlanBuilder, PlanningError, ReuseMode, operations};
use pleach_reuse::{
    Buckets, Dataflow, JobGraph, Member, SharingSchedule, TransferCost, TransferForecast, bucket_costs,
    critical_path_seconds, lower_bound_seconds, upward_ranks,
};
use pleach_workflow::Stage;
use std::num::NonZeroUsize;

/// Predicted makespan of a plan.
#[derive(Clone, Copy, Debug)]
pub struct MakespanForecast {
    /// Makespan of list scheduling of the buckets, each with an overhead for each of its inputs.
    pub makespan_seconds: f64,
    /// Maximum of the longest chain of tasks and the evenly spread work of all distinct tasks.
    pub lower_bound_seconds: f64,
    /// Outputs that workers receive from each other, or compute again.
    pub transfers: TransferForecast,
}

/// Predicts the makespan of `solutions`, the buckets of each stage.
///
/// Accelerators beside the slots make all tasks faster by the factor of both kinds of slots together.
///
/// # Errors
/// [`PlanningError`] if the study has more tasks than ids.
pub(crate) fn forecast(
    builder: &PlanBuilder<'_>,
    solutions: &[Buckets],
    mode: ReuseMode,
    slots: u32,
) -> Result<MakespanForecast, PlanningError> {
    let workers = NonZeroUsize::new(slots as usize).unwrap_or(NonZeroUsize::MIN);
    let speed = HybridSpeed::new(builder, mode, slots)?;
    // In seconds of a core, which accelerators shorten afterwards, all that they do not shorten takes longer.
    let overhead = builder.study.bucket_overhead_seconds * speed.all;
    let mut work = JobWork::compute(builder, solutions, mode)?;
    let overheads = overheads(builder, solutions, overhead, work.seconds.len());
    work.seconds.iter_mut().zip(&overheads).for_each(|(seconds, overhead)| *seconds += overhead);
    let jobs = JobGraph::new(work.seconds, &work.job_of, &builder.graph).map_err(PlanningError::from)?;
    let mut transfers = TransferForecast::default();
    let makespan_seconds = if mode.is_dataflow() {
        let mut schedules = schedules(builder, speed.all)?;
        let reference = builder.stages.iter().map(|stage| stage.reference_members().collect());
        let reference: Vec<Vec<Member>> = reference.collect();
        let makespan_seconds = jobs.makespan_by(workers, |job, worker, now| {
            let (stage, place) = work.places[job];
            let members = match reference[stage].get(place) {
                Some(member) => std::slice::from_ref(member),
                None => solutions[stage].get(place - reference[stage].len()),
            };
            // The slots of one process share a memory.
            let worker = builder.study.link.map_or(0, |_| worker);
            schedules[stage].begin(worker, members, now + overheads[job])
        });
        schedules.iter().for_each(|schedule| transfers.add(&schedule.forecast()));
        transfers.seconds /= speed.all;
        transfers.recompute_seconds /= speed.all;
        makespan_seconds
    } else {
        jobs.makespan_seconds(workers)
    };
    // Each instance of a chain is in a bucket of its own stage, and waits for the overhead of it.
    let mut chain = instance_seconds(builder, mode, &speed.fastest);
    chain.iter_mut().for_each(|seconds| *seconds += builder.study.bucket_overhead_seconds);
    let critical = critical_path_seconds(&builder.graph, &chain);
    Ok(MakespanForecast {
        makespan_seconds: makespan_seconds / speed.all,
        lower_bound_seconds: lower_bound_seconds(critical, work.unique / speed.all, workers),
        transfers,
    })
}

/// Returns the overheads of each of `jobs` jobs: its instances of different inputs are executed as buckets of their own.
fn overheads(builder: &PlanBuilder<'_>, solutions: &[Buckets], overhead: f64, jobs: usize) -> Vec<f64> {
    if overhead == 0.0 {
        return vec![0.0; jobs];
    }
    let stages = builder.stages.iter().zip(solutions);
    let executed =
        stages.flat_map(|(stage, solution)| stage.executed_buckets(solution, &builder.runs, &builder.graph));
    executed.map(|buckets| buckets as f64 * overhead).collect()
}

/// Creates a schedule for each stage, on a link that is `slower` times slower. The outputs of the largest tile count for all.
fn schedules<'b>(
    builder: &'b PlanBuilder<'_>,
    slower: f64,
) -> Result<Vec<SharingSchedule<&'b Dataflow>>, PlanningError> {
    let link = builder.study.link.unwrap_or(TransferCost::FREE);
    let link = TransferCost {
        bytes_per_second: link.bytes_per_second / slower,
        latency_seconds: link.latency_seconds * slower,
    };
    let schedule = |((stage, problem), pixels): ((&Stage, &'b StageProblem), &Vec<u64>)| {
        let pixels = pixels.iter().copied().max().unwrap_or(0);
        let output_bytes = operations(stage, builder.study.registry)
            .into_iter()
            .map(|operation| operation.outputs().iter().map(|port| port.element.bytes(pixels)).sum());
        Ok(SharingSchedule::new(problem.dataflow()?, output_bytes.collect(), link))
    };
    let stages = builder.study.workflow.stages.iter().zip(&builder.stages);
    stages.zip(&builder.pixels).map(schedule).collect()
}

/// Buckets as jobs, stage by stage, the reference's buckets first, as in the execution plan.
struct JobWork {
    /// Seconds of each job alone.
    seconds: Vec<f64>,
    /// Stage of each job, and its bucket within the stage.
    places: Vec<(usize, usize)>,
    /// Job of each graph instance.
    job_of: Vec<u32>,
    /// Seconds of all tasks that the reuse scope does not share.
    unique: f64,
}

impl JobWork {
    fn compute(
        builder: &PlanBuilder<'_>,
        solutions: &[Buckets],
        mode: ReuseMode,
    ) -> Result<Self, PlanningError> {
        let (mut seconds, mut places, mut unique) = (Vec::new(), Vec::new(), 0.0);
        let mut job_of = vec![0; builder.graph.instances().len()];
        // Instances of the reference are in buckets of their own, which share nothing.
        let alone = instance_seconds(builder, ReuseMode::None, &[]);
        for (number, (stage, solution)) in builder.stages.iter().zip(solutions).enumerate() {
            let first = seconds.len();
            for (place, members) in stage.all_buckets(solution).enumerate() {
                members.iter().for_each(|id| job_of[id.0 as usize] = (first + place) as u32);
                places.push((number, place));
            }
            seconds.extend(stage.reference_only.iter().map(|id| alone[id.0 as usize]));
            let reference: f64 = seconds[first..].iter().sum();
            let costs = bucket_costs(&stage.tree, solution, |_| true);
            seconds.extend(costs.into_iter().map(|bucket| bucket.cost));
            unique += if mode.is_dataflow() {
                let dataflow = stage.dataflow()?;
                dataflow.tasks().map(|task| dataflow.cost(task)).sum::<f64>()
            } else if mode.sharing().is_some() {
                reference + stage.tree.unique_cost()
            } else {
                seconds[first..].iter().sum()
            };
        }
        Ok(Self { seconds, places, job_of, unique })
    }
}

/// Returns the predicted seconds of the longest path from each graph instance to the end of the study.
pub(crate) fn ranks(builder: &PlanBuilder<'_>, mode: ReuseMode) -> Vec<f32> {
    let ranks = upward_ranks(&builder.graph, &instance_seconds(builder, mode, &[]));
    ranks.into_iter().map(|seconds| seconds as f32).collect()
}

/// Returns the minimum seconds of each graph instance alone: the sum of its tasks or, beyond trees, the longest chain of
/// dependent tasks. `faster` has the factor of each task of each stage on its fastest kind of slot. Empty for cores.
fn instance_seconds(builder: &PlanBuilder<'_>, mode: ReuseMode, faster: &[Vec<f64>]) -> Vec<f64> {
    let mut seconds = vec![0.0; builder.graph.instances().len()];
    for (number, stage) in builder.stages.iter().enumerate() {
        for (id, mut tasks) in stage.seconds() {
            let factors = faster.get(number).into_iter().flatten();
            tasks.iter_mut().zip(factors).for_each(|(seconds, factor)| *seconds /= factor);
            let chain = mode.is_dataflow().then(|| stage.tasks.longest_chain(&tasks));
            seconds[id.0 as usize] = chain.unwrap_or_else(|| tasks.iter().sum());
        }
    }
    seconds
}
