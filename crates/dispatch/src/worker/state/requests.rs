//! Open requests to the manager: one for idle slots, and one for a bucket of a later stage.
//!
//! Invariants: at most one request of each kind is open. A draining worker sends none.

use crate::message::GrantReason;

/// Requests that the manager has not answered.
#[derive(Debug, Default)]
pub(crate) struct Requests {
    /// Buckets of any stage that were requested and have not arrived.
    requested: u32,
    /// A bucket of a later stage than this was requested and has not arrived.
    requested_after: Option<u32>,
    /// Buckets requested beyond the idle slots: their inputs are prefetched while others compute.
    window: u32,
    /// No further requests are sent.
    draining: bool,
}

impl Requests {
    pub(crate) fn set_window(&mut self, window: u32) {
        self.window = window;
    }

    pub(crate) fn drain(&mut self) {
        self.draining = true;
    }

    pub(crate) fn is_draining(&self) -> bool {
        self.draining
    }

    /// Forgets the open requests: the manager has not received them, or their answers are lost.
    pub(crate) fn reset(&mut self) {
        (self.requested, self.requested_after) = (0, None);
    }

    /// Records a bucket, which may answer a request.
    pub(crate) fn record_grant(&mut self, reason: GrantReason) {
        match reason {
            // Saturates: a bucket from before `reset` may still arrive.
            GrantReason::Request => self.requested = self.requested.saturating_sub(1),
            GrantReason::LaterRequest => self.requested_after = None,
            GrantReason::Short => {}
        }
    }

    /// Records a query, whose answer is a bucket or a refusal.
    pub(crate) fn record_query(&mut self) {
        self.requested += 1;
    }

    /// Records a request for idle slots. Returns the number of buckets to request. `None` if too few slots are idle
    /// for one.
    pub(crate) fn request(&mut self, free: usize, spoken_for: usize) -> Option<u32> {
        assert!(!self.draining, "a draining worker requests buckets for {free} slots");
        let idle = (free + self.window as usize).saturating_sub(spoken_for) as u32;
        // Requests a quarter of the window at a time, as long as the slots have work.
        let worth = if spoken_for + (self.requested as usize) < free { 1 } else { self.window / 4 };
        (idle >= self.requested + worth.max(1)).then(|| idle - std::mem::replace(&mut self.requested, idle))
    }

    /// Returns the buckets requested beyond the idle slots.
    pub(crate) fn window(&self) -> u32 {
        self.window
    }

    /// Returns whether a request for buckets of any stage is open.
    pub(crate) fn is_open(&self) -> bool {
        self.requested > 0
    }

    /// Records a request of a worker with accelerators, which lacks `missing` buckets. Returns the number of buckets to
    /// request. `None` if too few are missing for one.
    pub(crate) fn request_choice(&mut self, free: usize, missing: u32) -> Option<u32> {
        assert!(!self.draining, "a draining worker requests {missing} buckets");
        // As for idle slots: a quarter of the window at a time, as long as the slots have work.
        let worth = if free > 0 { 1 } else { (self.window / 4).max(1) };
        (missing >= self.requested + worth).then(|| missing - std::mem::replace(&mut self.requested, missing))
    }

    /// Records a request for a bucket after a stage. Returns whether it is sent: it replaces one for a later stage
    /// only.
    pub(crate) fn request_after(&mut self, stage: u32) -> bool {
        assert!(!self.draining, "a draining worker requests a bucket after stage {stage}");
        let is_sent = self.requested_after.is_none_or(|asked| stage < asked);
        if is_sent {
            self.requested_after = Some(stage);
        }
        is_sent
    }
}
