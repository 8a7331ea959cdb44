//! Tasks as a dataflow graph: a task instance is identified by its task, the parameters it consumes and *its
//! inputs*, not by all preceding tasks as in a [`ReuseTree`](crate::ReuseTree).
//!
//! Two stage instances share a task here if it computes the same for both, in any task order. Therefore no
//! tree of any order has fewer nodes. Tasks are interned one after the other in O(kn).
//! [`SharingSchedule`](crate::SharingSchedule) predicts which outputs workers transfer.

use serde::Serialize;

use crate::buckets::Buckets;
use crate::cost::savings::{BucketCost, reuse_fraction};
use crate::graph::interner::Interner;
use crate::graph::task_graph::TaskGraph;
use crate::merge_problem::{Member, MergeProblem};

/// A task of the dataflow graph. Numbered task by task, and within a task by the first instance that needs it. The
/// inputs of a task have smaller numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TaskId(pub u32);

/// The distinct task instances of all stage instances of a [`MergeProblem`].
#[derive(Debug, Clone)]
pub struct Dataflow {
    levels: usize,
    /// The task of instance `i` and level `l` is `rows[i * levels + l]`.
    rows: Vec<TaskId>,
    costs: Vec<f64>,
    /// Level `l` is the tasks `starts[l]..starts[l + 1]`.
    starts: Vec<u32>,
    /// Inputs of each task, equally many for every task of a level. Those of level `l` begin at `read_starts[l]`.
    reads: Vec<TaskId>,
    read_starts: Vec<usize>,
    /// By level: the levels whose outputs its tasks read.
    level_reads: Vec<Vec<usize>>,
    /// Whether tasks of different inputs may be one task, because the contents of their inputs are equal.
    is_by_value: bool,
}

/// Summary of a dataflow graph.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct DataflowFigures {
    /// Number of tasks if each is executed once.
    pub tasks: usize,
    /// Total cost of its tasks.
    pub cost: f64,
    /// Avoided fraction of the number of tasks after stage-level merging.
    pub reuse_fraction: f64,
    /// Avoided fraction of their cost.
    pub cost_reuse_fraction: f64,
}

impl Dataflow {
    /// Finds the distinct tasks.
    ///
    /// # Panics
    /// If the number of tasks in the graph differs from the problem's levels.
    pub fn build(problem: &MergeProblem, graph: &TaskGraph) -> Self {
        let levels = problem.levels();
        let mut dataflow = Self::new(problem, graph, false);
        let mut pairs = Interner::default();
        let mut identities = Vec::new();
        for level in 0..levels {
            let reads = graph.reads(level);
            // Each input extends the identity. Without inputs the key alone counts.
            identities.clear();
            identities.extend(problem.members().map(|member| problem.keys(member)[level]));
            let mut grow = |by: &dyn Fn(Member) -> u32| {
                pairs.clear();
                for (identity, member) in identities.iter_mut().zip(problem.members()) {
                    *identity = pairs.intern((*identity, by(member)));
                }
            };
            // Runs even without inputs: `push_level` needs identities that are dense and in order of first appearance.
            grow(&|member| if reads.inputs { problem.inputs(member) } else { 0 });
            for read in &reads.tasks {
                grow(&|member| dataflow.task(member, *read).0);
            }
            dataflow.push_level(problem, level, &reads.tasks, &identities);
        }
        dataflow
    }

    /// Builds the graph of tasks that are equal by value. `values` has a number for each member and level, as
    /// [`row`](Self::row): tasks of a level with equal numbers have equal results. The inputs of a task are those of the first
    /// instance that needs it. Other instances may read equal contents of other tasks.
    ///
    /// # Panics
    /// If the number of tasks in the graph differs from the problem's levels, or if `values` has another length than all rows.
    pub fn build_by_value(problem: &MergeProblem, graph: &TaskGraph, values: &[u32]) -> Self {
        let levels = problem.levels();
        assert_eq!(values.len(), problem.len() * levels, "a number for each task of each instance");
        let mut dataflow = Self::new(problem, graph, true);
        let mut numbers = Interner::default();
        for level in 0..levels {
            numbers.clear();
            let number = |member: Member| values[member.0 as usize * levels + level];
            // Interned, because `push_level` needs numbers that are dense and in order of first appearance.
            let identities: Vec<u32> =
                problem.members().map(|member| numbers.intern(number(member))).collect();
            dataflow.push_level(problem, level, &graph.reads(level).tasks, &identities);
        }
        dataflow
    }

    fn new(problem: &MergeProblem, graph: &TaskGraph, is_by_value: bool) -> Self {
        assert_eq!(graph.len(), problem.levels(), "a graph of this stage's tasks");
        Self {
            levels: problem.levels(),
            rows: vec![TaskId(0); problem.len() * problem.levels()],
            costs: Vec::new(),
            starts: vec![0],
            reads: Vec::new(),
            read_starts: vec![0],
            level_reads: (0..graph.len()).map(|level| graph.reads(level).tasks.clone()).collect(),
            is_by_value,
        }
    }

