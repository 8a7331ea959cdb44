//! How long a plan takes on so many workers, and the bound that no plan of its level of reuse can beat.
//!
//! Predictions from what operations declare to cost; nothing is dispatched here, and memory is no limit.

use super::{PlanBuilder, PlanningError, ReuseMode};
use pleach_reuse::{
    Buckets, JobGraph, Member, SharingSchedule, bucket_costs, critical_path_seconds, lower_bound_seconds,
};
use std::num::NonZeroUsize;

/// What is predicted of a plan.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Forecast {
    /// List scheduling of the buckets.
    pub(crate) makespan_seconds: f64,
    /// The longest chain of tasks, or the work without any repetition spread evenly.
    pub(crate) lower_bound_seconds: f64,
}

/// The forecast for a solution of `loom`.
///
/// # Errors
/// [`PlanningError`] when the study has more tasks than ids.
pub(crate) fn forecast(
    loom: &PlanBuilder<'_>,
    solutions: &[Buckets],
    level: ReuseMode,
    workers: u32,
) -> Result<Forecast, PlanningError> {
    let workers = NonZeroUsize::new(workers as usize).unwrap_or(NonZeroUsize::MIN);
    let work = JobWork::of(loom, solutions, level)?;
    let jobs = JobGraph::new(work.seconds, &work.job_of, &loom.graph).map_err(PlanningError::new)?;
    let makespan_seconds = if level.is_dataflow() {
        let relays = loom.stages.iter().map(|stage| stage.dataflow().map(SharingSchedule::new));
        let mut relays: Vec<SharingSchedule<'_>> = relays.collect::<Result<_, _>>()?;
        let reference = loom.stages.iter().map(|stage| stage.reference_members().collect());
        let reference: Vec<Vec<Member>> = reference.collect();
        jobs.makespan_by(workers, |job, now| {
            let (stage, place) = work.places[job];
            let members = match reference[stage].get(place) {
                Some(member) => std::slice::from_ref(member),
                None => solutions[stage].get(place - reference[stage].len()),
            };
            relays[stage].begin(members, now)
        })
    } else {
        jobs.makespan_seconds(workers)
    };
    let critical = critical_path_seconds(&loom.graph, &instance_seconds(loom, level));
    Ok(Forecast {
        makespan_seconds,
        lower_bound_seconds: lower_bound_seconds(critical, work.unique, workers),
    })
}

/// Buckets as jobs: stage by stage, the reference's buckets first, as in the execution plan.
struct JobWork {
    /// What each takes by itself.
    seconds: Vec<f64>,
    /// By job: its stage, and which of the stage's buckets it is.
    places: Vec<(usize, usize)>,
    /// By graph instance.
    job_of: Vec<u32>,
    /// All tasks once, as far as the level shares them.
    unique: f64,
}

impl JobWork {
    fn of(loom: &PlanBuilder<'_>, solutions: &[Buckets], level: ReuseMode) -> Result<Self, PlanningError> {
        let (mut seconds, mut places, mut unique) = (Vec::new(), Vec::new(), 0.0);
        let mut job_of = vec![0; loom.graph.instances().len()];
        let alone = instance_seconds(loom, ReuseMode::None);
        for (number, (stage, solution)) in loom.stages.iter().zip(solutions).enumerate() {
            let first = seconds.len();
            for (place, members) in stage.all_buckets(solution).enumerate() {
                members.iter().for_each(|id| job_of[id.0 as usize] = (first + place) as u32);
                places.push((number, place));
            }
            seconds.extend(stage.reference_only.iter().map(|id| alone[id.0 as usize]));
            let reference: f64 = seconds[first..].iter().sum();
            let costs = bucket_costs(&stage.tree, solution, |_| true);
            seconds.extend(costs.into_iter().map(|bucket| bucket.cost));
            unique += if level.is_dataflow() {
                let dataflow = stage.dataflow()?;
                dataflow.tasks().map(|task| dataflow.cost(task)).sum::<f64>()
            } else if level.sharing().is_some() {
                reference + stage.tree.unique_cost()
            } else {
                seconds[first..].iter().sum()
            };
        }
        Ok(Self { seconds, places, job_of, unique })
    }
}

/// What each instance takes at least, by itself: its tasks one after the other or, as a graph, the longest chain of
/// tasks that need each other. By graph instance.
fn instance_seconds(loom: &PlanBuilder<'_>, level: ReuseMode) -> Vec<f64> {
    let mut seconds = vec![0.0; loom.graph.instances().len()];
    for stage in &loom.stages {
        for (id, tasks) in stage.seconds() {
            let chain = level.is_dataflow().then(|| stage.tasks.longest_chain(&tasks));
            seconds[id.0 as usize] = chain.unwrap_or_else(|| tasks.iter().sum());
        }
    }
    seconds
}
