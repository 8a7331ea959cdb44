//! Clustering: a partition of the tasks of a workflow into jobs.

use thiserror::Error;

use crate::workflow::{Task, Workflow, WorkflowError};

/// A partition of the tasks of a workflow into jobs. One worker executes the tasks of a job one after the other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Clustering {
    jobs: Vec<Vec<u32>>,
}

/// Defect of a clustering.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum ClusteringError {
    /// A job has no tasks.
    #[error("job {job}: no tasks; a job has 1 task or more")]
    Empty {
        /// The job.
        job: usize,
    },
    /// A task is in no job, in two jobs, or does not exist.
    #[error("task {task}: in {count} jobs; each task of the workflow is in one job")]
    Count {
        /// Index of the task.
        task: u32,
        /// Number of jobs.
        count: usize,
    },
    /// A job lists a task before one of its parents.
    #[error("job {job}: executes task {task} before its parent {parent}")]
    Order {
        /// The job.
        job: usize,
        /// Index of the task.
        task: u32,
        /// Index of the parent.
        parent: u32,
    },
    /// Jobs depend on themselves.
    #[error("order the jobs: {0}")]
    Workflow(#[from] WorkflowError),
}

impl Clustering {
    /// Creates a clustering from the tasks of each job in their order of execution.
    ///
    /// # Errors
    /// If a job is empty, a task is not in exactly one job, a job executes a task before one of its parents, or jobs depend on
    /// each other in a cycle.
    pub fn new(workflow: &Workflow, jobs: Vec<Vec<u32>>) -> Result<Self, ClusteringError> {
        let mut counts = vec![0; workflow.tasks().len()];
        for (number, job) in jobs.iter().enumerate() {
            if job.is_empty() {
                return Err(ClusteringError::Empty { job: number });
            }
            for task in job {
                let Some(count) = counts.get_mut(*task as usize) else {
                    return Err(ClusteringError::Count { task: *task, count: 1 });
                };
                *count += 1;
            }
        }
        if let Some((task, count)) = (0..).zip(&counts).find(|(_, count)| **count != 1) {
            return Err(ClusteringError::Count { task, count: *count });
        }
        let clustering = Self { jobs };
        clustering.check_order(workflow)?;
        if !clustering.is_acyclic(workflow) {
            // Only the workflow of the jobs has the ids along the cycle.
            clustering.workflow(workflow)?;
        }
        Ok(clustering)
    }

    /// Returns the clustering with one job for each task.
    #[must_use]
    pub fn single(workflow: &Workflow) -> Self {
        Self { jobs: (0..workflow.tasks().len() as u32).map(|task| vec![task]).collect() }
    }

    /// Returns the tasks of each job.
    #[must_use]
    pub fn jobs(&self) -> &[Vec<u32>] {
        &self.jobs
    }

    /// Returns the job of each task.
    #[must_use]
    pub fn job_of(&self) -> Vec<u32> {
        let mut job_of = vec![0; self.jobs.iter().map(Vec::len).sum()];
        for (number, job) in (0..).zip(&self.jobs) {
            for task in job {
                job_of[*task as usize] = number;
            }
        }
        job_of
    }

    /// Returns the workflow whose tasks are the jobs: run times are summed, a job reads files that its tasks do not write,
    /// and dependencies within a job are dropped. Job `j` is task `j`, with the id of its first task.
    ///
    /// # Errors
    /// If jobs depend on each other in a cycle.
    pub fn workflow(&self, workflow: &Workflow) -> Result<Workflow, WorkflowError> {
        let job_of = self.job_of();
        let job = |tasks: &Vec<u32>| {
            let of = |task: &u32| &workflow.tasks()[*task as usize];
            let first = of(&tasks[0]);
            let same = tasks.iter().all(|task| of(task).kind == first.kind);
            Task {
                id: first.id.clone(),
                kind: if same { first.kind.clone() } else { "mixed".to_owned() },
                seconds: tasks.iter().map(|task| of(task).seconds).sum(),
                reads: tasks.iter().flat_map(|task| of(task).reads.iter().copied()).collect(),
                writes: tasks.iter().flat_map(|task| of(task).writes.iter().copied()).collect(),
            }
        };
        let jobs = self.jobs.iter().map(job).collect();
        let edges = workflow.edges().map(|(parent, child)| (job_of[parent as usize], job_of[child as usize]));
        let edges: Vec<_> = edges.filter(|(parent, child)| parent != child).collect();
        Workflow::new(workflow.name(), jobs, workflow.files().to_vec(), &edges)
    }

