//! What a burst took, cost, kept and lost.

use super::cloud::{Cloud, Worker};
use super::policy::Decided;
use super::{Burst, Policy, Shared};
use crate::cluster::{Cluster, SlotSpan};
use serde::Serialize;

/// A worker's time: of the base from beginning to end.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WorkerInterval {
    /// Which pool; none: of the base.
    pub site: Option<usize>,
    /// Its number among the spans' nodes, if it came.
    pub node: Option<usize>,
    /// When it was asked for, was there and went.
    pub seconds: [f64; 3],
    /// It was taken away.
    pub was_taken: bool,
}

/// What slots did, and who was there.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Timeline {
    /// Workers, those of the base first.
    pub stays: Vec<WorkerInterval>,
    /// What their slots did, if it was recorded.
    pub spans: Vec<SlotSpan>,
}

/// See the module. Money is in the currency of the prices.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Outcome {
    /// The policy.
    pub policy: String,
    /// How it decided.
    pub kind: &'static str,
    /// From the submission to the last result.
    pub makespan_seconds: f64,
    /// Where there was a deadline, and whether it was met.
    pub deadline_seconds: Option<f64>,
    /// See there.
    pub in_time: Option<bool>,
    /// Of workers and of bytes that left.
    pub cost: f64,
    /// Of that, bytes that left.
    pub egress_cost: f64,
    /// What may have been spent.
    pub budget: Option<f64>,
    /// Of the time of all slots that were there, the part in which they worked.
    pub utilization: f64,
    /// Of the work that could be shared, the part that was; less where buckets are cut for more slots, and where results are
    /// computed again.
    pub reuse_kept: f64,
    /// Work of speed 1 that was lost with workers that went.
    pub lost_seconds: f64,
    /// Instances that were executed more than once.
    pub repeated: u64,
    /// Workers that were taken away.
    pub interruptions: u64,
    /// Workers that were asked for.
    pub asked: usize,
    /// The most workers of pools that were there at once.
    pub most_workers: u32,
    /// How often buckets were cut anew.
    pub replans: u64,
    /// What was predicted when the study was submitted.
    pub predicted_seconds: Option<f64>,
    /// See there.
    pub predicted_cost: Option<f64>,
    /// Where the deadline could not be met: the fastest possible, and its cost.
    pub fastest_seconds: Option<f64>,
    /// See there.
    pub fastest_cost: Option<f64>,
    /// Where the budget did not allow what would meet the deadline: what that costs.
    pub needed_cost: Option<f64>,
    /// Seconds, and the workers of each pool from then on.
    pub workers: Vec<(f64, Vec<u32>)>,
    /// For pictures.
    #[serde(skip)]
    pub happened: Timeline,
}

impl Outcome {
    pub(super) fn new(
        burst: &Burst,
        policy: &Policy,
        mut cluster: Cluster,
        cloud: Cloud<'_>,
        first: Option<Decided>,
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
            lost_seconds: figures.lost_seconds,
            repeated: figures.executed.saturating_sub(shared.instances),
            interruptions: cloud.interruptions,
            asked: cloud.workers.len(),
            most_workers: cloud.counts.iter().map(|(_, counts)| counts.iter().sum()).max().unwrap_or(0),
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
        // Who never came was there for no time.
        let there_us = if worker.node.is_some() { worker.there_us.min(ended_us) } else { ended_us };
        let seconds = [worker.asked_us, there_us, ended_us].map(|us| us as f64 / 1e6);
        WorkerInterval { site: Some(worker.site), node: worker.node, seconds, was_taken: worker.was_taken }
    };
    base.chain(cloud.workers.iter().map(of)).collect()
}

/// Slots of a worker, by their speed.
fn slots(burst: &Burst, stay: &WorkerInterval) -> f64 {
    match stay.site {
        None => f64::from(burst.base.cores) * burst.base.speed,
        Some(site) => f64::from(burst.sites[site].cores) * burst.sites[site].speed,
    }
}
