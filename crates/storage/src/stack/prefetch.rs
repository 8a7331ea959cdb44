//! How regions come up before they are asked for: copied from a slower level to the fastest one, at once or by a thread
//! that does nothing else.
//!
//! What is below stays there: when the copy makes room, nothing has to be written. What was brought and has not been asked
//! for is limited, since it takes the room of what was. What will be asked for is not known here.

use super::stats::count;
use super::{LevelId, RetentionValue, TierStack};
use crate::TierError;
use crate::stack::index::RegionMeta;
use pleach_regions::RegionKey;
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::{io, thread};

/// Regions that may wait to be brought; what comes after them is not taken. Of one bucket there are some tens.
const MAX_WAITING: usize = 1024;

impl TierStack {
    /// Copies a region from a slower level to the fastest one, which makes room for it by its policy, and says whether it
    /// has. It has not where the region is there already or nowhere, and where more than `most_bytes` would have been
    /// brought that nobody has asked for since. To have it again from where it was takes `seconds`.
    ///
    /// # Errors
    /// [`TierError`] when it cannot be read, or there is no room.
    pub fn promote(&self, key: RegionKey, seconds: f64, most_bytes: u64) -> Result<bool, TierError> {
        if self.books().contains(0, key) {
            return Ok(false);
        }
        // Nothing is claimed while it is read: others that want it need not wait for a slow level.
        let Some((region, LevelId(from))) = self.get(key)? else { return Ok(false) };
        let _claim = self.claim(key, None);
        // It may have come, or been removed, meanwhile; nobody here removes it from now on.
        if from == 0 || self.books().contains(0, key) || !self.levels[from].tier.contains(key)? {
            return Ok(false);
        }
        let bytes = region.bytes();
        if !self.books().begin_ahead(0, key, bytes, most_bytes) {
            return Ok(false);
        }
        self.books().update_meta(key, RegionMeta { bytes, seconds, durable: false });
        match self.put(0, key, &region) {
            Ok(_) => {
                count(&self.counted[0].prefetched);
                Ok(true)
            }
            Err(error) => {
                self.books().end_ahead(0, key);
                Err(error)
            }
        }
    }

    /// Bytes in memory of what was brought to the fastest level and has not been asked for since.
    #[must_use]
    pub fn ahead_bytes(&self) -> u64 {
        self.books().ahead_bytes()
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
    most_bytes: u64,
    queue: Mutex<Queue>,
    changed: Condvar,
}

impl Shared {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn work(&self) {
        let mut queue = self.queue();
        while !queue.has_ended {
            let Some((key, seconds)) = queue.waiting.pop_front() else {
                queue.is_busy = false;
                self.changed.notify_all();
                queue = self.changed.wait(queue).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            queue.is_busy = true;
            drop(queue);
            // What cannot be brought is read where it is; what a level says of that, its own figures tell.
            let _ = self.stack.promote(key, seconds, self.most_bytes);
            queue = self.queue();
        }
    }
}

/// A thread that brings regions to the fastest level of a stack before they are asked for, one after the other.
#[derive(Debug)]
pub struct Prefetcher {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl Prefetcher {
    /// For a stack, of which no more than `most_bytes` are to be brought that nobody has asked for.
    ///
    /// # Errors
    /// When the system gives no thread.
    pub fn new(stack: Arc<TierStack>, most_bytes: u64) -> io::Result<Self> {
        let shared = Arc::new(Shared { stack, most_bytes, queue: Mutex::default(), changed: Condvar::new() });
        let of_thread = Arc::clone(&shared);
        let thread = thread::Builder::new().name("prefetch".into()).spawn(move || of_thread.work())?;
        Ok(Self { shared, thread: Some(thread) })
    }

    /// Has regions brought, in this order, when those are that were asked for before; to have one again takes
    /// [`RetentionValue::seconds`]. Says how many were taken: the queue is limited. What is in no level, or too much, is left out.
    pub fn prefetch(&self, regions: impl IntoIterator<Item = (RegionKey, RetentionValue)>) -> usize {
        let mut queue = self.shared.queue();
        let room = MAX_WAITING - queue.waiting.len();
        let before = queue.waiting.len();
        queue.waiting.extend(regions.into_iter().take(room).map(|(key, worth)| (key, worth.seconds)));
        let taken = queue.waiting.len() - before;
        queue.is_busy |= taken > 0;
        self.shared.changed.notify_all();
        taken
    }

    /// Waits until nothing is to be brought any more.
    pub fn settle(&self) {
        let mut queue = self.shared.queue();
        while queue.is_busy {
            queue = self.shared.changed.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl Drop for Prefetcher {
    /// Waits for the region that is being brought; those that wait are not.
    fn drop(&mut self) {
        self.shared.queue().has_ended = true;
        self.shared.changed.notify_all();
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has nothing more to do.
            let _ = thread.join();
        }
    }
}