    /// Joins jobs further: `outer` is a clustering of [`Self::workflow`]. Tasks of a joined job run in the order of its jobs.
    #[must_use]
    pub fn then(&self, outer: &Self) -> Self {
        let tasks = |job: &u32| self.jobs[*job as usize].iter().copied();
        Self { jobs: outer.jobs.iter().map(|jobs| jobs.iter().flat_map(tasks).collect()).collect() }
    }

    /// Returns whether the jobs have an order (Kahn 1962). Dependencies count once for each pair of tasks.
    fn is_acyclic(&self, workflow: &Workflow) -> bool {
        let job_of = self.job_of();
        let mut waits_for = vec![0_u32; self.jobs.len()];
        for (parent, child) in workflow.edges() {
            let (parent, child) = (job_of[parent as usize], job_of[child as usize]);
            waits_for[child as usize] += u32::from(parent != child);
        }
        let mut ready: Vec<u32> =
            (0..self.jobs.len() as u32).filter(|job| waits_for[*job as usize] == 0).collect();
        let mut done = 0;
        while let Some(job) = ready.pop() {
            done += 1;
            let children = self.jobs[job as usize].iter().flat_map(|task| workflow.children(*task));
            for child in children.map(|child| job_of[*child as usize]).filter(|child| *child != job) {
                waits_for[child as usize] -= 1;
                if waits_for[child as usize] == 0 {
                    ready.push(child);
                }
            }
        }
        done == self.jobs.len()
    }

    fn check_order(&self, workflow: &Workflow) -> Result<(), ClusteringError> {
        let job_of = self.job_of();
        let mut executed = vec![false; job_of.len()];
        for (number, job) in self.jobs.iter().enumerate() {
            for task in job {
                let unmet = |parent: &&u32| {
                    job_of[**parent as usize] as usize == number && !executed[**parent as usize]
                };
                if let Some(parent) = workflow.parents(*task).iter().find(unmet) {
                    return Err(ClusteringError::Order { job: number, task: *task, parent: *parent });
                }
                executed[*task as usize] = true;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workflow::DataFile;

    /// A chain of four tasks. Each reads the file of its parent.
    fn chain() -> Workflow {
        let task = |number: u32| Task {
            id: format!("t{number}"),
            kind: "run".into(),
            seconds: f64::from(number + 1),
            reads: number.checked_sub(1).into_iter().collect(),
            writes: vec![number],
        };
        let files = (0..4).map(|number| DataFile { name: format!("f{number}"), bytes: 1 }).collect();
        Workflow::new("chain", (0..4).map(task).collect(), files, &[(0, 1), (1, 2), (2, 3)]).unwrap()
    }

    #[test]
    fn jobs_are_tasks_of_a_smaller_workflow() {
        let workflow = chain();
        let clustering = Clustering::new(&workflow, vec![vec![0], vec![1, 2], vec![3]]).unwrap();
        let jobs = clustering.workflow(&workflow).unwrap();
        assert_eq!(jobs.edges().collect::<Vec<_>>(), [(0, 1), (1, 2)]);
        let joined = &jobs.tasks()[1];
        assert_eq!((joined.id.as_str(), joined.seconds), ("t1", 5.0));
        assert_eq!((&joined.reads[..], &joined.writes[..]), (&[0][..], &[1, 2][..]));
        let outer = Clustering::new(&jobs, vec![vec![0, 1], vec![2]]).unwrap();
        assert_eq!(clustering.then(&outer).jobs(), [vec![0, 1, 2], vec![3]]);
    }

    #[test]
    fn what_is_no_partition_is_refused() {
        let workflow = chain();
        let error = |jobs: &[&[u32]]| {
            Clustering::new(&workflow, jobs.iter().map(|job| job.to_vec()).collect()).unwrap_err()
        };
        assert_eq!(error(&[&[0, 1], &[2]]), ClusteringError::Count { task: 3, count: 0 });
        assert_eq!(error(&[&[0, 1], &[1, 2, 3]]), ClusteringError::Count { task: 1, count: 2 });
        assert_eq!(error(&[&[0, 1, 2, 3], &[4]]), ClusteringError::Count { task: 4, count: 1 });
        assert_eq!(error(&[&[0, 1, 2, 3], &[]]), ClusteringError::Empty { job: 1 });
        assert_eq!(error(&[&[1, 0], &[2, 3]]), ClusteringError::Order { job: 0, task: 1, parent: 0 });
        assert!(matches!(error(&[&[0, 2], &[1, 3]]), ClusteringError::Workflow(WorkflowError::Cycle { .. })));
    }
}
