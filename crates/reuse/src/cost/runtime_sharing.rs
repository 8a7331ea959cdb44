//! Predicts the end of buckets that share outputs at run time: the first bucket that reaches a task executes
//! it, and other buckets wait for its output if necessary.
//!
//! As at run time, a task that another worker has executed moves nothing. The first task that runs on a worker and reads
//! such an output transfers it, or executes its task again where that is clearly faster ([`is_recompute_cheaper`]). Outputs
//! are dropped only with their worker, and a bucket executes one task, or receives one output, at a time. The scheduler
//! decides when and where a bucket starts.
//!
//! Tasks that are equal by value (`by_value`) are known later: the contents of an instance's inputs decide which task it needs.

mod by_value;

use crate::cost::dataflow::{Dataflow, TaskId};
use crate::cost::transfer::{TransferCost, is_recompute_cheaper};
use crate::merge_problem::Member;
use serde::Serialize;
use std::borrow::Borrow;
use std::collections::{HashMap, HashSet};

/// Longest chain of tasks that a worker executes again for one output.
const MAX_DEPTH: u32 = 32;

/// Workers of a schedule.
pub trait WorkerModel {
    /// Returns the seconds of work that a worker does in 1 s.
    fn speed(&self, worker: u32) -> f64;

    /// Returns the seconds to transfer `bytes` between two workers.
    fn transfer_seconds(&self, from: u32, to: u32, bytes: u64) -> f64;
}

/// Workers of speed 1, with equal links.
impl WorkerModel for TransferCost {
    fn speed(&self, _: u32) -> f64 {
        1.0
    }

    fn transfer_seconds(&self, _: u32, _: u32, bytes: u64) -> f64 {
        self.seconds(bytes)
    }
}

/// Outputs computed so far, or planned by started buckets.
#[derive(Debug, Clone)]
pub struct SharingSchedule<D> {
    dataflow: D,
    link: TransferCost,
    /// Bytes of the outputs of a task, by level.
    output_bytes: Vec<u64>,
    /// Worker that executes each task first, and the time when its output is present, in seconds. The time is infinite until
    /// a bucket reaches the task.
    first: Vec<(u32, f64)>,
    /// Times when further workers have an output.
    copies: HashMap<(TaskId, u32), f64>,
    forecast: TransferForecast,
    /// Cost of the tasks that no bucket has reached.
    open_seconds: f64,
    /// Whether workers were removed.
    has_losses: bool,
    /// Inputs of tasks that were executed for another instance than the first one in the dataflow that needs them.
    own_reads: HashMap<TaskId, Vec<TaskId>>,
}

/// Predicted run of a bucket.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct BucketForecast {
    /// Time when all tasks of its members are done.
    pub end_seconds: f64,
    /// Tasks that it executes, with the seconds of each on its worker.
    pub executed: Vec<(TaskId, f64)>,
    /// Outputs that it receives: the sender, and the bytes.
    pub received: Vec<(u32, u64)>,
}

/// Bucket that starts on a worker, with its forecast so far.
struct StartedBucket<'a, W> {
    workers: &'a W,
    worker: u32,
    forecast: BucketForecast,
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

impl<D: Borrow<Dataflow> + Clone> SharingSchedule<D> {
    /// Creates a schedule without buckets. Costs of the dataflow are seconds, and `output_bytes` has one entry per level.
    /// `link` connects the workers of [`begin`](Self::begin).
    ///
    /// # Panics
    /// If `output_bytes` has fewer entries than the dataflow has levels.
    pub fn new(dataflow: D, output_bytes: Vec<u64>, link: TransferCost) -> Self {
        let tasks: &Dataflow = dataflow.borrow();
        let levels = tasks.tasks_per_level().len();
        assert!(output_bytes.len() >= levels, "{} sizes for {levels} levels", output_bytes.len());
        let open_seconds = tasks.tasks().map(|task| tasks.cost(task)).sum();
        let first = vec![(0, f64::INFINITY); tasks.len()];
        Self {
            link,
            output_bytes,
            first,
            copies: HashMap::new(),
            forecast: TransferForecast::default(),
            open_seconds,
            has_losses: false,
            own_reads: HashMap::new(),
            dataflow,
        }
    }

