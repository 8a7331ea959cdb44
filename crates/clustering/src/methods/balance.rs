//! Balancing by run time and by impact factor (paper 002, Algorithms 1 and 2).

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::Candidates;
use super::jobs::{Jobs, longest_first};
use crate::workflow::Workflow;

/// Largest difference of equal impact factors: sums of the same parts in another order.
const SAME_IMPACT: f64 = 1e-9;

/// Horizontal runtime balancing: each task, by falling run time, to the open job of least run time, lowest number first.
///
/// No job is longer than (1 − 1 / jobs) × the longest task + total / jobs: without its first task it is no longer than any
/// other job.
pub(super) fn by_run_time(workflow: &Workflow, level: &[u32], count: usize) -> Vec<Vec<u32>> {
    let mut jobs = Jobs::new(level.len(), count);
    // Run times are not negative, so their bits are ordered as they are. The sum with 0.0 has no −0.0.
    let key = |seconds: f64, job: usize| Reverse(((seconds + 0.0).to_bits(), job));
    let mut open: BinaryHeap<_> = (0..count).map(|job| key(0.0, job)).collect();
    for task in longest_first(workflow, level) {
        let Some(Reverse((_, job))) = open.pop() else { break };
        let seconds = jobs.add(job, task, workflow.tasks()[task as usize].seconds);
        if jobs.is_open(job) {
            open.push(key(seconds, job));
        }
    }
    jobs.into_tasks().collect()
}

/// Horizontal impact factor balancing: as runtime balancing, among jobs whose first task has the impact factor of the task.
pub(super) fn by_impact(
    workflow: &Workflow,
    level: &[u32],
    count: usize,
    factors: &[f64],
    candidates: Candidates,
) -> Vec<Vec<u32>> {
    let mut jobs = Jobs::new(level.len(), count);
    for task in longest_first(workflow, level) {
        let difference = |job: usize| {
            jobs.first(job).map(|first| (factors[first as usize] - factors[task as usize]).abs())
        };
        let is_near = |job: usize| difference(job).is_some_and(|difference| difference <= SAME_IMPACT);
        let job = match candidates {
            Candidates::Spread => jobs.shortest(|job| is_near(job) || jobs.is_empty(job)),
            Candidates::Examples => {
                jobs.shortest(is_near).or_else(|| jobs.shortest(|job| jobs.is_empty(job)))
            }
        };
        let nearest = || {
            let open = (0..count).filter(|job| jobs.is_open(*job));
            let least = open.filter_map(difference).min_by(f64::total_cmp)?;
            jobs.shortest(|job| difference(job).is_some_and(|difference| difference <= least + SAME_IMPACT))
        };
        let Some(job) = job.or_else(nearest) else { break };
        jobs.add(job, task, workflow.tasks()[task as usize].seconds);
    }
    jobs.into_tasks().collect()
}
