//! Queue of workers that wait for a bucket, in the order of their requests.

use crate::WorkerId;
use std::collections::{BTreeMap, VecDeque};

/// Waiting workers. Each worker is in `any` at most once, and behind one stage at most.
#[derive(Debug, Default)]
pub(super) struct Queue {
    any: VecDeque<WorkerId>,
    /// By the stage that buckets must come after.
    after: BTreeMap<usize, VecDeque<WorkerId>>,
}

impl Queue {
    pub(super) fn push(&mut self, worker: WorkerId) {
        debug_assert!(!self.any.contains(&worker), "{worker} waits for any bucket twice");
        self.any.push_back(worker);
    }

    pub(super) fn push_after(&mut self, worker: WorkerId, stage: usize) {
        debug_assert!(
            !self.after.values().flatten().any(|queued| *queued == worker),
            "{worker} waits for a bucket after two stages"
        );
        self.after.entry(stage).or_default().push_back(worker);
    }

    /// Returns the workers that take any bucket.
    pub(super) fn any(&self) -> impl DoubleEndedIterator<Item = WorkerId> {
        self.any.iter().copied()
    }

    /// Counts the workers that take any bucket.
    pub(super) fn waiting(&self) -> usize {
        self.any.len()
    }

    /// Returns whether a worker takes any bucket.
    pub(super) fn has(&self, worker: WorkerId) -> bool {
        self.any.contains(&worker)
    }

    /// Returns the workers that take a bucket after some stage, with the stage.
    pub(super) fn later(&self) -> impl Iterator<Item = (WorkerId, usize)> {
        self.after.iter().flat_map(|(&stage, queued)| queued.iter().map(move |worker| (*worker, stage)))
    }

    /// Removes a worker that has got a bucket for its request for any stage.
    pub(super) fn take(&mut self, worker: WorkerId) {
        if self.any.front() == Some(&worker) {
            self.any.pop_front();
        } else {
            self.any.retain(|&queued| queued != worker);
        }
    }

    pub(super) fn remove(&mut self, worker: WorkerId) {
        self.take(worker);
        self.leave_after(worker);
    }

    /// Removes a request for a later stage. A request for any stage stays.
    pub(super) fn leave_after(&mut self, worker: WorkerId) {
        self.after.values_mut().for_each(|queued| queued.retain(|&queued| queued != worker));
        self.after.retain(|_, queued| !queued.is_empty());
    }

    /// Returns the number of entries of a worker for any bucket, and for one after a stage.
    pub(super) fn count(&self, worker: WorkerId) -> (usize, usize) {
        let of = |queued: &VecDeque<WorkerId>| queued.iter().filter(|&&queued| queued == worker).count();
        (of(&self.any), self.after.values().map(of).sum())
    }
}
