//! What several buckets need of a dataflow graph: computed by one and handed over to the others, or computed again.
//!
//! A task's output is handed over when moving it costs a bucket less than computing it again, with all that would
//! have to be computed (or moved) before it. Each task is judged by itself, inputs first; a bucket that would
//! compute several of them could share what comes before, which is not credited, but one that is better off with
//! computing everything is handed nothing. The prediction takes costs and bytes as given. Who holds what, and when
//! it is let go, are not decided here.

use std::collections::BTreeSet;

use serde::Serialize;

use crate::buckets::Buckets;
use crate::dataflow::{Dataflow, TaskId};
use crate::merge_problem::Member;

/// What moving an output from one bucket to another costs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TransferCost {
    /// Bytes a second, more than 0; infinite where outputs need not be moved at all.
    pub bytes_per_second: f64,
    /// Seconds each output takes, whatever its size.
    pub latency_seconds: f64,
}

impl TransferCost {
    /// Seconds for so many bytes.
    pub fn seconds(&self, bytes: u64) -> f64 {
        self.latency_seconds + bytes as f64 / self.bytes_per_second
    }
}

/// Which outputs are handed over, and what buckets take then.
#[derive(Debug, Clone)]
pub struct TransferPlan<'a> {
    dataflow: &'a Dataflow,
    /// The bucket that computes a task first, by task.
    owners: Vec<u32>,
    /// Whether a task's output is handed over to the further buckets that need it, by task.
    transferred: Vec<bool>,
    /// What that costs, by level.
    seconds: Vec<f64>,
}

/// What one bucket takes when outputs are handed over.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct BucketWork {
    /// Seconds of tasks it executes.
    pub compute_seconds: f64,
    /// Seconds of outputs it is handed.
    pub receive_seconds: f64,
    /// Tasks it executes.
    pub tasks: usize,
    /// The tasks whose outputs it is handed, ascending.
    pub received: Vec<TaskId>,
}

/// A plan in jobs: those whose outputs are handed over first, then the buckets.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TransferJobs {
    /// Seconds of each job, computing and receiving.
    pub seconds: Vec<f64>,
    /// Pairs of a job and one that waits for it.
    pub edges: Vec<(u32, u32)>,
    /// Tasks executed in all.
    pub tasks: usize,
    /// Seconds of tasks executed in all.
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

/// What handing over amounts to.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct TransferSummary {
    /// Tasks that several buckets need.
    pub shared_tasks: usize,
    /// Those of them whose outputs are handed to some bucket.
    pub transferred_tasks: usize,
    /// How often an output is handed over.
    pub transfers: usize,
    /// Tasks executed in all.
    pub tasks: usize,
    /// Seconds of tasks executed.
    pub compute_seconds: f64,
    /// Seconds of outputs handed over.
    pub transfer_seconds: f64,
}

impl<'a> TransferPlan<'a> {
    /// Decides for each task. Costs of the problem are seconds here; `output_bytes` has one entry per level.
    ///
    /// # Panics
    /// When `output_bytes` has fewer entries than the problem has levels.
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
        for task in dataflow.tasks().filter(|task| needed[task.0 as usize] > 1) {
            plan.transferred[task.0 as usize] = plan.move_seconds(task) < plan.recompute_seconds(task);
        }
        plan
    }

    /// Whether moving a task's output is cheaper than computing it again.
    pub fn is_handed_over(&self, task: TaskId) -> bool {
        self.transferred[task.0 as usize]
    }

    /// The first bucket that needs a task: it computes it in any case.
    pub fn owner(&self, task: TaskId) -> u32 {
        self.owners[task.0 as usize]
    }

    /// What handing over a task's output costs.
    pub fn move_seconds(&self, task: TaskId) -> f64 {
        self.seconds[self.dataflow.level(task)]
    }

    /// What a further bucket that has nothing yet takes to compute a task again.
    pub fn recompute_seconds(&self, task: TaskId) -> f64 {
        let before: Vec<TaskId> = self.dataflow.reads(task).to_vec();
        self.dataflow.cost(task) + self.get(before, |_| false).seconds()
    }

    /// What each bucket takes, in order.
    pub fn work(&self, buckets: &Buckets) -> Vec<BucketWork> {
        let work = |(bucket, members): (u32, &[Member])| {
            // What nobody had before is computed here; of the rest, what that reads, and what instances end with.
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
            if work.seconds() > alone {
                work = BucketWork { compute_seconds: alone, tasks: tasks.len(), ..BucketWork::default() };
            }
            work
        };
        (0..).zip(buckets.iter()).map(work).collect()
    }

    /// The same work in smaller pieces: every task whose output is handed over is a job of its own, and all buckets
    /// that need it wait for it, the first of them as well. More is moved that way, but no worker waits for a whole
    /// bucket to be over.
    pub fn pieces(&self, buckets: &Buckets) -> TransferJobs {
        let mut job_of = vec![u32::MAX; self.dataflow.len()];
        let mut pieces = TransferJobs::default();
        for task in self.dataflow.tasks().filter(|task| self.is_handed_over(*task)) {
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

    /// What it takes to have some outputs, computed again or handed over, given which are there.
    fn get(&self, mut wanted: Vec<TaskId>, is_there: impl Fn(TaskId) -> bool) -> BucketWork {
        let mut work = BucketWork::default();
        let mut seen = BTreeSet::new();
        while let Some(task) = wanted.pop() {
            if is_there(task) || !seen.insert(task) {
                continue;
            }
            if self.is_handed_over(task) {
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

    /// The figures over all buckets.
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
