//! Imbalance of the levels of a workflow: run times, impact factors, distances and chains (paper 002, section 4.1).

mod deviation;
mod distance;
mod impact;
mod reading;

use std::collections::BTreeMap;

use crate::chains;
use crate::clustering::Clustering;
use crate::reduction::reduced;
use crate::workflow::{Workflow, WorkflowError};
use deviation::Moments;

pub(crate) use distance::{Classes, Rows};
pub(crate) use impact::impact_factors;
pub use reading::Reading;

/// Milliseconds below which WorkflowSim takes no run time.
const MIN_MILLISECONDS: f64 = 100.0;

/// Imbalance metrics of one level.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LevelMetrics {
    /// The level, from 1 as in Table 5.
    pub level: usize,
    /// Number of tasks.
    pub tasks: usize,
    /// The metrics. All are 0 for a level of one task.
    pub variance: Imbalance,
    /// The metrics on a scale of 0–1 (paper 002, section 6).
    ///
    /// Run times, chains and impact factors: the deviation as a part of its maximum, where one of the `n` tasks has the whole
    /// sum, so population deviation / (mean × √(n − 1)). Distances: the population deviation over pairs as a part of half the
    /// range that distances of the level can have, the maximum for values of a range (Popoviciu 1935).
    pub normalized: Imbalance,
}

/// Imbalance metrics.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Imbalance {
    /// Horizontal runtime variance: deviation of run times / their mean, 0 if the mean is 0.
    pub hrv: f64,
    /// Horizontal impact factor variance: deviation of impact factors.
    pub hifv: f64,
    /// Horizontal distance variance: deviation of the distances between tasks, in edges.
    pub hdv: f64,
    /// Pipeline runtime variance: as `hrv`, of the run times of the chains that start at each task.
    pub prv: f64,
}

/// Imbalance metrics of a workflow before and after clustering, by level.
#[derive(Debug, Clone, PartialEq)]
pub struct ImbalanceChange {
    /// Levels of the tasks.
    pub before: Vec<LevelMetrics>,
    /// Levels of the jobs. Vertical clustering leaves fewer levels.
    pub after: Vec<LevelMetrics>,
}

/// Returns the imbalance metrics of each level. Time grows with tasks × edges / 64 at most, in graphs whose edges lead to the next
/// level. Memory never grows with pairs.
#[must_use]
pub fn metrics(workflow: &Workflow, reading: Reading) -> Vec<LevelMetrics> {
    let graph = reduced(workflow);
    let factors = impact_factors(&graph, reading);
    let run_times: Vec<f64> = graph.tasks().iter().map(|task| run_time(task.seconds, reading)).collect();
    let chains = chain_times(&graph, &run_times);
    let pairs = distance::pairs_by_distance(&graph, reading);
    let levels = graph.levels().iter().zip(&pairs).enumerate();
    levels
        .map(|(index, (level, pairs))| {
            let of = |values: &[f64]| {
                Moments::new(&level.iter().map(|task| values[*task as usize]).collect::<Vec<_>>())
            };
            let (run_times_of_level, chains, factors) = (of(&run_times), of(&chains), of(&factors));
            let (hdv, normalized_hdv) = distances(&graph, index, pairs, reading);
            let hrv = match reading {
                Reading::Wfs => whole_variation(level.iter().map(|task| run_times[*task as usize] as u128)),
                Reading::Definition | Reading::Table => variation(run_times_of_level, reading),
            };
            LevelMetrics {
                level: index + 1,
                tasks: level.len(),
                variance: Imbalance {
                    hrv,
                    hifv: deviation(factors, reading),
                    hdv,
                    prv: variation(chains, reading),
                },
                normalized: Imbalance {
                    hrv: run_times_of_level.normalized(),
                    hifv: factors.normalized(),
                    hdv: normalized_hdv,
                    prv: chains.normalized(),
                },
            }
        })
        .collect()
}

/// Returns the imbalance metrics of the tasks of a workflow and of the jobs of its clustering.
///
/// # Errors
/// If jobs depend on each other in a cycle.
pub fn imbalance_after(
    workflow: &Workflow,
    clustering: &Clustering,
    reading: Reading,
) -> Result<ImbalanceChange, WorkflowError> {
    let jobs = clustering.workflow(workflow)?;
    Ok(ImbalanceChange { before: metrics(workflow, reading), after: metrics(&jobs, reading) })
}

/// Returns a run time in the unit of a reading: seconds, or whole milliseconds.
fn run_time(seconds: f64, reading: Reading) -> f64 {
    match reading {
        Reading::Definition | Reading::Table => seconds,
        Reading::Wfs => (1000.0 * seconds).max(MIN_MILLISECONDS).floor(),
    }
}

/// Returns the run time of the chain that starts at each task.
fn chain_times(graph: &Workflow, run_times: &[f64]) -> Vec<f64> {
    let mut sums = run_times.to_vec();
    for task in graph.levels().iter().rev().flatten() {
        if let Some(next) = chains::next(graph, *task) {
            sums[*task as usize] += sums[next as usize];
        }
    }
    sums
}

fn deviation(moments: Moments, reading: Reading) -> f64 {
    match reading {
        Reading::Definition => moments.sample(),
        Reading::Table | Reading::Wfs => moments.population(),
    }
}

fn variation(moments: Moments, reading: Reading) -> f64 {
    if moments.mean > 0.0 { deviation(moments, reading) / moments.mean } else { 0.0 }
}

/// Returns deviation / mean, where mean and variance are rounded down.
fn whole_variation(values: impl ExactSizeIterator<Item = u128> + Clone) -> f64 {
    let count = values.len() as u128;
    let mean = values.clone().sum::<u128>() / count;
    let variance = values.map(|value| value.abs_diff(mean).pow(2)).sum::<u128>() / count;
    if mean > 0 { (variance as f64).sqrt() / mean as f64 } else { 0.0 }
}

/// Returns the distance variance of a level, and its normalized value.
fn distances(graph: &Workflow, index: usize, pairs: &BTreeMap<u32, u64>, reading: Reading) -> (f64, f64) {
    let tasks = graph.levels()[index].len();
    if tasks < 2 {
        return (0.0, 0.0);
    }
    let values = pairs.iter().map(|(distance, count)| (f64::from(*distance), *count));
    let moments = Moments::from_counts(values.clone());
    let (hdv, least) = match reading {
        Reading::Definition => (moments.sample(), 2),
        Reading::Table | Reading::Wfs => {
            // Sum and squares run over pairs, both divisors are tasks.
            let sum: f64 = values.clone().map(|(distance, count)| distance * count as f64).sum();
            let mean = sum / tasks as f64;
            let squares: f64 = values.map(|(distance, count)| (distance - mean).powi(2) * count as f64).sum();
            ((squares / tasks as f64).sqrt(), 0)
        }
    };
    let range = distance::max_distance(graph, index) - least;
    let normalized = if range > 0 { moments.population() / (f64::from(range) / 2.0) } else { 0.0 };
    (hdv, normalized.min(1.0))
}
