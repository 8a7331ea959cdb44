//! Transfer or recompute: decides which task outputs of a dataflow graph buckets transfer, and which they
//! compute again.
//!
//! An output is transferred if moving it costs a bucket less than computing it again, including every task
//! that must be computed (or transferred) first. Each task is judged independently, inputs first.
//! Predecessors shared by several recomputed tasks get no credit, but a bucket that is faster with computing
//! everything receives no transfer. The prediction takes costs and bytes as given. The runtime decides the
//! holders and lifetimes of outputs.

use std::collections::BTreeSet;

use serde::Serialize;

use crate::buckets::Buckets;
use crate::cost::dataflow::{Dataflow, TaskId};
use crate::merge_problem::Member;

/// Cost of moving an output between buckets.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TransferCost {
    /// Bytes per second, above 0. Infinite if outputs need no transfer.
    pub bytes_per_second: f64,
    /// Latency per output in seconds, independent of its size.
    pub latency_seconds: f64,
}

impl TransferCost {
    /// Returns the seconds to transfer `bytes`.
    pub fn seconds(&self, bytes: u64) -> f64 {
        self.latency_seconds + bytes as f64 / self.bytes_per_second
    }
}

/// Transferred outputs and the resulting work of the buckets.
#[derive(Debug, Clone)]
pub struct TransferPlan<'a> {
    dataflow: &'a Dataflow,
    /// The bucket that computes a task first, by task.
    owners: Vec<u32>,
    /// Whether a task's output is transferred to the other buckets that need it, by task.
    transferred: Vec<bool>,
    /// Transfer time by level.
    seconds: Vec<f64>,
}

/// Work of one bucket under a transfer plan.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct BucketWork {
    /// Seconds of executed tasks.
    pub compute_seconds: f64,
    /// Seconds of receiving outputs.
    pub receive_seconds: f64,
    /// Number of executed tasks.
    pub tasks: usize,
    /// Tasks whose outputs the bucket receives, ascending.
    pub received: Vec<TaskId>,
}

/// Transfer plan as jobs: first those with transferred outputs, then the buckets.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TransferJobs {
    /// Seconds of each job, computing and receiving.
    pub seconds: Vec<f64>,
    /// Pairs of a job and a job that waits for it.
    pub edges: Vec<(u32, u32)>,
    /// Total number of executed tasks.
    pub tasks: usize,
    /// Total seconds of executed tasks.
    pub compute_seconds: f64,
}

impl TransferJobs {
    fn push(&mut self, work: &BucketWork, job_of: &[u32]) {
        let job = self.seconds.len() as u32;
        self.edges.extend(work.received.iter().map(|task| (job_of[task.0 as usize], job)));
        self.seconds.push(work.seconds());
        self.tasks += work.tasks;
        self.compute_seconds += work.compute_seconds;
    }
}

/// Summary of a transfer plan.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct TransferSummary {
    /// Tasks that several buckets need.
    pub shared_tasks: usize,
    /// Shared tasks with at least one transfer.
    pub transferred_tasks: usize,
    /// Number of transfers.
    pub transfers: usize,
    /// Total number of executed tasks.
    pub tasks: usize,
    /// Total seconds of executed tasks.
    pub compute_seconds: f64,
    /// Seconds of transferred outputs.
    pub transfer_seconds: f64,
}

impl<'a> TransferPlan<'a> {
    /// Decides on each task. The problem's costs are seconds, and `output_bytes` has one entry per level.
    ///
    /// # Panics
    /// If `output_bytes` has fewer entries than the problem has levels.
    pub fn decide(
        dataflow: &'a Dataflow,
        buckets: &Buckets,
        output_bytes: &[u64],
        link: TransferCost,
    ) -> Self {
        let mut owners = vec![u32::MAX; dataflow.len()];
        for (bucket, members) in (0..).zip(buckets.iter()) {
            for task in members.iter().flat_map(|member| dataflow.row(*member)) {
                let owner = &mut owners[task.0 as usize];
                *owner = bucket.min(*owner);
            }
        }
        let levels = dataflow.tasks_per_level().len();
        let seconds = output_bytes[..levels].iter().map(|bytes| link.seconds(*bytes)).collect();
        let mut plan = Self { dataflow, owners, transferred: vec![false; dataflow.len()], seconds };
        let needed = dataflow.buckets_per_task(buckets);
        // Inputs have smaller numbers, so `recompute_seconds` sees their decisions.
        for task in dataflow.tasks().filter(|task| needed[task.0 as usize] > 1) {
            plan.transferred[task.0 as usize] = plan.move_seconds(task) < plan.recompute_seconds(task);
        }
        plan
    }

    /// Returns whether transferring a task's output is cheaper than recomputing it.
    pub fn is_transferred(&self, task: TaskId) -> bool {
        self.transferred[task.0 as usize]
    }

    /// Returns the first bucket that needs a task. It always computes the task.
    pub fn owner(&self, task: TaskId) -> u32 {
        self.owners[task.0 as usize]
    }

