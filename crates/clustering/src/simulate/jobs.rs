//! Jobs as the simulation needs them: total run times, files and dependencies.

use super::prepared::Prepared;
use crate::workflow::Workflow;
use crate::workflow::lists::Lists;

/// Jobs of some tasks of a workflow. Dependencies on tasks outside these jobs are met from the start.
pub(crate) struct Jobs {
    pub(crate) list: Vec<Job>,
    /// Jobs that wait for a job, by job. A dependency is listed once.
    pub(crate) children: Lists,
    /// Number of jobs that a job waits for, by job.
    pub(crate) parents: Vec<u32>,
    /// Files that a job reads and does not write, by job, without those in [`Job::own_bytes`].
    pub(crate) reads: Lists,
    /// Files that a job writes and some task reads, by job.
    pub(crate) writes: Lists,
}

/// A job.
pub(crate) struct Job {
    /// Its first task, which names the draws of its delays: a job of the same tasks has the same delays in each clustering.
    pub(crate) first: u32,
    /// Whether it has two tasks or more.
    pub(crate) is_clustered: bool,
    /// Sum of the run times of its tasks in seconds.
    pub(crate) seconds: f64,
    /// Bytes of inputs that no other job reads or writes.
    pub(crate) own_bytes: u64,
}

/// Job of a task outside all jobs.
const OUTSIDE: u32 = u32::MAX;

impl Jobs {
    /// Joins tasks to jobs. `seconds` are the run times of all tasks of the workflow.
    pub(crate) fn new<'j>(
        prepared: &Prepared<'_>,
        seconds: &[f64],
        jobs: impl Iterator<Item = &'j [u32]> + Clone,
    ) -> Self {
        let (children, parents) = Self::dependencies(prepared.workflow, jobs.clone());
        let (list, reads, writes) = (Vec::new(), Lists::default(), Lists::default());
        let mut joined = Self { list, children, parents, reads, writes };
        let mut marks = Marks::new(prepared.workflow.files().len());
        for (number, tasks) in (0..).zip(jobs) {
            joined.add(prepared, seconds, tasks, number, &mut marks);
        }
        joined
    }

    /// Returns [`Self::children`] and [`Self::parents`] of jobs.
    pub(crate) fn dependencies<'j>(
        workflow: &Workflow,
        jobs: impl Iterator<Item = &'j [u32]> + Clone,
    ) -> (Lists, Vec<u32>) {
        let mut job_of = vec![OUTSIDE; workflow.tasks().len()];
        let mut count = 0;
        for tasks in jobs.clone() {
            tasks.iter().for_each(|task| job_of[*task as usize] = count);
            count += 1;
        }
        let (mut children, mut parents) = (Lists::default(), vec![0; count as usize]);
        let mut marks = Marks::new(count as usize);
        for (number, tasks) in (0..).zip(jobs) {
            for child in tasks.iter().flat_map(|task| workflow.children(*task)) {
                let child = job_of[*child as usize];
                if child != OUTSIDE && child != number && marks.is_new(child, number) {
                    children.push(child);
                    parents[child as usize] += 1;
                }
            }
            children.close();
        }
        (children, parents)
    }

    /// Adds a job with its files. Outputs come first: a mark of an output hides an input.
    fn add(
        &mut self,
        prepared: &Prepared<'_>,
        seconds: &[f64],
        tasks: &[u32],
        number: u32,
        marks: &mut Marks,
    ) {
        for (of, files) in [(&prepared.writes, &mut self.writes), (&prepared.reads, &mut self.reads)] {
            for file in tasks.iter().flat_map(|task| of.get(*task)) {
                if marks.is_new(*file, number) {
                    files.push(*file);
                }
            }
            files.close();
        }
        let own = tasks.iter().map(|task| prepared.own_bytes[*task as usize]);
        self.list.push(Job {
            first: tasks[0],
            is_clustered: tasks.len() > 1,
            seconds: tasks.iter().map(|task| seconds[*task as usize]).sum(),
            own_bytes: own.fold(0, u64::saturating_add),
        });
    }
}

/// Last job that has met each number.
struct Marks(Vec<u32>);

impl Marks {
    fn new(count: usize) -> Self {
        Self(vec![OUTSIDE; count])
    }

    /// Returns whether a job meets a number for the first time. Jobs come in ascending order.
    fn is_new(&mut self, number: u32, job: u32) -> bool {
        std::mem::replace(&mut self.0[number as usize], job) != job
    }
}
