//! Jobs as the simulation needs them: total run times, files and dependencies.

use crate::workflow::Workflow;

/// Jobs of some tasks of a workflow. Dependencies on tasks outside these jobs are met from the start.
pub(crate) struct Jobs {
    pub(crate) list: Vec<Job>,
    /// Jobs that wait for a job, by job. A dependency is listed once.
    pub(crate) children: Vec<Vec<u32>>,
    /// Number of jobs that a job waits for, by job.
    pub(crate) parents: Vec<u32>,
}

/// A job.
pub(crate) struct Job {
    /// Its first task, which names the draws of its delays: a job of the same tasks has the same delays in each clustering.
    pub(crate) first: u32,
    /// Whether it has two tasks or more.
    pub(crate) is_clustered: bool,
    /// Sum of the run times of its tasks in seconds.
    pub(crate) seconds: f64,
    /// Files that it reads and does not write, in ascending order.
    pub(crate) reads: Vec<u32>,
    /// Files that it writes, in ascending order.
    pub(crate) writes: Vec<u32>,
}

/// Job of a task outside all jobs.
const OUTSIDE: u32 = u32::MAX;

impl Jobs {
    /// Joins tasks to jobs. `seconds` are the run times of all tasks of the workflow.
    pub(crate) fn new(workflow: &Workflow, seconds: &[f64], jobs: &[Vec<u32>]) -> Self {
        let mut job_of = vec![OUTSIDE; workflow.tasks().len()];
        for (number, tasks) in (0..).zip(jobs) {
            for task in tasks {
                job_of[*task as usize] = number;
            }
        }
        let mut parents = vec![0; jobs.len()];
        let mut children = vec![Vec::new(); jobs.len()];
        for ((number, tasks), list) in (0..).zip(jobs).zip(&mut children) {
            let all = tasks.iter().flat_map(|task| workflow.children(*task));
            let all = all.map(|task| job_of[*task as usize]);
            *list = ascending(all.filter(|job| *job != OUTSIDE && *job != number).collect());
            for child in list {
                parents[*child as usize] += 1;
            }
        }
        Self { list: jobs.iter().map(|tasks| job(workflow, seconds, tasks)).collect(), children, parents }
    }
}

fn job(workflow: &Workflow, seconds: &[f64], tasks: &[u32]) -> Job {
    let of = |task: &u32| &workflow.tasks()[*task as usize];
    let writes = ascending(tasks.iter().flat_map(|task| of(task).writes.iter().copied()).collect());
    let mut reads = ascending(tasks.iter().flat_map(|task| of(task).reads.iter().copied()).collect());
    reads.retain(|file| writes.binary_search(file).is_err());
    Job {
        first: tasks[0],
        is_clustered: tasks.len() > 1,
        seconds: tasks.iter().map(|task| seconds[*task as usize]).sum(),
        reads,
        writes,
    }
}

fn ascending(mut list: Vec<u32>) -> Vec<u32> {
    list.sort_unstable();
    list.dedup();
    list
}
