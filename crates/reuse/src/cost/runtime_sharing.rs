//! Predicts the end of buckets that share outputs at run time: the first bucket that reaches a task executes
//! it, and other buckets wait for its output if necessary.
//!
//! As at run time, a task that another worker has executed moves nothing. The first task that runs on a worker and reads
//! such an output transfers it, or executes its task again where that is clearly faster ([`is_recompute_cheaper`]). Outputs
//! are never dropped, and a bucket executes one task, or receives one output, at a time. The scheduler decides when and
//! where a bucket starts.

use crate::cost::dataflow::{Dataflow, TaskId};
use crate::cost::transfer::{TransferCost, is_recompute_cheaper};
use crate::merge_problem::Member;
use serde::Serialize;
use std::collections::HashMap;

/// Longest chain of tasks that a worker executes again for one output.
const MAX_DEPTH: u32 = 32;

/// Outputs computed so far, or planned by started buckets.
#[derive(Debug, Clone)]
pub struct SharingSchedule<'a> {
    dataflow: &'a Dataflow,
    /// Seconds to transfer the outputs of a task, by level.
    transfer_seconds: Vec<f64>,
    /// Bytes of the outputs of a task, by level.
    output_bytes: Vec<u64>,
    /// Worker that executes each task first, and the time when its output is present, in seconds. The time is infinite until
    /// a bucket reaches the task.
    first: Vec<(u32, f64)>,
    /// Times when further workers have an output.
    copies: HashMap<(TaskId, u32), f64>,
    forecast: TransferForecast,
}

/// Predicted transfers between workers.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct TransferForecast {
    /// Tasks whose outputs a worker receives from another.
    pub transfers: usize,
    /// Bytes of these outputs.
    pub bytes: u64,
    /// Seconds of these transfers.
    pub seconds: f64,
    /// Tasks that a worker executes again, because a transfer takes longer.
    pub recomputed_tasks: usize,
    /// Seconds of these tasks.
    pub recompute_seconds: f64,
}

impl TransferForecast {
    /// Adds the transfers of another stage.
    pub fn add(&mut self, other: &Self) {
        self.transfers += other.transfers;
        self.bytes += other.bytes;
        self.seconds += other.seconds;
        self.recomputed_tasks += other.recomputed_tasks;
        self.recompute_seconds += other.recompute_seconds;
    }
}

impl<'a> SharingSchedule<'a> {
    /// Creates a schedule without buckets. Costs of the dataflow are seconds, and `output_bytes` has one entry per level.
    ///
    /// # Panics
    /// If `output_bytes` has fewer entries than the dataflow has levels.
    pub fn new(dataflow: &'a Dataflow, output_bytes: Vec<u64>, link: TransferCost) -> Self {
        let levels = dataflow.tasks_per_level().len();
        assert!(output_bytes.len() >= levels, "{} sizes for {levels} levels", output_bytes.len());
        Self {
            dataflow,
            transfer_seconds: output_bytes.iter().map(|bytes| link.seconds(*bytes)).collect(),
            output_bytes,
            first: vec![(0, f64::INFINITY); dataflow.len()],
            copies: HashMap::new(),
            forecast: TransferForecast::default(),
        }
    }

    /// Returns the transfers and repeated tasks of the buckets that have started.
    pub fn forecast(&self) -> TransferForecast {
        self.forecast
    }

    /// Starts a bucket on a worker, and returns the time when all tasks of its members are done. `now_seconds` must not be
    /// before that of the last call. O(k log k) for k tasks, without repeated tasks.
    ///
    /// The bucket executes the tasks that no earlier bucket executes, in the order of levels, so that it
    /// needs outputs of other buckets as late as possible.
    pub fn begin(&mut self, worker: u32, members: &[Member], now_seconds: f64) -> f64 {
        let rows = members.iter().flat_map(|member| self.dataflow.row(*member));
        let mut tasks: Vec<TaskId> = rows.copied().collect();
        tasks.sort_unstable();
        tasks.dedup();
        let (mut free, mut end) = (now_seconds, now_seconds);
        for task in tasks {
            let place = task.0 as usize;
            // A finite time means that an earlier bucket computes the task, or has computed it.
            if self.first[place].1.is_infinite() {
                free = self.execute(task, worker, free);
                self.first[place] = (worker, free);
            }
            end = end.max(self.first[place].1);
        }
        end.max(free)
    }

    /// Executes a task on a worker that is free from `free` on. Returns the time when its output is present.
    fn execute(&mut self, task: TaskId, worker: u32, mut free: f64) -> f64 {
        let dataflow = self.dataflow;
        for read in dataflow.reads(task) {
            free = self.obtain(*read, worker, free);
        }
        free + dataflow.cost(task)
    }

    fn present_at(&self, task: TaskId, worker: u32) -> Option<f64> {
        let (first, at) = self.first[task.0 as usize];
        match first == worker && at.is_finite() {
            true => Some(at),
            false => self.copies.get(&(task, worker)).copied(),
        }
    }

