//! Makespan of a plan on a number of workers: list scheduling of its buckets, and its lower bound.
//!
//! The prediction assumes that a worker runs one bucket at a time, costs are exact, and workers neither join nor leave. The
//! caller adds the cost of transfers.

use std::cmp::{Ordering, Reverse};
use std::collections::{BinaryHeap, VecDeque};
use std::num::NonZeroUsize;

use thiserror::Error;

use crate::graph::compact::{CompactGraph, InstanceId};

/// Buckets of all stages as jobs. Each job has a cost, and a set of jobs that must be done before it.
#[derive(Debug, Clone)]
pub struct JobGraph {
    seconds: Vec<f64>,
    /// Jobs that wait for job `j` are `dependents[starts[j]..starts[j + 1]]`.
    dependents: Vec<u32>,
    starts: Vec<u32>,
    waits_for: Vec<u32>,
}

/// Cause of an impossible schedule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum JobsError {
    /// An instance is missing from the table, or its job does not exist.
    #[error("find the job of stage instance {instance}")]
    NoJob {
        /// Id of the instance.
        instance: usize,
    },
    /// An instance needs an instance of a later job. Jobs in the order of their stages never do.
    #[error("order the jobs: job {job} needs job {needs}, which does not come before it")]
    NotTopological {
        /// The job that waits.
        job: u32,
        /// The job it waits for.
        needs: u32,
    },
    /// A cost is negative, infinite or not a number.
    #[error("read the cost of job {job}: negative or not finite")]
    Cost {
        /// The job.
        job: usize,
    },
}

impl JobGraph {
    /// Creates the jobs of a plan. `seconds[job]` is the duration of a bucket, and `job_of[instance]` the
    /// bucket of every instance of the graph. Buckets are numbered stage by stage, in the order of the
    /// stages. A bucket waits for every bucket that holds an input of one of its members.
    ///
    /// # Errors
    /// If an instance has no job, a cost is negative or not finite, or a job would wait for itself or a later
    /// one.
    pub fn new(seconds: Vec<f64>, job_of: &[u32], graph: &CompactGraph) -> Result<Self, JobsError> {
        let of = |instance: usize| {
            let job = job_of.get(instance).filter(|job| (**job as usize) < seconds.len());
            job.copied().ok_or(JobsError::NoJob { instance })
        };
        let mut edges = Vec::new();
        for instance in 0..graph.instances().len() {
            let job = of(instance)?;
            for parent in graph.parents(InstanceId(instance as u32)) {
                edges.push((of(parent.0 as usize)?, job));
            }
        }
        Self::with_edges(seconds, edges)
    }

    /// Creates jobs of any kind: `edges` are pairs of a job and a job that waits for it.
    ///
    /// # Errors
    /// If a cost is negative or not finite, or a job would wait for itself, a later one, or a missing one.
    pub fn with_edges(seconds: Vec<f64>, mut edges: Vec<(u32, u32)>) -> Result<Self, JobsError> {
        if let Some(job) = seconds.iter().position(|cost| !cost.is_finite() || *cost < 0.0) {
            return Err(JobsError::Cost { job });
        }
        let wrong = |(needs, job): &&(u32, u32)| needs >= job || *job as usize >= seconds.len();
        if let Some((needs, job)) = edges.iter().find(wrong) {
            return Err(JobsError::NotTopological { job: *job, needs: *needs });
        }
        // Sorted pairs are the rows of `dependents`. A duplicate would make a job wait twice for the same one.
        edges.sort_unstable();
        edges.dedup();
        let mut waits_for = vec![0; seconds.len()];
        let mut starts = vec![0; seconds.len() + 1];
        for (needs, job) in &edges {
            waits_for[*job as usize] += 1;
            starts[*needs as usize + 1] += 1;
        }
        for job in 0..seconds.len() {
            starts[job + 1] += starts[job];
        }
        let dependents: Vec<u32> = edges.into_iter().map(|(_, job)| job).collect();
        let end = starts.last().copied().unwrap_or(0) as usize;
        assert!(end == dependents.len(), "{} edges end at {end}", dependents.len());
        Ok(Self { seconds, dependents, starts, waits_for })
    }

    /// Returns the makespan of list scheduling: a free worker takes the job that became ready first, on ties
    /// the one with the smallest number. O((jobs + dependencies) log workers).
    pub fn makespan_seconds(&self, workers: NonZeroUsize) -> f64 {
        self.makespan_by(workers, |job, _, now| now + self.seconds[job])
    }

    /// Returns the makespan of jobs with state-dependent durations: `finish(job, worker, now)` returns the end of a job
    /// that starts now. Called once per job, in time order. Of the free workers the one with the smallest number starts it.
    pub fn makespan_by(&self, workers: NonZeroUsize, mut finish: impl FnMut(usize, u32, f64) -> f64) -> f64 {
        let mut waits_for = self.waits_for.clone();
        let jobs = 0..self.seconds.len() as u32;
        let mut ready: VecDeque<u32> = jobs.filter(|job| waits_for[*job as usize] == 0).collect();
        // No more workers than jobs ever run.
        let workers = workers.get().min(self.seconds.len()) as u32;
        let mut free: BinaryHeap<Reverse<u32>> = (0..workers).map(Reverse).collect();
        let mut running = BinaryHeap::new();
        let mut now = 0.0;
        loop {
            while !free.is_empty()
                && let Some(job) = ready.pop_front()
                && let Some(Reverse(worker)) = free.pop()
            {
                running.push(Reverse(Finish { at: finish(job as usize, worker, now), job, worker }));
            }
            let Some(Reverse(done)) = running.pop() else {
                debug_assert!(waits_for.iter().all(|jobs| *jobs == 0), "a job waits after the last one");
                return now;
            };
            now = done.at;
            free.push(Reverse(done.worker));
            let dependents =
                self.starts[done.job as usize] as usize..self.starts[done.job as usize + 1] as usize;
            for job in &self.dependents[dependents] {
                assert!(waits_for[*job as usize] > 0, "job {job} waits for no job, and {} is done", done.job);
                waits_for[*job as usize] -= 1;
                if waits_for[*job as usize] == 0 {
                    ready.push_back(*job);
                }
            }
        }
    }
}

