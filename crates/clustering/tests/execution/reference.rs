//! Slow reference of the simulation: scans all jobs and all workers for each start.

use pleach_clustering::{Clustering, Workflow};
use std::collections::HashSet;

/// Fixed delays in seconds and a bandwidth in bytes per second.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Delays {
    pub(crate) engine: f64,
    pub(crate) queue: f64,
    pub(crate) clustering: f64,
    pub(crate) post: f64,
    pub(crate) bytes_per_second: f64,
}

/// Worker, submission, start, end and moved bytes of a job.
pub(crate) type Record = (u32, f64, f64, f64, u64);

/// Executes jobs in the order of submission. Jobs take more than 0 s.
pub(crate) fn execute(
    workflow: &Workflow,
    clustering: &Clustering,
    workers: usize,
    delays: Delays,
) -> Vec<Record> {
    let jobs = clustering.workflow(workflow).unwrap();
    let mut records: Vec<Option<Record>> = vec![None; jobs.tasks().len()];
    let mut free_at = vec![0.0_f64; workers];
    let mut files: Vec<HashSet<u32>> = vec![HashSet::new(); workers];
    while records.contains(&None) {
        let submission = |job: u32| {
            let ends: Option<Vec<f64>> = jobs
                .parents(job)
                .iter()
                .map(|parent| records[*parent as usize].map(|record| record.3))
                .collect();
            Some(ends?.into_iter().map(|end| end + delays.post).fold(0.0, f64::max) + delays.engine)
        };
        let waiting = (0..jobs.tasks().len() as u32).filter(|job| records[*job as usize].is_none());
        let ready = waiting.filter_map(|job| Some((submission(job)?, job)));
        let (submitted, job) = ready.min_by(|one, other| one.partial_cmp(other).unwrap()).unwrap();
        let started = free_at.iter().copied().fold(f64::INFINITY, f64::min).max(submitted);
        let task = &jobs.tasks()[job as usize];
        let missing = |worker: usize| -> u64 {
            let missing = task.reads.iter().filter(|file| !files[worker].contains(file));
            missing.map(|file| workflow.files()[*file as usize].bytes).sum()
        };
        let idle = (0..workers).filter(|worker| free_at[*worker] <= started);
        let (moved, worker) = idle.map(|worker| (missing(worker), worker)).min().unwrap();
        let is_clustered = clustering.jobs()[job as usize].len() > 1;
        let clustering = if is_clustered { delays.clustering } else { 0.0 };
        let transfer = moved as f64 / delays.bytes_per_second;
        let ended = started + (delays.queue + transfer + clustering + task.seconds);
        files[worker].extend(task.reads.iter().chain(&task.writes));
        free_at[worker] = ended;
        records[job as usize] = Some((worker as u32, submitted, started, ended, moved));
    }
    records.into_iter().flatten().collect()
}
