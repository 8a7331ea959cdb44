//! Outcome of a burst: time, cost, reuse and losses.

use super::cloud::{Cloud, Worker};
use super::policy::PolicyDecision;
use super::{Burst, CloudPool, Policy, Shared};
use crate::cluster::{Cluster, SlotSpan};
use crate::workload::MakespanBound;
use serde::Serialize;

/// Lifetime of a worker. A base worker lives from beginning to end.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WorkerInterval {
    /// Index of its pool. `None` for the base cluster.
    pub site: Option<usize>,
    /// Node in the spans, if the worker arrived.
    pub node: Option<usize>,
    /// Times of its request, its arrival and its end.
    pub seconds: [f64; 3],
    /// Whether the cloud interrupted the worker.
    pub was_taken: bool,
}

/// Lifetimes of the workers and the work of their slots.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Timeline {
    /// Workers, those of the base cluster first.
    pub stays: Vec<WorkerInterval>,
    /// Work of their slots, if recorded.
    pub spans: Vec<SlotSpan>,
}

/// Outcome of a burst. Money is in the currency of the prices.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Outcome {
    /// The policy.
    pub policy: String,
    /// The kind of the policy.
    pub kind: &'static str,
    /// Time from the submission to the last result.
    pub makespan_seconds: f64,
    /// The deadline, if any.
    pub deadline_seconds: Option<f64>,
    /// Whether the deadline was met. `None` without one.
    pub in_time: Option<bool>,
    /// Cost of workers and egress.
    pub cost: f64,
    /// Part of the cost for egress.
    pub egress_cost: f64,
    /// Maximum cost, if any.
    pub budget: Option<f64>,
    /// Busy share of the time of all present slots.
    pub utilization: f64,
    /// Part of the possible reuse that was achieved. Buckets for more slots, and recomputed results, reduce it.
    pub reuse_kept: f64,
    /// Part of the seconds of all tasks after merging equal stage instances that reuse avoided.
    pub work_saved: Option<f64>,
    /// Lower bound of the makespan, if workers share results: the longest path of a stage's tasks at the highest speed, or the
    /// distinct tasks on the largest number of slots that were present at once.
    pub bound_seconds: Option<f64>,
    /// Seconds of work at speed 1 that were lost with workers.
    pub lost_seconds: f64,
    /// Instances that were executed more than once.
    pub repeated: u64,
    /// Tasks that workers executed.
    pub executed_tasks: u64,
    /// Task results that a worker received from another.
    pub transfers: u64,
    /// Tasks executed again, because a transfer takes longer.
    pub recomputed_tasks: u64,
    /// Workers interrupted by the cloud.
    pub interruptions: u64,
    /// Requested workers.
    #[serde(rename = "asked")]
    pub requested: usize,
    /// Maximum number of pool workers present at once.
    #[serde(rename = "most_workers")]
    pub max_workers: u32,
    /// Number of replans.
    pub replans: u64,
    /// Makespan predicted at the submission.
    pub predicted_seconds: Option<f64>,
    /// Cost predicted at the submission.
    pub predicted_cost: Option<f64>,
    /// If the deadline could not be met: the shortest possible makespan.
    pub fastest_seconds: Option<f64>,
    /// Cost of the shortest possible makespan.
    pub fastest_cost: Option<f64>,
    /// If the budget ruled out meeting the deadline: the cost without it.
    pub needed_cost: Option<f64>,
    /// Seconds, and the workers of each pool from that time on.
    pub workers: Vec<(f64, Vec<u32>)>,
    /// Timeline for figures.
    #[serde(skip)]
    pub happened: Timeline,
}

