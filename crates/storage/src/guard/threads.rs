//! Threads for calls that may never return.

use parking_lot::{Condvar, Mutex};
use std::collections::VecDeque;
use std::sync::Arc;
use std::thread::Builder;
use std::time::Duration;

/// 64 threads at once: more than the calls of a worker's cores and connections, and the stacks of hung ones take 128 MiB of address
/// space.
const MAX_THREADS: usize = 64;

/// 10 s until an idle thread ends.
const IDLE: Duration = Duration::from_secs(10);

/// A call.
type Job = Box<dyn FnOnce() + Send>;

#[derive(Default)]
struct Queue {
    jobs: VecDeque<Job>,
    idle: usize,
    threads: usize,
}

/// Threads that run calls. A call that hangs keeps its thread.
#[derive(Default)]
pub(super) struct Threads {
    queue: Mutex<Queue>,
    wake: Condvar,
}

/// Counts a thread until it ends, also by a panic.
struct Counted(Arc<Threads>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.queue.lock().threads -= 1;
    }
}

impl Threads {
    /// Runs a call on an idle thread or a new one. Returns false if none can be had: it is dropped.
    pub(super) fn run(self: &Arc<Self>, job: Job) -> bool {
        let mut queue = self.queue.lock();
        // An idle thread that has been woken still counts, and so does its job.
        if queue.idle <= queue.jobs.len() {
            if queue.threads >= MAX_THREADS {
                return false;
            }
            queue.threads += 1;
            let counted = Counted(Arc::clone(self));
            drop(queue);
            // Without a thread, `counted` is dropped.
            let started = Builder::new().name("tier".to_owned()).spawn(move || counted.0.serve());
            if started.is_err() {
                return false;
            }
            queue = self.queue.lock();
        }
        queue.jobs.push_back(job);
        self.wake.notify_one();
        true
    }

    fn serve(&self) {
        let mut queue = self.queue.lock();
        loop {
            if let Some(job) = queue.jobs.pop_front() {
                drop(queue);
                job();
                queue = self.queue.lock();
                continue;
            }
            queue.idle += 1;
            let waited = self.wake.wait_for(&mut queue, IDLE);
            queue.idle -= 1;
            if waited.timed_out() && queue.jobs.is_empty() {
                return;
            }
        }
    }
}
