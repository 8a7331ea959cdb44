//! Departure of a worker: its time limit, its drain, and its dismissal by the manager.
//!
//! Invariants:
//! - Phases follow in order: active, draining, dismissed. No phase is left backwards.
//! - A time limit is never removed.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Phase {
    #[default]
    Active,
    /// The worker requests nothing new and finishes its started instances.
    Draining,
    /// No other worker needs the regions of this worker.
    Dismissed,
}

/// Departure of a worker.
#[derive(Default)]
pub(crate) struct Departure {
    phase: Phase,
    /// The worker has a time limit. Shared with its stage actors, which predict durations from then on.
    has_time_limit: Arc<AtomicBool>,
}

impl Departure {
    /// Returns the flag that stage actors read.
    pub(crate) fn time_limit_flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.has_time_limit)
    }

    pub(crate) fn set_time_limit(&self) {
        // Relaxed: the flag guards no other data, and a prediction made before it is seen is only missing.
        self.has_time_limit.store(true, Ordering::Relaxed);
    }

    /// Starts the drain. Returns false if it has started before.
    pub(crate) fn start_drain(&mut self) -> bool {
        let is_first = self.phase == Phase::Active;
        if is_first {
            self.phase = Phase::Draining;
        }
        is_first
    }

    /// Dismisses the worker. The manager dismisses only draining workers: an earlier dismissal violates the protocol
    /// and is ignored, because the worker would still request work.
    pub(crate) fn dismiss(&mut self) {
        if self.phase == Phase::Draining {
            self.phase = Phase::Dismissed;
        }
    }

    pub(crate) fn is_draining(&self) -> bool {
        self.phase >= Phase::Draining
    }

    pub(crate) fn is_dismissed(&self) -> bool {
        self.phase == Phase::Dismissed
    }

    /// Returns whether a worker without work may leave. A disconnected worker cannot hand over its regions, so it does
    /// not wait for the manager.
    pub(crate) fn may_leave(&self, is_connected: bool) -> bool {
        self.is_dismissed() || (self.is_draining() && !is_connected)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phases_follow_in_order() {
        let mut departure = Departure::default();
        departure.dismiss();
        assert!(!departure.is_dismissed() && !departure.may_leave(false));
        assert!(departure.start_drain() && !departure.start_drain());
        assert!(departure.may_leave(false) && !departure.may_leave(true));
        departure.dismiss();
        assert!(departure.may_leave(true) && !departure.start_drain() && departure.is_draining());
    }
}