    /// Returns the transfers and repeated tasks of the buckets that have started.
    pub fn forecast(&self) -> TransferForecast {
        self.forecast
    }

    /// Returns the level of a task.
    pub fn level(&self, task: TaskId) -> usize {
        self.dataflow.borrow().level(task)
    }

    /// Returns the cost of the tasks that no bucket has reached.
    pub fn open_seconds(&self) -> f64 {
        self.open_seconds
    }

    /// Starts a bucket on a worker of speed 1, and returns the time when all tasks of its members are done. `now_seconds` must
    /// not be before that of the last call. O(k log k) for k tasks, without repeated tasks.
    ///
    /// The bucket executes the tasks that no earlier bucket executes, in the order of levels, so that it
    /// needs outputs of other buckets as late as possible.
    pub fn begin(&mut self, worker: u32, members: &[Member], now_seconds: f64) -> f64 {
        let link = self.link;
        self.begin_on(&link, worker, members, now_seconds).end_seconds
    }

    /// As [`begin`](Self::begin), on workers of given speeds and links.
    pub fn begin_on(
        &mut self,
        workers: &impl WorkerModel,
        worker: u32,
        members: &[Member],
        now_seconds: f64,
    ) -> BucketForecast {
        let dataflow = self.dataflow.clone();
        let dataflow = dataflow.borrow();
        if dataflow.is_by_value() {
            let bucket = StartedBucket { workers, worker, forecast: BucketForecast::default() };
            return self.begin_by_value(bucket, members, now_seconds);
        }
        let rows = members.iter().flat_map(|member| dataflow.row(*member));
        let mut tasks: Vec<TaskId> = rows.copied().collect();
        tasks.sort_unstable();
        tasks.dedup();
        if self.has_losses {
            self.retain_needed(&mut tasks);
        }
        let mut bucket = StartedBucket { workers, worker, forecast: BucketForecast::default() };
        let (mut free, mut end) = (now_seconds, now_seconds);
        for task in tasks {
            let place = task.0 as usize;
            // A finite time means that an earlier bucket computes the task, or has computed it.
            if self.first[place].1.is_infinite() {
                free = self.execute_first(&mut bucket, task, free);
            }
            end = end.max(self.first[place].1);
        }
        BucketForecast { end_seconds: end.max(free), ..bucket.forecast }
    }

    /// Drops the outputs of a lost worker. The next bucket that reaches a task without another copy executes it again.
    pub fn remove_worker(&mut self, worker: u32) {
        self.has_losses = true;
        self.copies.retain(|(_, holder), _| *holder != worker);
        let mut copies: Vec<((TaskId, u32), f64)> =
            self.copies.iter().map(|(copy, at)| (*copy, *at)).collect();
        copies.sort_by_key(|(copy, _)| *copy);
        for ((task, holder), at) in copies {
            let first = &mut self.first[task.0 as usize];
            if first.0 == worker {
                *first = (holder, at);
                self.copies.remove(&(task, holder));
            }
        }
        let dataflow = self.dataflow.borrow();
        for (task, first) in dataflow.tasks().zip(&mut self.first) {
            if first.0 == worker && first.1.is_finite() {
                first.1 = f64::INFINITY;
                self.open_seconds += dataflow.cost(task);
            }
        }
    }

    /// Removes lost tasks that no other task of the same instances reads again. `tasks` are in the order of levels.
    fn retain_needed(&self, tasks: &mut Vec<TaskId>) {
        let dataflow = self.dataflow.borrow();
        let all_reads: HashSet<TaskId> =
            tasks.iter().flat_map(|task| dataflow.reads(*task)).copied().collect();
        let mut needed = HashSet::new();
        for task in tasks.iter().rev() {
            let is_open = self.first[task.0 as usize].1.is_infinite();
            if is_open && (needed.contains(task) || !all_reads.contains(task)) {
                needed.insert(*task);
                needed.extend(dataflow.reads(*task));
            }
        }
        let is_open = |task: &TaskId| self.first[task.0 as usize].1.is_infinite();
        tasks.retain(|task| !is_open(task) || needed.contains(task));
    }

