//! Guard of a tier whose medium may hang or fail: a time limit for each call, and a circuit breaker (Nygard, Release It!, 2007).
//!
//! Each call runs on a thread of the guard (`guard/threads.rs`) and is given up after the time limit: a thread that the kernel does
//! not wake (state D) cannot be ended. A call that hangs, or [`MAX_FAILURES`] failures in a row, open the breaker
//! (`guard/breaker.rs`). Calls return [`TierError::Unavailable`] at once then. After a pause one call tries the tier again: that of a
//! caller, or a lookup by the guard itself.
//!
//! A lack of space and a lost region are answers, and no failures. Removals that an unavailable tier has missed follow when it answers
//! again.

mod breaker;
mod removals;
mod threads;

pub use breaker::Availability;

use crate::{Durability, Inserted, Tier, TierError, TierLocation};
use breaker::{Breaker, MAX_FAILURES};
use pleach_regions::{DataRegion, RegionKey};
use removals::Removals;
use std::fmt;
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::sync::{Arc, Weak};
use std::thread::{self, Builder};
use std::time::{Duration, Instant};
use threads::Threads;

/// 20 s for a call beside its bytes: a worker waits 30 s for a durable copy.
const TIME_LIMIT: Duration = Duration::from_secs(20);

/// 10 MB/s: computing a region again is faster than a slower tier.
const MIN_BYTES_PER_SECOND: u64 = 10_000_000;

/// 200 MB for a region whose size is unknown: three channels of 8192 x 8192 px.
const UNKNOWN_BYTES: u64 = 200_000_000;

/// 10 s until the first call after a failure. Each further failure doubles the pause.
const FIRST_PAUSE: Duration = Duration::from_secs(10);

/// 5 min between two calls to a tier that stays unavailable: a file system that returns is used soon enough.
const MAX_PAUSE: Duration = Duration::from_secs(300);

/// Times of a guard.
#[derive(Clone, Copy, Debug)]
pub struct GuardTimes {
    /// Maximum time of a call beside the time for its bytes.
    pub limit: Duration,
    /// Rate that gives a call its time for bytes. Positive.
    pub bytes_per_second: u64,
    /// Time from the first failure to the next call.
    pub first_pause: Duration,
    /// Maximum time between two calls while all fail.
    pub max_pause: Duration,
}

impl Default for GuardTimes {
    fn default() -> Self {
        Self {
            limit: TIME_LIMIT,
            bytes_per_second: MIN_BYTES_PER_SECOND,
            first_pause: FIRST_PAUSE,
            max_pause: MAX_PAUSE,
        }
    }
}

/// Receiver of changes.
type Listener = dyn Fn(&Availability) + Send + Sync;

/// A tier behind a time limit and a circuit breaker.
#[derive(Debug)]
pub struct GuardedTier(Arc<Guard>);

struct Guard {
    tier: Arc<dyn Tier>,
    location: TierLocation,
    limit: Duration,
    bytes_per_second: u64,
    threads: Arc<Threads>,
    breaker: Breaker,
    /// Missed removals.
    removals: Arc<Removals>,
    listener: Box<Listener>,
}

impl fmt::Debug for Guard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guard").field("tier", &self.tier).finish_non_exhaustive()
    }
}

impl GuardedTier {
    /// Guards a tier. `listener` is called when the tier becomes unavailable or available.
    #[must_use]
    pub fn new(
        tier: Arc<dyn Tier>,
        location: TierLocation,
        times: GuardTimes,
        listener: impl Fn(&Availability) + Send + Sync + 'static,
    ) -> Self {
        let GuardTimes { limit, bytes_per_second, first_pause, max_pause } = times;
        let breaker = Breaker::new(first_pause, max_pause);
        let (threads, removals) = (Arc::default(), Arc::default());
        let listener = Box::new(listener);
        Self(Arc::new(Guard {
            tier,
            location,
            limit,
            bytes_per_second,
            threads,
            breaker,
            removals,
            listener,
        }))
    }
}

