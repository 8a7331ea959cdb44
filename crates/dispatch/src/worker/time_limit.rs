//! Time limit of a worker: the end of its job, of its reservation, or of a notice to leave.
//!
//! Started tasks finish by then, as far as predictions hold: a task that leads to no finished instance in the remaining time
//! is not granted, and instances that cannot be finished are returned at once, so that other workers have time for them. The
//! stage predicts the time of a task. The shell drains the worker.

use super::{Effect, Worker};
use crate::memory_model::BucketDemand;
use crate::message::GrantReason;
use std::time::Duration;

/// Time of the last event, and the time limit of this worker, on the shell's clock. Time does not go back, and the
/// limit only becomes earlier.
#[derive(Debug, Default)]
pub(super) struct Clock {
    now: Duration,
    end: Option<Duration>,
}

impl Clock {
    /// Returns the time of the last event.
    pub(super) fn now(&self) -> Duration {
        self.now
    }
}

impl Worker {
    /// Sets the time limit, on the shell's clock. Of several limits the first applies.
    pub fn handle_end(&mut self, end: Duration) {
        self.clock.end = Some(self.clock.end.map_or(end, |known| known.min(end)));
        self.balance();
    }

    /// Sets the current time, on the shell's clock. Call it before each other event.
    pub fn handle_time(&mut self, now: Duration) {
        self.clock.now = self.clock.now.max(now);
    }

    /// Handles the passage of time without another event. Call it periodically.
    pub fn handle_tick(&mut self, now: Duration) {
        self.handle_time(now);
        if self.tail.tick() {
            self.requests.record_grant(GrantReason::Request);
            self.balance();
        }
        if self.clock.end.is_some() {
            // Stages that were asked to return instances and have not answered are asked again.
            self.buckets.clear_returns();
            self.balance();
        }
    }

    /// Returns whether the next task is predicted to lead to a finished instance before the time limit.
    pub(super) fn in_time(&self, demand: &BucketDemand) -> bool {
        self.clock.end.is_none_or(|end| self.clock.now.saturating_add(demand.next_time) <= end)
    }

    /// Requests the return of instances that are too late to start. Asks each stage once, until one of its
    /// tasks ends or time passes.
    pub(super) fn return_late(&mut self) {
        let (now, Some(end)) = (self.clock.now, self.clock.end) else { return };
        let is_late =
            |demand: &BucketDemand| demand.next.is_some() && now.saturating_add(demand.next_time) > end;
        let late = self.buckets.request_returns(is_late);
        self.effects.extend(late.into_iter().map(|lease| Effect::HandBack { lease }));
    }
}
