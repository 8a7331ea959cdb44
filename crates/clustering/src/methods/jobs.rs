//! Jobs of a level while tasks are added.

use crate::workflow::Workflow;

/// Jobs of one level, each with at most the same number of tasks.
#[derive(Debug)]
pub(super) struct Jobs {
    jobs: Vec<Vec<u32>>,
    seconds: Vec<f64>,
    capacity: usize,
}

impl Jobs {
    /// Creates `count` empty jobs for a number of tasks. Each takes ⌈tasks / count⌉: Algorithms 1–3 print the quotient, which
    /// would leave tasks without a job if it were rounded down.
    pub(super) fn new(tasks: usize, count: usize) -> Self {
        Self { jobs: vec![Vec::new(); count], seconds: vec![0.0; count], capacity: tasks.div_ceil(count) }
    }

    /// Returns the job of least run time, lowest number first, among open jobs that meet a condition.
    pub(super) fn shortest(&self, is_candidate: impl Fn(usize) -> bool) -> Option<usize> {
        let open = (0..self.jobs.len()).filter(|job| self.is_open(*job) && is_candidate(*job));
        open.min_by(|a, b| self.seconds[*a].total_cmp(&self.seconds[*b]))
    }

    /// Returns the job of less run time, or of the lower number.
    pub(super) fn shorter(&self, a: usize, b: usize) -> usize {
        let order = self.seconds[a].total_cmp(&self.seconds[b]).then(a.cmp(&b));
        if order.is_le() { a } else { b }
    }

    pub(super) fn len(&self) -> usize {
        self.jobs.len()
    }

    /// Returns whether a job has room for a task.
    pub(super) fn is_open(&self, job: usize) -> bool {
        self.jobs[job].len() < self.capacity
    }

    pub(super) fn is_empty(&self, job: usize) -> bool {
        self.jobs[job].is_empty()
    }

    /// Returns the first task of a job.
    pub(super) fn first(&self, job: usize) -> Option<u32> {
        self.jobs[job].first().copied()
    }

    /// Adds a task to a job and returns the run time of the job.
    pub(super) fn add(&mut self, job: usize, task: u32, seconds: f64) -> f64 {
        self.jobs[job].push(task);
        self.seconds[job] += seconds;
        self.seconds[job]
    }

    /// Returns the tasks of each job that has some, in the order of their addition.
    pub(super) fn into_tasks(self) -> impl Iterator<Item = Vec<u32>> {
        self.jobs.into_iter().filter(|job| !job.is_empty())
    }
}

/// Returns the tasks of a level by falling run time, equal ones in the order of the file.
pub(super) fn longest_first(workflow: &Workflow, level: &[u32]) -> Vec<u32> {
    let seconds = |task: u32| workflow.tasks()[task as usize].seconds;
    let mut tasks = level.to_vec();
    tasks.sort_by(|a, b| seconds(*b).total_cmp(&seconds(*a)));
    tasks
}
