//! DFJS and AFJS: consecutive tasks up to a run time and a data size (paper 002, Algorithms 5 and 6).

use crate::workflow::Workflow;

/// Cuts a level into jobs of consecutive tasks, in the order of the file. A job is closed before its run time would exceed
/// `max_seconds`, or the bytes of all inputs and outputs of its tasks `max_bytes`. A task beyond a limit is a job by itself.
///
/// The printed algorithms lose the last job, and emit an empty one before a first task that is beyond a limit.
pub(super) fn cut(workflow: &Workflow, level: &[u32], max_seconds: f64, max_bytes: f64) -> Vec<Vec<u32>> {
    let mut jobs: Vec<Vec<u32>> = Vec::new();
    let (mut seconds, mut bytes) = (0.0, 0_u64);
    for number in level {
        let task = &workflow.tasks()[*number as usize];
        let files = task.reads.iter().chain(&task.writes);
        let task_bytes: u64 = files.map(|file| workflow.files()[*file as usize].bytes).sum();
        (seconds, bytes) = (seconds + task.seconds, bytes.saturating_add(task_bytes));
        match jobs.last_mut() {
            Some(job) if seconds <= max_seconds && bytes as f64 <= max_bytes => job.push(*number),
            _ => {
                jobs.push(vec![*number]);
                (seconds, bytes) = (task.seconds, task_bytes);
            }
        }
    }
    jobs
}