    fn push_level(&mut self, problem: &MergeProblem, level: usize, reads: &[usize], identities: &[u32]) {
        let start = self.costs.len() as u32;
        for (identity, member) in identities.iter().zip(problem.members()) {
            let id = start + identity;
            if id as usize == self.costs.len() {
                self.costs.push(problem.cost(member, level));
                let reads: Vec<TaskId> = reads.iter().map(|read| self.task(member, *read)).collect();
                self.reads.extend(reads);
            }
            self.rows[member.0 as usize * self.levels + level] = TaskId(id);
        }
        self.starts.push(self.costs.len() as u32);
        self.read_starts.push(self.reads.len());
    }

    /// Returns the number of distinct tasks.
    pub fn len(&self) -> usize {
        self.costs.len()
    }

    /// Returns whether the graph has no task.
    pub fn is_empty(&self) -> bool {
        self.costs.is_empty()
    }

    /// Returns all tasks in an executable order.
    pub fn tasks(&self) -> impl DoubleEndedIterator<Item = TaskId> + use<> {
        (0..self.costs.len() as u32).map(TaskId)
    }

    /// Returns the tasks of a stage instance, by level.
    pub fn row(&self, member: Member) -> &[TaskId] {
        &self.rows[member.0 as usize * self.levels..][..self.levels]
    }

    /// Returns the task of a stage instance at a level.
    pub fn task(&self, member: Member, level: usize) -> TaskId {
        self.rows[member.0 as usize * self.levels + level]
    }

    /// Returns whether tasks are equal by value, as of [`build_by_value`](Self::build_by_value).
    pub fn is_by_value(&self) -> bool {
        self.is_by_value
    }

    /// Returns the levels whose outputs the tasks of a level read.
    pub fn level_reads(&self, level: usize) -> &[usize] {
        &self.level_reads[level]
    }

    /// Returns the largest sum of costs on a path of tasks that read each other, over all stage instances. O(kn).
    pub fn critical_cost(&self) -> f64 {
        // The rows of instances, not the reads of tasks: equal tasks may be on different paths.
        let mut ends = vec![0.0_f64; self.levels];
        let mut longest = 0.0_f64;
        for row in self.rows.chunks(self.levels.max(1)) {
            for (level, task) in row.iter().enumerate() {
                let start = self.level_reads[level].iter().map(|read| ends[*read]).fold(0.0, f64::max);
                ends[level] = start + self.cost(*task);
                longest = longest.max(ends[level]);
            }
        }
        longest
    }

    /// Returns the number of distinct tasks of each level.
    pub fn tasks_per_level(&self) -> Vec<usize> {
        self.starts.windows(2).map(|level| (level[1] - level[0]) as usize).collect()
    }

    /// Returns the level of a task, counted from 0.
    pub fn level(&self, task: TaskId) -> usize {
        self.starts.partition_point(|start| *start <= task.0) - 1
    }

    /// Returns the cost of a task as given by the first instance that needs it.
    pub fn cost(&self, task: TaskId) -> f64 {
        self.costs[task.0 as usize]
    }

    /// Takes over the costs of the problem that the graph was built from, after they have changed.
    ///
    /// # Panics
    /// If the problem has other instances.
    pub fn update_costs(&mut self, problem: &MergeProblem) {
        assert_eq!(problem.len() * self.levels, self.rows.len(), "the problem that the graph was built from");
        // From the last instance back: the first one that needs a task decides its cost.
        for member in problem.members().rev() {
            for level in 0..self.levels {
                let task = self.task(member, level);
                self.costs[task.0 as usize] = problem.cost(member, level);
            }
        }
    }

    /// Returns the tasks whose outputs a task reads.
    pub fn reads(&self, task: TaskId) -> &[TaskId] {
        let level = self.level(task);
        let of_level = &self.reads[self.read_starts[level]..self.read_starts[level + 1]];
        let tasks = (self.starts[level + 1] - self.starts[level]) as usize;
        // Not a division by 0: the level holds at least this task.
        let each = of_level.len() / tasks;
        &of_level[(task.0 - self.starts[level]) as usize * each..][..each]
    }

    /// Summarizes a plan that executes each task once.
    pub fn figures(&self, problem: &MergeProblem) -> DataflowFigures {
        let cost = self.costs.iter().sum();
        let all: f64 = problem.members().map(|member| problem.member_cost(member)).sum();
        DataflowFigures {
            tasks: self.len(),
            cost,
            reuse_fraction: reuse_fraction(self.len() as f64, self.rows.len() as f64),
            cost_reuse_fraction: reuse_fraction(cost, all),
        }
    }