    /// Brings an output to a worker. Returns the time when it is present.
    fn obtain(&mut self, task: TaskId, worker: u32, free: f64) -> f64 {
        if let Some(at) = self.present_at(task, worker) {
            return free.max(at);
        }
        let level = self.dataflow.level(task);
        let transfer = self.transfer_seconds[level];
        let at = if self.is_recomputed(task, worker) {
            self.forecast.recomputed_tasks += 1;
            self.forecast.recompute_seconds += self.dataflow.cost(task);
            self.execute(task, worker, free)
        } else {
            self.forecast.transfers += 1;
            self.forecast.bytes += self.output_bytes[level];
            self.forecast.seconds += transfer;
            free.max(self.first[task.0 as usize].1) + transfer
        };
        self.copies.insert((task, worker), at);
        at
    }

    fn is_recomputed(&self, task: TaskId, worker: u32) -> bool {
        let transfer = self.transfer_seconds[self.dataflow.level(task)];
        // The task alone is a lower bound, so that most outputs need no search.
        is_recompute_cheaper(transfer, self.dataflow.cost(task))
            && is_recompute_cheaper(
                transfer,
                self.recompute_seconds(task, worker, MAX_DEPTH, &mut HashMap::new()),
            )
    }

    /// Returns the seconds of a task, and of obtaining the inputs that the worker lacks, each in the faster way. Infinite if a
    /// chain of more than `depth` tasks would run again.
    fn recompute_seconds(
        &self,
        task: TaskId,
        worker: u32,
        depth: u32,
        known: &mut HashMap<TaskId, f64>,
    ) -> f64 {
        if let Some(seconds) = known.get(&task) {
            return *seconds;
        }
        if depth == 0 {
            return f64::INFINITY;
        }
        let mut seconds = self.dataflow.cost(task);
        for read in self.dataflow.reads(task) {
            if self.present_at(*read, worker).is_none() {
                let transfer = self.transfer_seconds[self.dataflow.level(*read)];
                let again = self.recompute_seconds(*read, worker, depth - 1, known);
                seconds += if is_recompute_cheaper(transfer, again) { again } else { transfer };
            }
        }
        known.insert(task, seconds);
        seconds
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

    fn free(dataflow: &Dataflow) -> SharingSchedule<'_> {
        SharingSchedule::new(dataflow, vec![0; 3], TransferCost::FREE)
    }

    /// Seconds of the outputs of each task at 1 byte per second.
    fn slow(dataflow: &Dataflow, seconds: [u64; 3]) -> SharingSchedule<'_> {
        let link = TransferCost { bytes_per_second: 1.0, latency_seconds: 0.0 };
        SharingSchedule::new(dataflow, seconds.to_vec(), link)
    }

    #[test]
    fn one_bucket_after_the_other_computes_each_task_once() {
        let dataflow = example();
        let mut relay = free(&dataflow);
        assert_eq!(relay.begin(0, &[Member(0)], 0.0), 8.0);
        assert_eq!(relay.begin(0, &[Member(1)], 8.0), 11.0);
        assert_eq!(relay.begin(0, &[Member(2)], 11.0), 13.0);
        // All outputs are present.
        assert_eq!(relay.begin(0, &[Member(0), Member(2)], 20.0), 20.0);
        assert_eq!(relay.forecast(), TransferForecast::default());
    }

    #[test]
    fn output_being_computed_is_awaited() {
        let dataflow = example();
        let mut relay = free(&dataflow);
        assert_eq!(relay.begin(0, &[Member(0)], 0.0), 8.0);
        // Its own first task takes 1 s. The output of the second task is present at 6 s.
        assert_eq!(relay.begin(1, &[Member(1)], 2.0), 8.0);
        assert_eq!(relay.begin(0, &[Member(0)], 3.0), 8.0);
    }

    #[test]
    fn output_of_another_worker_is_transferred_once() {
        let dataflow = example();
        let mut relay = slow(&dataflow, [9, 3, 9]);
        relay.begin(0, &[Member(0)], 0.0);
        // Executes its own first task, receives the output of the second in 3 s, executes the third.
        assert_eq!(relay.begin(1, &[Member(1)], 10.0), 16.0);
        let moved = TransferForecast { transfers: 1, bytes: 3, seconds: 3.0, ..TransferForecast::default() };
        assert_eq!(relay.forecast(), moved);
        // A third bucket lacks the output of the first task only, which takes 1 s again.
        assert_eq!(relay.begin(1, &[Member(2)], 20.0), 23.0);
        let repeated = TransferForecast { recomputed_tasks: 1, recompute_seconds: 1.0, ..moved };
        assert_eq!(relay.forecast(), repeated);
    }

    #[test]
    fn task_is_executed_again_where_its_transfer_takes_longer() {
        let dataflow = example();
        let mut relay = slow(&dataflow, [100, 100, 100]);
        relay.begin(0, &[Member(0)], 0.0);
        assert_eq!(relay.begin(1, &[Member(1)], 10.0), 18.0);
        assert_eq!(relay.forecast().recomputed_tasks, 1);
        assert_eq!(relay.forecast().transfers, 0);
    }
}
