//! Prefetching: copies regions from a slower level to the fastest one before they are read, at once or on a dedicated
//! thread.
//!
//! The slower copy stays, so evicting the prefetched one needs no write. Prefetched bytes that have not been read are
//! limited, since they displace regions in use. The caller predicts the reads.

use super::stats::count;
use super::{LevelId, RetentionValue, TierStack};
use crate::TierError;
use crate::stack::index::RegionMeta;
use parking_lot::{Condvar, Mutex};
use pleach_regions::RegionKey;
use std::collections::VecDeque;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::{io, thread};

/// Maximum queue length in regions. Further regions are refused. One bucket needs a few tens.
const MAX_WAITING: usize = 1024;

impl TierStack {
    /// Copies a region from a slower level to the fastest one, which evicts by its policy. Returns whether it was copied. It
    /// is not copied if it is already there, is in no level, or unread prefetched bytes would exceed `max_bytes`.
    /// Refetching it from the slower level takes `seconds`.
    ///
    /// # Errors
    /// Returns a [`TierError`] if the region cannot be read or the fastest level has no space.
    pub fn promote(&self, key: RegionKey, seconds: f64, max_bytes: u64) -> Result<bool, TierError> {
        if self.books.lock().contains(0, key) {
            return Ok(false);
        }
        // Reads without a claim: other threads must not wait for a slow level.
        let Some((region, LevelId(from))) = self.get(key)? else { return Ok(false) };
        let _claim = self.claim(key, None);
        // The region may have been promoted or removed meanwhile. The claim prevents a removal from here on.
        if from == 0 || self.books.lock().contains(0, key) || !self.levels[from].tier.contains(key)? {
            return Ok(false);
        }
        let bytes = region.bytes();
        // Counted before the insertion, so that concurrent promotions cannot exceed the limit together.
        if !self.books.lock().begin_prefetch(0, key, bytes, max_bytes) {
            return Ok(false);
        }
        self.books.lock().update_meta(key, RegionMeta { bytes, seconds, durable: false });
        match self.insert_in(0, key, &region) {
            Ok(_) => {
                count(&self.counted[0].prefetched);
                Ok(true)
            }
            Err(error) => {
                self.books.lock().end_prefetch(0, key);
                Err(error)
            }
        }
    }

    /// Returns the bytes in memory of prefetched regions that have not been read yet.
    #[must_use]
    pub fn prefetched_bytes(&self) -> u64 {
        self.books.lock().prefetched_bytes()
    }
}

#[derive(Debug, Default)]
struct Queue {
    waiting: VecDeque<(RegionKey, f64)>,
    is_busy: bool,
    has_ended: bool,
}

#[derive(Debug)]
struct Shared {
    stack: Arc<TierStack>,
    max_bytes: u64,
    queue: Mutex<Queue>,
    changed: Condvar,
}

impl Shared {
    fn work(&self) {
        let mut queue = self.queue.lock();
        while !queue.has_ended {
            let Some((key, seconds)) = queue.waiting.pop_front() else {
                queue.is_busy = false;
                // Wakes `settle`, which waits on the same condition variable.
                self.changed.notify_all();
                self.changed.wait(&mut queue);
                continue;
            };
            queue.is_busy = true;
            // Releases the queue lock first: callers must not wait for the promotion.
            drop(queue);
            // A region that cannot be prefetched is read where it is. The level's error counters record the failure.
            let _ = self.stack.promote(key, seconds, self.max_bytes);
            queue = self.queue.lock();
        }
    }
}

/// Thread that prefetches regions to the fastest level of a stack, one at a time.
#[derive(Debug)]
pub struct Prefetcher {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl Prefetcher {
    /// Creates a prefetcher for a stack, with at most `max_bytes` of unread prefetched regions.
    ///
    /// # Errors
    /// Returns an error if the system refuses a thread.
    pub fn new(stack: Arc<TierStack>, max_bytes: u64) -> io::Result<Self> {
        let shared = Arc::new(Shared { stack, max_bytes, queue: Mutex::default(), changed: Condvar::new() });
        let of_thread = Arc::clone(&shared);
        let thread = thread::Builder::new().name("prefetch".into()).spawn(move || of_thread.work())?;
        Ok(Self { shared, thread: Some(thread) })
    }

    /// Queues regions in this order, behind earlier requests. Refetching one takes [`RetentionValue::seconds`]. Returns how
    /// many were queued, since the queue is limited. Regions in no level or beyond the byte limit are skipped later.
    pub fn prefetch(&self, regions: impl IntoIterator<Item = (RegionKey, RetentionValue)>) -> usize {
        let mut queue = self.shared.queue.lock();
        let before = queue.waiting.len();
        assert!(before <= MAX_WAITING, "{before} regions wait for a prefetch, {MAX_WAITING} may");
        assert!(before == 0 || queue.is_busy, "{before} regions wait for a prefetch, and the thread is idle");
        let room = MAX_WAITING - before;
        queue.waiting.extend(regions.into_iter().take(room).map(|(key, worth)| (key, worth.seconds)));
        let taken = queue.waiting.len() - before;
        // Set here and not by the thread: `settle` must not return before the thread wakes.
        queue.is_busy |= taken > 0;
        self.shared.changed.notify_all();
        taken
    }

    /// Waits until the queue is empty and no promotion is in progress.
    pub fn settle(&self) {
        let mut queue = self.shared.queue.lock();
        while queue.is_busy {
            self.shared.changed.wait(&mut queue);
        }
    }
}

impl Drop for Prefetcher {
    /// Waits for the region in progress. Queued regions are discarded.
    fn drop(&mut self) {
        self.shared.queue.lock().has_ended = true;
        self.shared.changed.notify_all();
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has nothing left to do.
            let _ = thread.join();
        }
    }
}
