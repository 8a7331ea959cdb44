//! DFJS and AFJS: consecutive tasks up to a run time and a data size (paper 002, Algorithms 5 and 6).

use crate::workflow::{Task, Workflow};

/// Cuts a level into jobs of consecutive tasks, in the order of the file. A job is closed before its run time would exceed
/// `max_seconds`, or the bytes of all inputs and outputs of its tasks `max_bytes`. A task beyond a limit is a job by itself.
///
/// The printed algorithms lose the last job, and emit an empty one before a first task that is beyond a limit.
pub(super) fn cut(workflow: &Workflow, level: &[u32], max_seconds: f64, max_bytes: f64) -> Vec<Vec<u32>> {
    let amounts = level.iter().map(|number| {
        let task = &workflow.tasks()[*number as usize];
        (task.seconds, task_bytes(workflow, task))
    });
    let mut jobs: Vec<Vec<u32>> = Vec::new();
    for (number, is_first) in level.iter().zip(starts_of_jobs(amounts, max_seconds, max_bytes)) {
        match jobs.last_mut() {
            Some(job) if !is_first => job.push(*number),
            _ => jobs.push(vec![*number]),
        }
    }
    jobs
}

/// Returns for each task of a level whether it starts a job. Tasks have a run time in seconds and bytes of inputs and outputs.
pub(crate) fn starts_of_jobs(
    tasks: impl Iterator<Item = (f64, u64)>,
    max_seconds: f64,
    max_bytes: f64,
) -> impl Iterator<Item = bool> {
    let mut job: Option<(f64, u64)> = None;
    tasks.map(move |task| {
        let joined = job.map(|job| (job.0 + task.0, job.1.saturating_add(task.1)));
        let joined = joined.filter(|(seconds, bytes)| *seconds <= max_seconds && *bytes as f64 <= max_bytes);
        job = joined.or(Some(task));
        joined.is_none()
    })
}

/// Returns the bytes of all inputs and outputs of a task.
pub(crate) fn task_bytes(workflow: &Workflow, task: &Task) -> u64 {
    let files = task.reads.iter().chain(&task.writes);
    files.map(|file| workflow.files()[*file as usize].bytes).fold(0, u64::saturating_add)
}