impl Outcome {
    pub(super) fn new(
        burst: &Burst,
        policy: &Policy,
        mut cluster: Cluster,
        cloud: Cloud<'_>,
        first: Option<PolicyDecision>,
        shared: Shared,
    ) -> Self {
        let figures = cluster.figures();
        let (end_us, end) = (cluster.now_us(), cluster.now_us() as f64 / 1e6);
        let egress_cost = cloud.egress_cost(&cluster);
        let stays = stays(burst, &cloud, end_us);
        let slot_seconds: f64 =
            stays.iter().map(|stay| slots(burst, stay) * (stay.seconds[2] - stay.seconds[1])).sum();
        let kept = shared
            .alone_and_unique_seconds
            .filter(|(alone, unique)| alone > unique)
            .map_or(1.0, |(alone, unique)| {
                ((alone - figures.foreseen_seconds) / (alone - unique)).clamp(0.0, 1.0)
            });
        let saved = shared.alone_and_unique_seconds.filter(|(alone, _)| *alone > 0.0);
        let saved = saved.map(|(alone, _)| 1.0 - figures.foreseen_seconds / alone);
        let seconds = |finite: f64| Some(finite).filter(|seconds| seconds.is_finite());
        let forecast = first.as_ref().and_then(|first| first.forecast);
        let fastest = first.as_ref().and_then(|first| first.fastest.as_ref()).map(|fastest| fastest.forecast);
        let beyond = first.as_ref().and_then(|first| first.without_budget);
        let workers = cloud.counts.iter().map(|(at_us, counts)| (*at_us as f64 / 1e6, counts.clone()));
        Self {
            policy: policy.name.clone(),
            kind: policy.rule.name(),
            makespan_seconds: end,
            deadline_seconds: policy.deadline_seconds,
            in_time: policy.deadline_seconds.map(|deadline| end <= deadline),
            cost: cloud.cost(end_us) + egress_cost,
            egress_cost,
            budget: policy.budget,
            utilization: if slot_seconds > 0.0 { figures.work_seconds / slot_seconds } else { 0.0 },
            reuse_kept: kept,
            work_saved: saved,
            bound_seconds: shared.bound.map(|bound| bound_seconds(burst, &cloud, bound)),
            lost_seconds: figures.lost_seconds,
            repeated: figures.executed.saturating_sub(shared.instances),
            executed_tasks: figures.tasks,
            transfers: figures.transfers,
            recomputed_tasks: figures.recomputed_tasks,
            interruptions: cloud.interruptions,
            requested: cloud.workers.len(),
            max_workers: cloud.counts.iter().map(|(_, counts)| counts.iter().sum()).max().unwrap_or(0),
            replans: figures.replans,
            predicted_seconds: forecast.and_then(|forecast| seconds(forecast.seconds)),
            predicted_cost: forecast.and_then(|forecast| seconds(forecast.cost)),
            fastest_seconds: fastest.and_then(|fastest| seconds(fastest.seconds)),
            fastest_cost: fastest.and_then(|fastest| seconds(fastest.cost)),
            needed_cost: beyond.and_then(|beyond| seconds(beyond.cost)),
            workers: workers.collect(),
            happened: Timeline { stays, spans: cluster.spans().to_vec() },
        }
    }
}

fn stays(burst: &Burst, cloud: &Cloud<'_>, end_us: u64) -> Vec<WorkerInterval> {
    let end = end_us as f64 / 1e6;
    let base = (0..burst.base.nodes as usize).map(|node| WorkerInterval {
        site: None,
        node: Some(node),
        seconds: [0.0, 0.0, end],
        was_taken: false,
    });
    let of = |worker: &Worker| {
        let ended_us = worker.ended_us.unwrap_or(end_us);
        // A worker that never arrived has an empty lifetime.
        let there_us = if worker.node.is_some() { worker.ready_us.min(ended_us) } else { ended_us };
        let seconds = [worker.requested_us, there_us, ended_us].map(|us| us as f64 / 1e6);
        WorkerInterval { site: Some(worker.site), node: worker.node, seconds, was_taken: worker.was_taken }
    };
    base.chain(cloud.workers.iter().map(of)).collect()
}

/// Returns the lower bound of the makespan of the present workers.
fn bound_seconds(burst: &Burst, cloud: &Cloud<'_>, bound: MakespanBound) -> f64 {
    let base = f64::from(burst.base.nodes * burst.base.cores) * burst.base.busy_speed();
    let present = |counts: &[u32]| -> f64 {
        let of = |(count, site): (&u32, &CloudPool)| f64::from(count * site.cores) * site.speed;
        counts.iter().zip(&burst.sites).map(of).sum()
    };
    let slots = base + cloud.counts.iter().map(|(_, counts)| present(counts)).fold(0.0, f64::max);
    let used = |site: &usize| cloud.counts.iter().any(|(_, counts)| counts[*site] > 0);
    let sites = (0..burst.sites.len()).filter(used).map(|site| burst.sites[site].speed);
    let fastest = sites.fold(burst.base.speed, f64::max);
    (bound.critical_seconds / fastest).max(bound.unique_seconds / slots)
}

/// Returns the slots of a worker, weighted by speed.
fn slots(burst: &Burst, stay: &WorkerInterval) -> f64 {
    match stay.site {
        None => f64::from(burst.base.cores) * burst.base.busy_speed(),
        Some(site) => f64::from(burst.sites[site].cores) * burst.sites[site].speed,
    }
}
