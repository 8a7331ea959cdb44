//! Buckets whose tasks are equal by value.
//!
//! A worker knows the task that an instance needs once the contents of the inputs are known. Therefore the instance waits for
//! its own chain of tasks, even where another instance has executed a later one, and an instance that executes a task reads
//! the outputs of its own chain.

use super::{BucketForecast, SharingSchedule, StartedBucket, WorkerModel};
use crate::cost::dataflow::{Dataflow, TaskId};
use crate::merge_problem::Member;
use std::borrow::Borrow;

impl<D: Borrow<Dataflow> + Clone> SharingSchedule<D> {
    /// As [`begin_on`](Self::begin_on), for a dataflow of tasks that are equal by value. The worker takes the members level by
    /// level. After a loss, it executes each lost task again that an instance needs, because the contents of its outputs
    /// are lost as well.
    pub(super) fn begin_by_value(
        &mut self,
        mut bucket: StartedBucket<'_, impl WorkerModel>,
        members: &[Member],
        now_seconds: f64,
    ) -> BucketForecast {
        let dataflow = self.dataflow.clone();
        let dataflow: &Dataflow = dataflow.borrow();
        let levels = dataflow.tasks_per_level().len();
        // By member and level: the time when the contents of a task's outputs are known.
        let mut known = vec![now_seconds; members.len() * levels];
        let mut free = now_seconds;
        for level in 0..levels {
            for (place, member) in members.iter().enumerate() {
                let task = dataflow.task(*member, level);
                let reads = dataflow.level_reads(level);
                let ready = reads.iter().map(|read| known[place * levels + read]).fold(now_seconds, f64::max);
                if self.first[task.0 as usize].1.is_infinite() {
                    let own: Vec<TaskId> = reads.iter().map(|read| dataflow.task(*member, *read)).collect();
                    if own != dataflow.reads(task) {
                        self.own_reads.insert(task, own);
                    }
                    free = self.execute_first(&mut bucket, task, free.max(ready));
                }
                known[place * levels + level] = ready.max(self.first[task.0 as usize].1);
            }
        }
        let end = known.into_iter().fold(free, f64::max);
        BucketForecast { end_seconds: end, ..bucket.forecast }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cost::transfer::TransferCost;
    use crate::graph::task_graph::TaskGraph;
    use crate::merge_problem::{MergeProblem, TaskCosts};

    /// A chain of tasks of 1, 4 and 2 seconds. The first tasks of both instances differ, and have equal outputs.
    fn example(values: &[u32]) -> Dataflow {
        let keys = vec![1, 1, 1, 2, 1, 2];
        let problem =
            MergeProblem::new(3, vec![0; 2], keys, TaskCosts::PerLevel(vec![1.0, 4.0, 2.0])).unwrap();
        let dataflow = Dataflow::build_by_value(&problem, &TaskGraph::chain(3), values);
        assert_eq!(dataflow.critical_cost(), 7.0);
        dataflow
    }

    fn schedule(dataflow: &Dataflow, seconds: u64) -> SharingSchedule<&Dataflow> {
        let link = TransferCost { bytes_per_second: 1.0, latency_seconds: 0.0 };
        SharingSchedule::new(dataflow, vec![seconds; 3], link)
    }

    #[test]
    fn equal_contents_are_computed_once() {
        let dataflow = example(&[7, 8, 9, 5, 8, 3]);
        assert_eq!(dataflow.tasks_per_level(), [2, 1, 2]);
        let mut schedule = schedule(&dataflow, 1);
        assert_eq!(schedule.open_seconds(), 10.0);
        assert_eq!(schedule.begin(0, &[Member(0)], 0.0), 7.0);
        // Its first task, 1 s for the output of the second task of worker 0, and its third task.
        assert_eq!(schedule.begin(1, &[Member(1)], 10.0), 14.0);
        assert_eq!((schedule.forecast().transfers, schedule.open_seconds()), (1, 0.0));
    }

    #[test]
    fn task_of_equal_content_is_known_after_the_inputs() {
        let dataflow = example(&[7, 8, 9, 5, 8, 9]);
        let mut schedule = schedule(&dataflow, 1);
        assert_eq!(schedule.begin(0, &[Member(0)], 0.0), 7.0);
        // The results are present, but only the output of the first task identifies them.
        assert_eq!(schedule.begin(1, &[Member(1)], 20.0), 21.0);
        assert_eq!(schedule.forecast().transfers, 0);
    }

    #[test]
    fn executed_task_reads_the_outputs_of_its_own_instance() {
        let dataflow = example(&[7, 8, 9, 5, 8, 9]);
        let mut schedule = schedule(&dataflow, 1);
        // The second task reads the first one of member 1. That of member 0, the first in the dataflow, is not executed.
        assert_eq!(schedule.begin(0, &[Member(1)], 0.0), 7.0);
        assert_eq!(schedule.open_seconds(), 1.0);
        assert_eq!(schedule.begin(1, &[Member(0)], 10.0), 11.0);
        assert_eq!(schedule.open_seconds(), 0.0);
    }

    #[test]
    fn lost_contents_are_computed_again() {
        let dataflow = example(&[7, 8, 9, 5, 8, 9]);
        let mut schedule = schedule(&dataflow, 1);
        schedule.begin(0, &[Member(0)], 0.0);
        schedule.remove_worker(0);
        assert_eq!(schedule.begin(1, &[Member(1)], 10.0), 17.0);
        assert_eq!(schedule.begin(1, &[Member(0)], 20.0), 21.0);
    }
}