    /// Returns the cost of each bucket if it executes each of its tasks once. O(kn).
    pub fn bucket_costs(&self, buckets: &Buckets) -> Vec<BucketCost> {
        let mut last_bucket = vec![usize::MAX; self.len()];
        let mut cost_of = |(bucket, members): (usize, &[Member])| {
            let mut total = BucketCost::default();
            for task in members.iter().flat_map(|member| self.row(*member)) {
                if std::mem::replace(&mut last_bucket[task.0 as usize], bucket) != bucket {
                    total.tasks += 1;
                    total.cost += self.cost(*task);
                }
            }
            total
        };
        buckets.iter().enumerate().map(&mut cost_of).collect()
    }

    /// Returns the cost of each bucket if only the first bucket that needs a task executes it, that is, if
    /// transfers cost nothing. O(kn).
    pub fn first_costs(&self, buckets: &Buckets) -> Vec<BucketCost> {
        let mut done = vec![false; self.len()];
        let mut cost_of = |members: &[Member]| {
            let mut total = BucketCost::default();
            for task in members.iter().flat_map(|member| self.row(*member)) {
                if !std::mem::replace(&mut done[task.0 as usize], true) {
                    total.tasks += 1;
                    total.cost += self.cost(*task);
                }
            }
            total
        };
        buckets.iter().map(&mut cost_of).collect()
    }

    /// Returns the number of buckets that need each task.
    pub fn buckets_per_task(&self, buckets: &Buckets) -> Vec<u32> {
        let mut last_bucket = vec![usize::MAX; self.len()];
        let mut needed = vec![0; self.len()];
        for (bucket, members) in buckets.iter().enumerate() {
            for task in members.iter().flat_map(|member| self.row(*member)) {
                if std::mem::replace(&mut last_bucket[task.0 as usize], bucket) != bucket {
                    needed[task.0 as usize] += 1;
                }
            }
        }
        needed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::task_graph::TaskReads;
    use crate::merge_problem::TaskCosts;

    /// The second task does not read the first. The third reads both.
    fn example() -> (MergeProblem, Dataflow) {
        let reads = |tasks: &[usize], inputs| TaskReads { tasks: tasks.to_vec(), inputs };
        let graph = TaskGraph::new(vec![reads(&[], true), reads(&[], true), reads(&[0, 1], false)]).unwrap();
        let keys = vec![1, 1, 1, 2, 1, 1, 1, 1, 2, 1, 1, 1];
        let problem =
            MergeProblem::new(3, vec![0, 0, 0, 9], keys, TaskCosts::PerLevel(vec![1.0, 5.0, 2.0])).unwrap();
        let dataflow = Dataflow::build(&problem, &graph);
        (problem, dataflow)
    }

    #[test]
    fn a_task_is_shared_whatever_came_before_it() {
        let (problem, dataflow) = example();
        assert_eq!(dataflow.tasks_per_level(), [3, 2, 4]);
        assert_eq!(dataflow.row(Member(1)), [TaskId(1), TaskId(3), TaskId(6)]);
        assert_eq!(dataflow.row(Member(3)), [TaskId(2), TaskId(4), TaskId(8)]);
        assert_eq!(dataflow.reads(TaskId(6)), [TaskId(1), TaskId(3)]);
        assert_eq!(dataflow.reads(TaskId(7)), [TaskId(0), TaskId(3)]);
        assert_eq!(dataflow.reads(TaskId(3)), []);
        assert_eq!((dataflow.level(TaskId(4)), dataflow.level(TaskId(5))), (1, 2));
        let figures = dataflow.figures(&problem);
        assert_eq!((figures.tasks, figures.cost), (9, 21.0));
        assert_eq!((figures.reuse_fraction, figures.cost_reuse_fraction), (0.25, 1.0 - 21.0 / 32.0));
    }

    #[test]
    fn buckets_cost_what_their_tasks_cost() {
        let (_, dataflow) = example();
        let mut buckets = Buckets::default();
        buckets.push([Member(0), Member(1)]);
        buckets.push([Member(2), Member(3)]);
        let costs = dataflow.bucket_costs(&buckets);
        assert_eq!(
            costs.iter().map(|bucket| (bucket.tasks, bucket.cost)).collect::<Vec<_>>(),
            [(5, 11.0), (6, 16.0)]
        );
        assert_eq!(dataflow.buckets_per_task(&buckets), [2, 1, 1, 2, 1, 1, 1, 1, 1]);
        let first = dataflow.first_costs(&buckets);
        assert_eq!(
            first.iter().map(|bucket| (bucket.tasks, bucket.cost)).collect::<Vec<_>>(),
            [(5, 11.0), (4, 10.0)]
        );
    }
}
