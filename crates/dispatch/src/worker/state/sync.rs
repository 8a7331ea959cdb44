//! Sync with the manager: a call whose answer follows all messages that the manager had sent before.
//!
//! Invariants: numbers of calls ascend and none is used twice. Only the answer to the last call counts.

/// Calls of a worker.
#[derive(Debug, Default)]
pub(crate) struct ManagerSync {
    calls: u64,
    /// The number of an unanswered call.
    pending: Option<u64>,
    /// Whether the manager has a bucket for the open request.
    rest: Rest,
}

/// Knowledge about buckets at the manager.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Rest {
    #[default]
    Unknown,
    /// A call was sent after the open request. Its answer follows the buckets that the manager had.
    Asked(u64),
    /// The manager had none.
    None,
}

impl ManagerSync {
    pub(crate) fn is_pending(&self) -> bool {
        self.pending.is_some()
    }

    /// Records a call. Returns its number. An earlier call is void then.
    pub(crate) fn call(&mut self) -> u64 {
        let pending = self.pending;
        assert!(pending.is_none_or(|call| call <= self.calls), "{pending:?} is pending, not {}", self.calls);
        self.calls += 1;
        self.pending = Some(self.calls);
        self.calls
    }

    /// Records a call that asks whether the manager has a bucket for the open request. Returns its number. `None` if the answer
    /// is known or pending.
    pub(crate) fn ask_for_rest(&mut self) -> Option<u64> {
        if self.rest != Rest::Unknown {
            return None;
        }
        self.calls += 1;
        self.rest = Rest::Asked(self.calls);
        Some(self.calls)
    }

    /// Returns whether the manager has answered that it has no bucket.
    pub(crate) fn has_no_rest(&self) -> bool {
        self.rest == Rest::None
    }

    /// Records a bucket: the manager may have more.
    pub(crate) fn clear_rest(&mut self) {
        self.rest = Rest::Unknown;
    }

    /// Records an answer. Returns whether it belongs to the call of [`ask_for_rest`](Self::ask_for_rest).
    pub(crate) fn record_rest(&mut self, call: u64) -> bool {
        let is_answer = self.rest == Rest::Asked(call);
        if is_answer {
            self.rest = Rest::None;
        }
        is_answer
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