    /// As [`execute`](Self::execute), for a task whose output no worker has.
    fn execute_first(
        &mut self,
        bucket: &mut StartedBucket<'_, impl WorkerModel>,
        task: TaskId,
        free: f64,
    ) -> f64 {
        let at = self.execute(bucket, task, free);
        self.first[task.0 as usize] = (bucket.worker, at);
        self.open_seconds -= self.dataflow.borrow().cost(task);
        at
    }

    /// Executes a task on a worker that is free from `free` on. Returns the time when its output is present.
    fn execute(
        &mut self,
        bucket: &mut StartedBucket<'_, impl WorkerModel>,
        task: TaskId,
        mut free: f64,
    ) -> f64 {
        let dataflow = self.dataflow.clone();
        let dataflow = dataflow.borrow();
        let own = self.own_reads.get(&task).cloned();
        for read in own.as_deref().unwrap_or(dataflow.reads(task)) {
            free = self.obtain(bucket, *read, free);
        }
        let seconds = dataflow.cost(task) / bucket.workers.speed(bucket.worker);
        bucket.forecast.executed.push((task, seconds));
        free + seconds
    }

    fn present_at(&self, task: TaskId, worker: u32) -> Option<f64> {
        let (first, at) = self.first[task.0 as usize];
        match first == worker && at.is_finite() {
            true => Some(at),
            false => self.copies.get(&(task, worker)).copied(),
        }
    }

    /// Brings an output to a worker. Returns the time when it is present.
    fn obtain(&mut self, bucket: &mut StartedBucket<'_, impl WorkerModel>, task: TaskId, free: f64) -> f64 {
        if let Some(at) = self.present_at(task, bucket.worker) {
            return free.max(at);
        }
        if self.first[task.0 as usize].1.is_infinite() {
            // Lost with a worker, and needed for a task that runs again.
            return self.execute_first(bucket, task, free);
        }
        let transfer = self.transfer_seconds(bucket, task);
        let at = if self.is_recomputed(bucket, task) {
            self.forecast.recomputed_tasks += 1;
            self.forecast.recompute_seconds += self.dataflow.borrow().cost(task);
            self.execute(bucket, task, free)
        } else {
            let bytes = self.output_bytes[self.dataflow.borrow().level(task)];
            let (from, since) = self.first[task.0 as usize];
            bucket.forecast.received.push((from, bytes));
            self.forecast.transfers += 1;
            self.forecast.bytes += bytes;
            self.forecast.seconds += transfer;
            free.max(since) + transfer
        };
        self.copies.insert((task, bucket.worker), at);
        at
    }

    /// Returns the seconds to transfer the outputs of a task from the worker that executed it. Infinite if none did.
    fn transfer_seconds(&self, bucket: &StartedBucket<'_, impl WorkerModel>, task: TaskId) -> f64 {
        let (from, since) = self.first[task.0 as usize];
        let bytes = self.output_bytes[self.dataflow.borrow().level(task)];
        if since.is_finite() {
            bucket.workers.transfer_seconds(from, bucket.worker, bytes)
        } else {
            f64::INFINITY
        }
    }

    fn is_recomputed(&self, bucket: &StartedBucket<'_, impl WorkerModel>, task: TaskId) -> bool {
        let transfer = self.transfer_seconds(bucket, task);
        let own = self.dataflow.borrow().cost(task) / bucket.workers.speed(bucket.worker);
        // The task alone is a lower bound, so that most outputs need no search.
        is_recompute_cheaper(transfer, own) && {
            let again = self.recompute_seconds(bucket, task, MAX_DEPTH, &mut HashMap::new());
            is_recompute_cheaper(transfer, again)
        }
    }

