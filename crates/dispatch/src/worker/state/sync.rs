//! Sync with the manager: a call whose answer follows all messages that the manager had sent before.
//!
//! Invariants: numbers of calls ascend and none is used twice. Only the answer to the last call counts.

/// Calls of a worker.
#[derive(Debug, Default)]
pub(crate) struct ManagerSync {
    calls: u64,
    /// The number of an unanswered call.
    pending: Option<u64>,
}

impl ManagerSync {
    pub(crate) fn is_pending(&self) -> bool {
        self.pending.is_some()
    }

    /// Records a call. Returns its number. An earlier call is void then.
    pub(crate) fn call(&mut self) -> u64 {
        let pending = self.pending;
        assert!(pending.is_none_or(|call| call == self.calls), "{pending:?} is pending, not {}", self.calls);
        self.calls += 1;
        self.pending = Some(self.calls);
        self.calls
    }

    /// Makes the pending call void.
    pub(crate) fn cancel(&mut self) {
        self.pending = None;
    }

    /// Records an answer. Returns whether it belongs to the pending call.
    pub(crate) fn record_answer(&mut self, call: u64) -> bool {
        let counts = self.pending == Some(call);
        if counts {
            self.pending = None;
        }
        counts
    }
}