/// End of a running job. Ordered by time, then by job.
#[derive(Debug, PartialEq)]
struct Finish {
    at: f64,
    job: u32,
    worker: u32,
}

impl Eq for Finish {}

impl Ord for Finish {
    fn cmp(&self, other: &Self) -> Ordering {
        self.at.total_cmp(&other.at).then(self.job.cmp(&other.job))
    }
}

impl PartialOrd for Finish {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Returns the longest chain of dependent stage instances in seconds. `seconds[instance]` is the duration of an
/// instance alone, with or without shared tasks, because its tasks run sequentially.
pub fn critical_path_seconds(graph: &CompactGraph, seconds: &[f64]) -> f64 {
    let mut done = Vec::with_capacity(seconds.len());
    for (id, own) in (0..).map(InstanceId).zip(seconds) {
        let ready = graph.parents(id).map(|parent| done[parent.0 as usize]).fold(0.0, f64::max);
        done.push(ready + own);
    }
    done.into_iter().fold(0.0, f64::max)
}

/// Returns the upward rank of each stage instance: the longest chain of dependent instances from it to the end, itself
/// included, in seconds (HEFT: Topcuoglu, Hariri and Wu 2002, equation 3, without communication).
pub fn upward_ranks(graph: &CompactGraph, seconds: &[f64]) -> Vec<f64> {
    let mut ranks = seconds.to_vec();
    // Parents come before their children, so a rank is complete when its instance is visited.
    for id in (0..seconds.len()).rev() {
        for parent in graph.parents(InstanceId(id as u32)) {
            let parent = parent.0 as usize;
            ranks[parent] = ranks[parent].max(seconds[parent] + ranks[id]);
        }
    }
    ranks
}

/// Returns the lower bound of any plan with this reuse: the longest chain, or the unique work spread evenly.
/// `unique_seconds` is the sum of [`ReuseTree::unique_cost`](crate::ReuseTree::unique_cost) over the stages.
pub fn lower_bound_seconds(critical_path_seconds: f64, unique_seconds: f64, workers: NonZeroUsize) -> f64 {
    critical_path_seconds.max(unique_seconds / workers.get() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::compact::Merging;
    use crate::graph::runs::{ExternalIndex, Runs, Source, StageIndex, WorkflowShape};

    /// One first stage, read by `evaluations` second stages: instance 0, then 1, 2, …
    fn fan(evaluations: usize) -> CompactGraph {
        let stages = vec![vec![Source::External(ExternalIndex(0))], vec![Source::Stage(StageIndex(0))]];
        let shape = WorkflowShape::new(stages, 1).unwrap();
        let keys = (0..evaluations as u32).flat_map(|evaluation| [0, evaluation]).collect();
        let runs = Runs::new(shape, evaluations, 1, keys, vec![0], false).unwrap();
        CompactGraph::build(&runs, Merging::Merged)
    }

    fn workers(count: usize) -> NonZeroUsize {
        NonZeroUsize::new(count).unwrap()
    }

    #[test]
    fn buckets_wait_for_the_stage_before_and_then_spread() {
        let graph = fan(4);
        let jobs = JobGraph::new(vec![1.0, 3.0, 2.0, 2.0], &[0, 1, 2, 3, 3], &graph).unwrap();
        assert_eq!(jobs.makespan_seconds(workers(1)), 8.0);
        assert_eq!(jobs.makespan_seconds(workers(2)), 5.0);
        assert_eq!(jobs.makespan_seconds(workers(9)), 4.0);
    }

    #[test]
    fn the_bound_is_the_longest_chain_or_the_shared_work() {
        let graph = fan(4);
        let chain = critical_path_seconds(&graph, &[1.0, 3.0, 2.0, 2.0, 2.0]);
        assert_eq!(chain, 4.0);
        assert_eq!(upward_ranks(&graph, &[1.0, 3.0, 2.0, 2.0, 2.0]), [4.0, 3.0, 2.0, 2.0, 2.0]);
        assert_eq!(lower_bound_seconds(chain, 10.0, workers(2)), 5.0);
        assert_eq!(lower_bound_seconds(chain, 10.0, workers(4)), 4.0);
    }

    #[test]
    fn jobs_come_in_the_order_of_their_stages() {
        let graph = fan(2);
        let jobs =
            |seconds: &[f64], job_of: &[u32]| JobGraph::new(seconds.to_vec(), job_of, &graph).unwrap_err();
        assert_eq!(jobs(&[1.0, 1.0], &[1, 0, 0]), JobsError::NotTopological { job: 0, needs: 1 });
        assert_eq!(jobs(&[1.0], &[0, 0, 0]), JobsError::NotTopological { job: 0, needs: 0 });
        assert_eq!(jobs(&[1.0], &[0, 1, 1]), JobsError::NoJob { instance: 1 });
        assert_eq!(jobs(&[1.0, -1.0], &[0, 1, 1]), JobsError::Cost { job: 1 });
    }
}
