//! Time limit of a worker: the end of its job, of its reservation, or of a notice to leave.
//!
//! Started tasks finish by then, as far as predictions hold: a task that leads to no finished instance in the remaining time
//! is not granted, and instances that cannot be finished are returned at once, so that other workers have time for them. The
//! stage predicts the time of a task. The shell drains the worker.

use super::{Effect, Worker};
use crate::memory_model::BucketDemand;
use std::time::Duration;

impl Worker {
    /// Sets the time limit, on the shell's clock. Of several limits the first applies.
    pub fn handle_end(&mut self, end: Duration) {
        self.end = Some(self.end.map_or(end, |known| known.min(end)));
        self.balance();
    }

    /// Sets the current time, on the shell's clock. Call it before each other event.
    pub fn handle_time(&mut self, now: Duration) {
        self.now = self.now.max(now);
    }

    /// Handles the passage of time without another event. Call it periodically.
    pub fn handle_tick(&mut self, now: Duration) {
        self.handle_time(now);
        if self.end.is_some() {
            // Stages that were asked to return instances and have not answered are asked again.
            self.leases.values_mut().for_each(|held| held.goes_back = false);
            self.balance();
        }
    }

    /// Returns whether the next task is predicted to lead to a finished instance before the time limit.
    pub(super) fn in_time(&self, demand: &BucketDemand) -> bool {
        self.end.is_none_or(|end| self.now.saturating_add(demand.next_time) <= end)
    }

    /// Requests the return of instances that are too late to start. Asks each stage once, until one of its
    /// tasks ends or time passes.
    pub(super) fn return_late(&mut self) {
        let (now, Some(end)) = (self.now, self.end) else { return };
        for (rank, held) in &mut self.leases {
            let is_late = held
                .demand
                .is_some_and(|demand| demand.next.is_some() && now.saturating_add(demand.next_time) > end);
            if is_late && !std::mem::replace(&mut held.goes_back, true) {
                self.effects.push_back(Effect::HandBack { lease: rank.2 });
            }
        }
    }
}
