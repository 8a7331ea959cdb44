//! Granularity: which dependent tasks run as one (journal, future work).
//!
//! Fusing a task with its only predecessor saves the overhead of an instance and the transfer between both, and repeats the
//! predecessor in each instance of the task. Tasks that may be fused form chains, and the best partition of a chain into groups is
//! found exactly in O(n²) steps for n tasks. The same holds for stages of a workflow.

use crate::cost::dataflow::Dataflow;
use crate::graph::task_graph::TaskGraph;

/// Tasks of a stage, or stages of a workflow, with their instances and times.
#[derive(Debug)]
pub struct GranularityProblem<'a> {
    graph: &'a TaskGraph,
    /// Distinct instances of each task.
    instances: Vec<u64>,
    /// Predecessor that each task may be fused with.
    fusible: Vec<Option<usize>>,
    /// Total seconds of each task's own instances, then of its fusible predecessors, nearest first, if they run in each of these
    /// instances.
    seconds: Vec<Vec<f64>>,
}

/// Times that fusing saves.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FusionSavings<'a> {
    /// Overhead of a task instance in seconds.
    pub overhead_seconds: f64,
    /// Seconds to transfer an output of each task to an instance that reads it.
    pub transfer_seconds: &'a [f64],
}

/// Groups of tasks with the least total time.
#[derive(Debug, Clone, PartialEq)]
pub struct Granularity {
    /// Groups by their last task. The tasks of a group are in execution order.
    pub groups: Vec<Vec<usize>>,
    /// Seconds without fusing, overheads and transfers included.
    pub separate_seconds: f64,
    /// Seconds of the groups.
    pub seconds: f64,
}

impl Granularity {
    /// Returns the share of the time that fusing saves, 0–1.
    #[must_use]
    pub fn saved_fraction(&self) -> f64 {
        if self.separate_seconds > 0.0 { 1.0 - self.seconds / self.separate_seconds } else { 0.0 }
    }
}

impl<'a> GranularityProblem<'a> {
    /// Creates the problem of a stage's tasks, from their distinct instances. Other stages read the outputs of tasks in `read_outside`:
    /// these end their groups.
    ///
    /// # Panics
    /// If `dataflow` was built from another graph, or `read_outside` has another length.
    #[must_use]
    pub fn of_tasks(graph: &'a TaskGraph, dataflow: &Dataflow, read_outside: &[bool]) -> Self {
        let counts = dataflow.tasks_per_level();
        assert_eq!(counts.len(), graph.len(), "a graph of this stage's tasks");
        let fusible = fusible(graph, read_outside);
        let mut seconds: Vec<Vec<f64>> =
            (0..graph.len()).map(|last| vec![0.0; reach(&fusible, last)]).collect();
        for task in dataflow.tasks() {
            let mut at = task;
            for total in &mut seconds[dataflow.level(task)] {
                *total += dataflow.cost(at);
                // A fusible task reads its predecessor only. The last one of the walk has any number of reads.
                at = dataflow.reads(at).first().copied().unwrap_or(at);
            }
        }
        Self { graph, instances: counts.into_iter().map(|count| count as u64).collect(), fusible, seconds }
    }

    /// Creates a problem from the number of instances of each step and the mean seconds of an instance.
    ///
    /// # Panics
    /// If the lengths differ.
    #[must_use]
    pub fn of_means(
        graph: &'a TaskGraph,
        instances: Vec<u64>,
        mean_seconds: &[f64],
        read_outside: &[bool],
    ) -> Self {
        assert_eq!((instances.len(), mean_seconds.len()), (graph.len(), graph.len()), "steps of this graph");
        let fusible = fusible(graph, read_outside);
        let of_step = |last: usize| {
            let steps = std::iter::successors(Some(last), |step| fusible[*step]);
            steps.map(|step| instances[last] as f64 * mean_seconds[step]).collect()
        };
        let seconds = (0..graph.len()).map(of_step).collect();
        Self { graph, instances, fusible, seconds }
    }

