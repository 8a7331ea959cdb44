//! Workers that wait for work, in the order in which they asked.

use crate::WorkerId;
use std::collections::{BTreeMap, VecDeque};

/// See the module. Each worker is in `any` at most once, and behind one stage at most.
#[derive(Debug, Default)]
pub(super) struct Queue {
    any: VecDeque<WorkerId>,
    /// By the stage that buckets must come after.
    after: BTreeMap<usize, VecDeque<WorkerId>>,
}

impl Queue {
    pub(super) fn push(&mut self, worker: WorkerId) {
        self.any.push_back(worker);
    }

    pub(super) fn push_after(&mut self, worker: WorkerId, stage: usize) {
        self.after.entry(stage).or_default().push_back(worker);
    }

    /// The next worker that takes a bucket of `stage`, and whether it takes any: those with idle slots come first.
    pub(super) fn pop(&mut self, stage: usize) -> Option<(WorkerId, bool)> {
        if let Some(worker) = self.any.pop_front() {
            return Some((worker, true));
        }
        let mut first = self.after.first_entry().filter(|entry| *entry.key() < stage)?;
        let worker = first.get_mut().pop_front();
        if first.get().is_empty() {
            first.remove();
        }
        worker.map(|worker| (worker, false))
    }

    pub(super) fn remove(&mut self, worker: WorkerId) {
        self.any.retain(|&queued| queued != worker);
        self.leave_after(worker);
    }

    /// Takes back a request for a later stage; one for any stage stays.
    pub(super) fn leave_after(&mut self, worker: WorkerId) {
        self.after.values_mut().for_each(|queued| queued.retain(|&queued| queued != worker));
        self.after.retain(|_, queued| !queued.is_empty());
    }

    /// Whether some worker takes a bucket of `stage`.
    pub(super) fn is_waiting_for(&self, stage: usize) -> bool {
        !self.any.is_empty() || self.after.first_key_value().is_some_and(|(&after, _)| after < stage)
    }

    /// How often a worker waits for any bucket, and for one after a stage.
    pub(super) fn count(&self, worker: WorkerId) -> (usize, usize) {
        let of = |queued: &VecDeque<WorkerId>| queued.iter().filter(|&&queued| queued == worker).count();
        (of(&self.any), self.after.values().map(of).sum())
    }
}
