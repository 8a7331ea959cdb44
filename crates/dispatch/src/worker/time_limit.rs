//! A worker that has to end at a known time: the end of its job, of its reservation, or of what was given it to leave.
//!
//! What is begun is finished by then, as far as it can be foretold: a task is not granted that leads to no finished
//! instance in the time left, and what cannot be finished any more goes back at once, so that others have time for it. What
//! a task takes is foretold by its stage; leaving in order is the shell's.

use super::{Effect, Worker};
use crate::memory_model::BucketDemand;
use std::time::Duration;

impl Worker {
    /// It has to end by then, since whatever the shell counts from; of several times the first counts.
    pub fn handle_end(&mut self, end: Duration) {
        self.end = Some(self.end.map_or(end, |known| known.min(end)));
        self.balance();
    }

    /// What time it is, since whatever the shell counts from: to be said before each other event.
    pub fn handle_time(&mut self, now: Duration) {
        self.now = self.now.max(now);
    }

    /// Time has passed, and nothing else has happened: to be said now and then.
    pub fn handle_tick(&mut self, now: Duration) {
        self.handle_time(now);
        if self.end.is_some() {
            // Whoever was asked and has not answered has had the time to.
            self.leases.values_mut().for_each(|held| held.goes_back = false);
            self.balance();
        }
    }

    /// Whether what comes next is believed to be finished by the end.
    pub(super) fn in_time(&self, demand: &BucketDemand) -> bool {
        self.end.is_none_or(|end| self.now.saturating_add(demand.next_time) <= end)
    }

    /// Has that handed back which nobody will begin here any more: asked once until something of it ends or time passes.
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
