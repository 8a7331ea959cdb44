//! Predicts the end of buckets that share outputs at run time: the first bucket that reaches a task executes
//! it, and other buckets wait for its output if necessary.
//!
//! As in [`JobGraph`](crate::JobGraph), transfers cost nothing. Outputs are never dropped, and a bucket
//! executes one task at a time. The scheduler decides when a bucket starts.

use crate::cost::dataflow::{Dataflow, TaskId};
use crate::merge_problem::Member;

/// Outputs computed so far, or planned by started buckets.
#[derive(Debug, Clone)]
pub struct SharingSchedule<'a> {
    dataflow: &'a Dataflow,
    /// Time when each task's output is present, in seconds. Infinite until a bucket reaches the task.
    available_at: Vec<f64>,
}

impl<'a> SharingSchedule<'a> {
    /// Creates a schedule without buckets.
    pub fn new(dataflow: &'a Dataflow) -> Self {
        Self { dataflow, available_at: vec![f64::INFINITY; dataflow.len()] }
    }

    /// Starts a bucket and returns the time when all tasks of its members are done. `now_seconds` must not be
    /// before that of the last call. O(k log k) for k tasks.
    ///
    /// The bucket executes the tasks that no earlier bucket executes, in the order of levels, so that it
    /// needs outputs of other buckets as late as possible.
    pub fn begin(&mut self, members: &[Member], now_seconds: f64) -> f64 {
        let rows = members.iter().flat_map(|member| self.dataflow.row(*member));
        let mut tasks: Vec<TaskId> = rows.copied().collect();
        tasks.sort_unstable();
        tasks.dedup();
        let (mut free, mut end) = (now_seconds, now_seconds);
        for task in tasks {
            let place = task.0 as usize;
            // A finite time means that an earlier bucket computes the task, or has computed it.
            if self.available_at[place].is_infinite() {
                let reads = self.dataflow.reads(task).iter();
                let begun = reads.map(|read| self.available_at[read.0 as usize]).fold(free, f64::max);
                free = begun + self.dataflow.cost(task);
                self.available_at[place] = free;
            }
            end = end.max(self.available_at[place]);
        }
        end
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::task_graph::{TaskGraph, TaskReads};
    use crate::merge_problem::{MergeProblem, TaskCosts};

    /// Tasks of 1, 5 and 2 seconds. The third reads the first two.
    fn example() -> Dataflow {
        let reads = |tasks: &[usize], inputs| TaskReads { tasks: tasks.to_vec(), inputs };
        let graph = TaskGraph::new(vec![reads(&[], true), reads(&[], true), reads(&[0, 1], false)]).unwrap();
        let keys = vec![1, 1, 1, 2, 1, 1, 1, 1, 2];
        let problem =
            MergeProblem::new(3, vec![0; 3], keys, TaskCosts::PerLevel(vec![1.0, 5.0, 2.0])).unwrap();
        Dataflow::build(&problem, &graph)
    }

    #[test]
    fn one_bucket_after_the_other_computes_each_task_once() {
        let dataflow = example();
        let mut relay = SharingSchedule::new(&dataflow);
        assert_eq!(relay.begin(&[Member(0)], 0.0), 8.0);
        assert_eq!(relay.begin(&[Member(1)], 8.0), 11.0);
        assert_eq!(relay.begin(&[Member(2)], 11.0), 13.0);
        // All outputs are present.
        assert_eq!(relay.begin(&[Member(0), Member(2)], 20.0), 20.0);
    }

    #[test]
    fn output_being_computed_is_awaited() {
        let dataflow = example();
        let mut relay = SharingSchedule::new(&dataflow);
        assert_eq!(relay.begin(&[Member(0)], 0.0), 8.0);
        // Its own first task takes 1 s. The output of the second task is present at 6 s.
        assert_eq!(relay.begin(&[Member(1)], 2.0), 8.0);
        assert_eq!(relay.begin(&[Member(0)], 3.0), 8.0);
    }
}