impl Guard {
    /// Calls the tier, which moves up to `bytes` bytes. `undo` reverses the effect of a call whose caller has given up.
    fn call<T: Send + 'static>(
        self: &Arc<Self>,
        bytes: u64,
        call: impl FnOnce(&dyn Tier) -> Result<T, TierError> + Send + 'static,
        undo: impl FnOnce(&dyn Tier) + Send + 'static,
    ) -> Result<T, TierError> {
        self.breaker.enter(Instant::now()).map_err(|cause| self.unavailable(cause))?;
        // Rendezvous: a send fails once the caller has given up.
        let (sender, answer) = sync_channel(0);
        let tier = Arc::clone(&self.tier);
        let work = move || {
            if sender.send(call(&*tier)).is_err() {
                undo(&*tier);
            }
        };
        if !self.threads.run(Box::new(work)) {
            return Err(self.fail("all threads wait for it".to_owned(), MAX_FAILURES));
        }
        let limit = self.limit + Duration::from_secs(bytes / self.bytes_per_second);
        match answer.recv_timeout(limit) {
            Ok(Err(error)) if is_failure(&error) => {
                self.fail(error.to_string(), 1);
                Err(error)
            }
            Ok(result) => {
                if let Some(change) = self.breaker.succeed(Instant::now()) {
                    (self.listener)(&change);
                    let (tier, removals) = (Arc::clone(&self.tier), Arc::clone(&self.removals));
                    // Without a thread, they follow after the next failure.
                    let _ = self.threads.run(Box::new(move || removals.apply(&*tier)));
                }
                result
            }
            Err(RecvTimeoutError::Timeout) => {
                let cause = format!("no answer within {} s", limit.as_secs_f64());
                Err(self.fail(cause, MAX_FAILURES))
            }
            Err(RecvTimeoutError::Disconnected) => {
                Err(self.fail("a call of it panicked".to_owned(), MAX_FAILURES))
            }
        }
    }

    /// Counts failures.
    fn fail(self: &Arc<Self>, cause: String, failures: u32) -> TierError {
        if let Some(change) = self.breaker.fail(Instant::now(), &cause, failures) {
            (self.listener)(&change);
            let guard = Arc::downgrade(self);
            // Without a thread, callers try the tier.
            let _ = Builder::new().name("tier-probe".to_owned()).spawn(move || probe(&guard));
        }
        self.unavailable(cause)
    }

    fn unavailable(&self, cause: String) -> TierError {
        TierError::Unavailable { place: self.location.clone(), cause }
    }
}

/// Tries an unavailable tier after each pause, until it answers or its guard is dropped.
fn probe(guard: &Weak<Guard>) {
    loop {
        let Some(pause) = guard.upgrade().and_then(|guard| guard.breaker.pause(Instant::now())) else {
            return;
        };
        thread::park_timeout(pause);
        if let Some(guard) = guard.upgrade() {
            // No region has this key. A failure counts.
            let _ = guard.call(0, |tier| tier.contains(RegionKey([0; 16])), |_| {});
        }
    }
}

/// Returns whether an error is a failure of the medium.
fn is_failure(error: &TierError) -> bool {
    matches!(error, TierError::Io { .. } | TierError::Stopped { .. }) && !error.is_lack_of_room()
}

impl Tier for GuardedTier {
    fn insert(&self, key: RegionKey, region: &Arc<DataRegion>) -> Result<Inserted, TierError> {
        let Some(was_removed) = self.0.removals.cancel(key) else {
            return Err(self.0.unavailable("the removal of the region is under way".to_owned()));
        };
        let (region, bytes) = (Arc::clone(region), region.bytes());
        // The caller reports the region as not stored.
        let undo = move |tier: &dyn Tier| drop(tier.remove(key));
        let inserted = self.0.call(bytes, move |tier| tier.insert(key, &region), undo);
        if was_removed && inserted.is_err() {
            self.0.removals.add(key);
        }
        inserted
    }

    fn get(&self, key: RegionKey) -> Result<Option<Arc<DataRegion>>, TierError> {
        self.0.call(UNKNOWN_BYTES, move |tier| tier.get(key), |_| {})
    }

    fn remove(&self, key: RegionKey) -> Result<bool, TierError> {
        let removed = self.0.call(0, move |tier| tier.remove(key), |_| {});
        if matches!(removed, Err(TierError::Unavailable { .. })) {
            self.0.removals.add(key);
        }
        removed
    }

    fn contains(&self, key: RegionKey) -> Result<bool, TierError> {
        self.0.call(0, move |tier| tier.contains(key), |_| {})
    }

    fn list(&self) -> Result<Vec<RegionKey>, TierError> {
        self.0.call(0, |tier| tier.list(), |_| {})
    }

    fn held_bytes(&self) -> u64 {
        self.0.tier.held_bytes()
    }

    fn capacity_bytes(&self) -> u64 {
        self.0.tier.capacity_bytes()
    }

    /// Returns 0 while the tier is unavailable.
    fn free_bytes(&self) -> u64 {
        self.0.call(0, |tier| Ok(tier.free_bytes()), |_| {}).unwrap_or(0)
    }

    fn durability(&self) -> Durability {
        self.0.tier.durability()
    }

    fn is_available(&self) -> bool {
        self.0.breaker.is_closed()
    }
}
