//! Requests to the manager: buckets for idle slots, and one bucket of a later stage.

use super::{Effect, Held, Rank, Worker};

impl Worker {
    /// Requests as many buckets as slots stay idle, whatever their number of tasks: a bucket that cannot use
    /// its share waits on the worker instead of at the manager. Returns whether it sent a request.
    ///
    /// Also requests one bucket of a later stage, since it releases memory. Its stage must be later than those
    /// of the unstarted buckets, or without any, than the earliest stage present: buckets should not be
    /// hoarded.
    pub(super) fn request(&mut self) -> bool {
        if self.draining {
            return false;
        }
        let before = self.effects.len();
        let places = self.free.len() + self.window as usize;
        let spoken_for = self.spoken_for();
        let idle = places.saturating_sub(spoken_for) as u32;
        // Requests a quarter of the window at a time, as long as the slots have work.
        let worth = if spoken_for + (self.asked as usize) < self.free.len() { 1 } else { self.window / 4 };
        if idle >= self.asked + worth.max(1) {
            self.effects.push_back(Effect::Request { buckets: idle - self.asked, after: None });
            self.asked = idle;
        }
        let Some(earliest) = self.leases.last_key_value().map(|(rank, _)| rank.0.0) else {
            return self.effects.len() > before;
        };
        let waits = |(rank, held): (&Rank, &Held)| (!held.is_under_way()).then_some(rank.0.0);
        let after = self.leases.iter().filter_map(waits).max().unwrap_or(earliest);
        if after < self.last_stage && self.asked_after.is_none_or(|asked| after < asked) {
            self.asked_after = Some(after);
            self.effects.push_back(Effect::Request { buckets: 1, after: Some(after) });
        }
        self.effects.len() > before
    }

    /// Counts buckets with a reserved slot: those without a demand yet, since otherwise every event before it would request
    /// one more, and those that wait for memory.
    fn spoken_for(&self) -> usize {
        let waits = |held: &&Held| held.demand.is_none_or(|demand| demand.ready > 0 && !demand.started);
        self.leases.values().filter(waits).count()
    }
}