    /// Returns the number of distinct instances of each task.
    #[must_use]
    pub fn instances(&self) -> &[u64] {
        &self.instances
    }

    /// Returns the total seconds of each task's instances.
    pub fn own_seconds(&self) -> impl Iterator<Item = f64> + '_ {
        self.seconds.iter().map(|of_task| of_task[0])
    }

    /// Returns the total seconds of a group: `length` tasks that end with `last`, with overheads and with transfers from the
    /// task before the group.
    ///
    /// # Panics
    /// If the tasks may not be fused.
    #[must_use]
    pub fn group_seconds(&self, last: usize, length: usize, savings: FusionSavings<'_>) -> f64 {
        let first = (1..length).fold(last, |task, _| self.fusible[task].expect("tasks that may be fused"));
        let received: f64 =
            self.graph.reads(first).tasks.iter().map(|read| savings.transfer_seconds[*read]).sum();
        let each = savings.overhead_seconds + received;
        self.instances[last] as f64 * each + self.seconds[last][..length].iter().sum::<f64>()
    }

    /// Finds the groups with the least total time. Of equal ones, those with fewer tasks.
    ///
    /// # Panics
    /// If `savings` has another number of tasks.
    #[must_use]
    pub fn solve(&self, savings: FusionSavings<'_>) -> Granularity {
        assert_eq!(savings.transfer_seconds.len(), self.graph.len(), "a transfer time for each task");
        // The least time of a chain up to each task, and the length of its last group there.
        let mut best: Vec<(f64, usize)> = Vec::with_capacity(self.graph.len());
        for last in 0..self.graph.len() {
            let (mut least, mut before) = ((f64::INFINITY, 1), self.fusible[last]);
            for length in 1..=self.seconds[last].len() {
                let rest = before.map_or(0.0, |task| best[task].0);
                let seconds = rest + self.group_seconds(last, length, savings);
                if seconds < least.0 {
                    least = (seconds, length);
                }
                before = before.and_then(|task| self.fusible[task]);
            }
            best.push(least);
        }
        let groups = self.groups(|last| best[last].1);
        let seconds =
            groups.iter().map(|group| self.group_seconds(group[group.len() - 1], group.len(), savings)).sum();
        let separate_seconds = (0..self.graph.len()).map(|task| self.group_seconds(task, 1, savings)).sum();
        Granularity { groups, separate_seconds, seconds }
    }

    /// Returns the groups, given the length of the group that each task ends.
    fn groups(&self, length: impl Fn(usize) -> usize) -> Vec<Vec<usize>> {
        let mut grouped = vec![false; self.graph.len()];
        let mut groups = Vec::new();
        for last in (0..self.graph.len()).rev() {
            if grouped[last] {
                continue;
            }
            let chain = std::iter::successors(Some(last), |task| self.fusible[*task]);
            let mut group: Vec<usize> = chain.take(length(last)).collect();
            group.iter().for_each(|task| grouped[*task] = true);
            group.reverse();
            groups.push(group);
        }
        groups.reverse();
        groups
    }
}

/// Returns the predecessor that each task may be fused with: the only task that it reads, if no other task and no other stage
/// reads that one.
fn fusible(graph: &TaskGraph, read_outside: &[bool]) -> Vec<Option<usize>> {
    assert_eq!(read_outside.len(), graph.len(), "a flag for each task");
    let mut readers = vec![0; graph.len()];
    let all = || (0..graph.len()).flat_map(|task| graph.reads(task).tasks.iter().copied());
    all().for_each(|read| readers[read] += 1);
    let predecessor = |task: usize| match graph.reads(task).tasks.as_slice() {
        [only] if readers[*only] == 1 && !read_outside[*only] => Some(*only),
        _ => None,
    };
    (0..graph.len()).map(predecessor).collect()
}

/// Returns the number of tasks in the longest group that `last` may end.
fn reach(fusible: &[Option<usize>], last: usize) -> usize {
    std::iter::successors(Some(last), |task| fusible[*task]).count()
}