    /// Returns the seconds of a task, and of obtaining the inputs that the worker lacks, each in the faster way. Infinite if a
    /// chain of more than `depth` tasks would run again.
    fn recompute_seconds(
        &self,
        bucket: &StartedBucket<'_, impl WorkerModel>,
        task: TaskId,
        depth: u32,
        known: &mut HashMap<TaskId, f64>,
    ) -> f64 {
        if let Some(seconds) = known.get(&task) {
            return *seconds;
        }
        if depth == 0 {
            return f64::INFINITY;
        }
        let dataflow = self.dataflow.borrow();
        let mut seconds = dataflow.cost(task) / bucket.workers.speed(bucket.worker);
        let own = self.own_reads.get(&task).map(Vec::as_slice);
        for read in own.unwrap_or(dataflow.reads(task)) {
            if self.present_at(*read, bucket.worker).is_none() {
                let transfer = self.transfer_seconds(bucket, *read);
                let again = self.recompute_seconds(bucket, *read, depth - 1, known);
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

    fn free(dataflow: &Dataflow) -> SharingSchedule<&Dataflow> {
        SharingSchedule::new(dataflow, vec![0; 3], TransferCost::FREE)
    }

    /// Seconds of the outputs of each task at 1 byte per second.
    fn slow(dataflow: &Dataflow, seconds: [u64; 3]) -> SharingSchedule<&Dataflow> {
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

    #[test]
    fn outputs_of_a_lost_worker_are_computed_again() {
        let dataflow = example();
        let mut schedule = slow(&dataflow, [3, 3, 3]);
        assert_eq!(schedule.open_seconds(), 13.0);
        schedule.begin(0, &[Member(0)], 0.0);
        // Receives the second output, and executes its own first and third task.
        schedule.begin(1, &[Member(1)], 10.0);
        assert_eq!(schedule.open_seconds(), 2.0);
        schedule.remove_worker(0);
        // The first and the third output are lost. The second has a copy.
        assert_eq!(schedule.open_seconds(), 5.0);
        // Nothing of the second instance is executed again: its last output is present.
        let none = schedule.begin_on(&TransferCost::FREE, 2, &[Member(1)], 20.0);
        assert_eq!((none.executed.len(), none.received.len()), (0, 0));
        let run = schedule.begin_on(&TransferCost::FREE, 2, &[Member(0)], 20.0);
        let costs: Vec<f64> = run.executed.iter().map(|(_, seconds)| *seconds).collect();
        assert_eq!((run.end_seconds, costs, run.received), (23.0, vec![1.0, 2.0], vec![(1, 3)]));
    }

    /// Two workers of speed 2, and one whose link is slow.
    struct Uneven;

    impl WorkerModel for Uneven {
        fn speed(&self, worker: u32) -> f64 {
            if worker == 2 { 1.0 } else { 2.0 }
        }

        fn transfer_seconds(&self, from: u32, to: u32, bytes: u64) -> f64 {
            bytes as f64 * if from == 2 || to == 2 { 100.0 } else { 0.5 }
        }
    }

    #[test]
    fn speeds_and_links_of_workers_count() {
        let dataflow = example();
        let mut schedule = free(&dataflow);
        schedule.output_bytes = vec![1, 1, 1];
        assert_eq!(schedule.begin_on(&Uneven, 0, &[Member(0)], 0.0).end_seconds, 4.0);
        // 0.5 s for its first task, 0.5 s for the second output, 1 s for the third task.
        assert_eq!(schedule.begin_on(&Uneven, 1, &[Member(1)], 10.0).end_seconds, 12.0);
        // Executes both inputs again in 6 s, and the third task in 2 s.
        let run = schedule.begin_on(&Uneven, 2, &[Member(2)], 20.0);
        assert_eq!((run.end_seconds, run.received.len()), (28.0, 0));
        assert_eq!(schedule.forecast().recomputed_tasks, 2);
    }
}