    /// Returns the seconds to transfer a task's output.
    pub fn move_seconds(&self, task: TaskId) -> f64 {
        self.seconds[self.dataflow.level(task)]
    }

    /// Returns the seconds that another bucket without any inputs takes to recompute a task.
    pub fn recompute_seconds(&self, task: TaskId) -> f64 {
        let before: Vec<TaskId> = self.dataflow.reads(task).to_vec();
        self.dataflow.cost(task) + self.get(before, |_| false).seconds()
    }

    /// Returns the work of each bucket, in order.
    pub fn work(&self, buckets: &Buckets) -> Vec<BucketWork> {
        let work = |(bucket, members): (u32, &[Member])| {
            // The bucket computes all tasks that it owns. Of the other tasks it needs only the inputs of its
            // own tasks, and the last tasks of its instances.
            let tasks: BTreeSet<TaskId> =
                members.iter().flat_map(|member| self.dataflow.row(*member)).copied().collect();
            let read: BTreeSet<TaskId> =
                tasks.iter().flat_map(|task| self.dataflow.reads(*task)).copied().collect();
            let (own, others): (Vec<TaskId>, Vec<TaskId>) =
                tasks.iter().copied().partition(|task| self.owner(*task) == bucket);
            let mut wanted: Vec<TaskId> = others.into_iter().filter(|task| !read.contains(task)).collect();
            wanted.extend(own.iter().flat_map(|task| self.dataflow.reads(*task)));
            let mut work = self.get(wanted, |task| self.owner(task) == bucket);
            work.tasks += own.len();
            work.compute_seconds += own.iter().map(|task| self.dataflow.cost(*task)).sum::<f64>();
            let alone = tasks.iter().map(|task| self.dataflow.cost(*task)).sum();
            // Decisions per task ignore shared predecessors, so the plan may be slower than computing everything.
            if work.seconds() > alone {
                work = BucketWork { compute_seconds: alone, tasks: tasks.len(), ..BucketWork::default() };
            }
            work
        };
        (0..).zip(buckets.iter()).map(work).collect()
    }

    /// Splits the work into smaller jobs: every task with a transferred output becomes its own job, and every
    /// bucket that needs it, the first included, waits for it. This transfers more outputs, but no worker waits for
    /// a whole bucket.
    pub fn pieces(&self, buckets: &Buckets) -> TransferJobs {
        let mut job_of = vec![u32::MAX; self.dataflow.len()];
        let mut pieces = TransferJobs::default();
        for task in self.dataflow.tasks().filter(|task| self.is_transferred(*task)) {
            job_of[task.0 as usize] = pieces.seconds.len() as u32;
            let mut work = self.get(self.dataflow.reads(task).to_vec(), |_| false);
            work.compute_seconds += self.dataflow.cost(task);
            work.tasks += 1;
            pieces.push(&work, &job_of);
        }
        for members in buckets.iter() {
            let tasks: BTreeSet<TaskId> =
                members.iter().flat_map(|member| self.dataflow.row(*member)).copied().collect();
            let read: BTreeSet<TaskId> =
                tasks.iter().flat_map(|task| self.dataflow.reads(*task)).copied().collect();
            pieces.push(&self.get(tasks.difference(&read).copied().collect(), |_| false), &job_of);
        }
        pieces
    }

    /// Computes the work to obtain `wanted`, recomputed or transferred, given the present outputs.
    fn get(&self, mut wanted: Vec<TaskId>, is_there: impl Fn(TaskId) -> bool) -> BucketWork {
        let mut work = BucketWork::default();
        let mut seen = BTreeSet::new();
        while let Some(task) = wanted.pop() {
            if is_there(task) || !seen.insert(task) {
                continue;
            }
            if self.is_transferred(task) {
                work.receive_seconds += self.move_seconds(task);
                work.received.push(task);
            } else {
                work.compute_seconds += self.dataflow.cost(task);
                work.tasks += 1;
                wanted.extend(self.dataflow.reads(task));
            }
        }
        work.received.sort_unstable();
        work
    }

    /// Summarizes all buckets.
    pub fn figures(&self, buckets: &Buckets) -> TransferSummary {
        let work = self.work(buckets);
        let needed = self.dataflow.buckets_per_task(buckets);
        TransferSummary {
            shared_tasks: needed.iter().filter(|buckets| **buckets > 1).count(),
            transferred_tasks: work.iter().flat_map(|bucket| &bucket.received).collect::<BTreeSet<_>>().len(),
            transfers: work.iter().map(|bucket| bucket.received.len()).sum(),
            tasks: work.iter().map(|bucket| bucket.tasks).sum(),
            compute_seconds: work.iter().map(|bucket| bucket.compute_seconds).sum(),
            transfer_seconds: work.iter().map(|bucket| bucket.receive_seconds).sum(),
        }
    }
}

impl BucketWork {
    /// Seconds of computing and receiving.
    pub fn seconds(&self) -> f64 {
        self.compute_seconds + self.receive_seconds
    }
}
