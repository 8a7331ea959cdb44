//! Event loop of the simulation: ends of jobs free workers and release children, and submitted jobs start on idle workers.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::execution::JobRecord;
use super::jobs::Jobs;
use super::locality::Locality;
use super::platform::Platform;
use crate::workflow::DataFile;

/// A time in seconds, in the order of numbers. Times of a simulation are never NaN.
#[derive(Clone, Copy, PartialEq)]
struct Time(f64);

impl Eq for Time {}

impl Ord for Time {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0)
    }
}

impl PartialOrd for Time {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

/// Jobs by time, then by number: events at the same time have one order on every machine.
type Queue = BinaryHeap<Reverse<(Time, u32)>>;

/// Simulates the execution of jobs. Returns a record for each of them.
///
/// # Panics
/// If jobs depend on each other in a cycle, or no job can run.
pub(crate) fn execute(files: &[DataFile], jobs: &Jobs, platform: &Platform, seed: u64) -> Vec<JobRecord> {
    let workers = platform.workers().get();
    // More workers than jobs stay without files: the lowest numbers are taken first.
    let mut engine = Engine {
        jobs,
        platform,
        seed,
        waits_for: jobs.parents.clone(),
        released: vec![0.0; jobs.list.len()],
        submitted: BinaryHeap::new(),
        ends: BinaryHeap::new(),
        locality: Locality::new(files, workers.min(jobs.list.len())),
        records: vec![None; jobs.list.len()],
    };
    for (job, parents) in (0..).zip(&jobs.parents) {
        if *parents == 0 {
            engine.submit(job);
        }
    }
    let mut now = 0.0;
    loop {
        engine.start(now);
        let Some(next) = engine.next() else { break };
        now = next;
        engine.finish(now);
    }
    let records: Vec<JobRecord> = engine.records.into_iter().flatten().collect();
    assert!(records.len() == jobs.list.len(), "jobs depend on each other in a cycle");
    records
}

struct Engine<'a> {
    jobs: &'a Jobs,
    platform: &'a Platform,
    seed: u64,
    /// Number of unfinished parents, by job.
    waits_for: Vec<u32>,
    /// Latest end of a finished parent with its post delay, by job.
    released: Vec<f64>,
    /// Jobs without unfinished parents, by submission. A submission may be in the future.
    submitted: Queue,
    /// Started jobs, by end.
    ends: Queue,
    locality: Locality<'a>,
    records: Vec<Option<JobRecord>>,
}

/// Names of the draws of delays.
const ENGINE: u64 = 0;
const QUEUE: u64 = 1;
const CLUSTERING: u64 = 2;
const POST: u64 = 3;

impl Engine<'_> {
    fn submit(&mut self, job: u32) {
        let index = job as usize;
        let engine = self.platform.overheads().engine;
        let engine = engine.seconds(self.seed, ENGINE, self.jobs.list[index].first);
        self.submitted.push(Reverse((Time(self.released[index] + engine), job)));
    }

    /// Starts submitted jobs on idle workers, in the order of their submission.
    fn start(&mut self, now: f64) {
        while let Some(Reverse((Time(submitted), job))) = self.submitted.peek().copied() {
            if submitted > now {
                return;
            }
            let Some(worker) = self.locality.occupy(self.jobs.reads.get(job)) else { return };
            self.submitted.pop();
            let record = self.record(job, worker, submitted, now);
            self.ends.push(Reverse((Time(record.ended), job)));
            self.records[job as usize] = Some(record);
        }
    }

    fn record(&mut self, number: u32, worker: u32, submitted: f64, started: f64) -> JobRecord {
        let job = &self.jobs.list[number as usize];
        let overheads = self.platform.overheads();
        let fetched = self.locality.fetch(worker, self.jobs.reads.get(number));
        let moved_bytes = fetched.saturating_add(job.own_bytes);
        self.locality.write(worker, self.jobs.writes.get(number));
        let queue = overheads.queue.seconds(self.seed, QUEUE, job.first);
        let transfer = moved_bytes as f64 / self.platform.bytes_per_second();
        let clustering = if job.is_clustered {
            overheads.clustering.seconds(self.seed, CLUSTERING, job.first)
        } else {
            0.0
        };
        let released = self.released[number as usize];
        let ended = started + (queue + transfer + clustering + job.seconds);
        JobRecord {
            worker,
            released,
            submitted,
            started,
            queue,
            transfer,
            clustering,
            run: job.seconds,
            ended,
            moved_bytes,
        }
    }

    /// Returns the time of the next event: an end, or a submission while a worker is idle.
    fn next(&self) -> Option<f64> {
        let time = |queue: &Queue| queue.peek().map(|Reverse((Time(time), _))| *time);
        let end = time(&self.ends);
        let submission = time(&self.submitted).filter(|_| self.locality.has_idle());
        match (end, submission) {
            (Some(end), Some(submission)) => Some(end.min(submission)),
            (end, submission) => end.or(submission),
        }
    }

    /// Ends jobs: workers are idle, and children without other unfinished parents are released.
    fn finish(&mut self, now: f64) {
        while let Some(Reverse((Time(ended), job))) = self.ends.peek().copied() {
            if ended > now {
                return;
            }
            self.ends.pop();
            if let Some(record) = &self.records[job as usize] {
                self.locality.release(record.worker);
            }
            let jobs = self.jobs;
            let post = self.platform.overheads().post;
            let release = ended + post.seconds(self.seed, POST, jobs.list[job as usize].first);
            for child in jobs.children.get(job) {
                let index = *child as usize;
                self.released[index] = self.released[index].max(release);
                self.waits_for[index] -= 1;
                if self.waits_for[index] == 0 {
                    self.submit(*child);
                }
            }
        }
    }
}
