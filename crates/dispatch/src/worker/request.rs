//! Requests to the manager: buckets for idle slots, and one bucket of a later stage.

use super::{Effect, Worker};

impl Worker {
    /// Requests as many buckets as slots stay idle, whatever their number of tasks: a bucket that cannot use
    /// its share waits on the worker instead of at the manager. Returns whether it sent a request.
    ///
    /// Also requests one bucket of a later stage, since it releases memory. Its stage must be later than those
    /// of the unstarted buckets, or without any, than the earliest stage present: buckets should not be
    /// hoarded.
    pub(super) fn request(&mut self) -> bool {
        if self.requests.is_draining() {
            return false;
        }
        let before = self.effects.len();
        let request = match self.slots.by_kind().accelerators {
            0 => self.requests.request(self.slots.free(), self.buckets.with_reserved_slot()),
            _ => self.requests.request_choice(self.slots.free(), self.missing_buckets()),
        };
        if let Some(buckets) = request {
            self.effects.push_back(Effect::Request { buckets, after: None });
        }
        let Some(earliest) = self.buckets.earliest_stage() else {
            return self.effects.len() > before;
        };
        let after = self.buckets.latest_unstarted_stage().unwrap_or(earliest);
        if after < self.studies.last_stage() && self.requests.request_after(after) {
            self.effects.push_back(Effect::Request { buckets: 1, after: Some(after) });
        }
        self.effects.len() > before
    }
}
