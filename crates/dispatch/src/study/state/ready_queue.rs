//! Queue of the buckets that can be granted.
//!
//! Invariants: a bucket is queued at most once, either for any worker or, if it is isolated, for an otherwise empty
//! one. The study queues a bucket exactly while it has open instances and all of them are ready.

use crate::BucketId;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::time::Duration;

/// Later stages first, since they release the outputs of earlier ones. Then the plan's order.
pub(crate) type Rank = (Reverse<usize>, BucketId);

/// Ready buckets in the order of grants.
#[derive(Debug, Default)]
pub(crate) struct ReadyQueue {
    /// Buckets for any worker.
    ready: BTreeSet<Rank>,
    /// Buckets for otherwise empty workers.
    isolated: BTreeSet<Rank>,
    /// Time when each isolated bucket was first seen ready. Updated by [`overdue`](Self::overdue) only.
    since: BTreeMap<Rank, Duration>,
}

impl ReadyQueue {
    /// Queues a bucket. Returns false if it was queued already.
    pub(crate) fn queue(&mut self, rank: Rank, is_isolated: bool) -> bool {
        let (queue, other) =
            if is_isolated { (&mut self.isolated, &self.ready) } else { (&mut self.ready, &self.isolated) };
        assert!(!other.contains(&rank), "{} is queued as isolated and as shared", rank.1);
        queue.insert(rank)
    }

    /// Removes a bucket from the queue. Returns whether it was queued.
    pub(crate) fn unqueue(&mut self, rank: Rank) -> bool {
        let was_queued = self.ready.remove(&rank) || self.isolated.remove(&rank);
        debug_assert!(!self.contains(rank), "{} was queued twice", rank.1);
        was_queued
    }

    pub(crate) fn contains(&self, rank: Rank) -> bool {
        self.ready.contains(&rank) || self.isolated.contains(&rank)
    }

    /// Returns whether a bucket is queued for otherwise empty workers.
    pub(crate) fn contains_isolated(&self, rank: Rank) -> bool {
        self.isolated.contains(&rank)
    }

    /// Counts the queued buckets.
    pub(crate) fn len(&self) -> usize {
        self.ready.len() + self.isolated.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.ready.is_empty() && self.isolated.is_empty()
    }

    /// Returns whether any bucket waits for an otherwise empty worker.
    pub(crate) fn has_isolated(&self) -> bool {
        !self.isolated.is_empty()
    }

    /// Returns the first bucket for any worker, of a stage after `after` that `runs` does not exclude.
    pub(crate) fn first(&self, after: Option<usize>, runs: &[bool]) -> Option<BucketId> {
        first_of(&self.ready, after, runs)
    }

    /// As [`first`](Self::first), among the buckets for otherwise empty workers.
    pub(crate) fn first_isolated(&self, after: Option<usize>, runs: &[bool]) -> Option<BucketId> {
        first_of(&self.isolated, after, runs)
    }

    /// Returns a bucket for any worker and the ones of its stage after it, in order.
    pub(crate) fn stage_from(&self, rank: Rank) -> impl Iterator<Item = BucketId> {
        debug_assert!(self.ready.contains(&rank), "{} is not queued for any worker", rank.1);
        let is_of_stage = move |(stage, _): &&Rank| *stage == rank.0;
        self.ready.range(rank..).take_while(is_of_stage).map(|(_, bucket)| *bucket)
    }

    /// Returns the stages of isolated buckets that have been ready for longer than the timeout of their stage, in
    /// order.
    pub(crate) fn overdue(&mut self, now: Duration, timeout: impl Fn(usize) -> Duration) -> Vec<usize> {
        // A bucket that was granted meanwhile starts a new wait when it returns.
        self.since.retain(|rank, _| self.isolated.contains(rank));
        for rank in &self.isolated {
            self.since.entry(*rank).or_insert(now);
        }
        assert!(self.since.len() == self.isolated.len(), "{:?} of {:?}", self.since, self.isolated);
        let is_overdue = |(rank, since): (&Rank, &Duration)| {
            let stage = rank.0.0;
            (now.saturating_sub(*since) > timeout(stage)).then_some(stage)
        };
        self.since.iter().filter_map(is_overdue).collect()
    }
}

/// Returns the first bucket that meets the constraints. Skips an unsuitable stage at once, whatever its number of
/// buckets.
fn first_of(queue: &BTreeSet<Rank>, after: Option<usize>, runs: &[bool]) -> Option<BucketId> {
    let mut next = queue.first();
    while let Some(&(Reverse(stage), bucket)) = next {
        // Stages descend in the queue, so no further bucket qualifies.
        if after.is_some_and(|after| stage <= after) {
            return None;
        }
        if runs.get(stage).copied().unwrap_or(true) {
            return Some(bucket);
        }
        let rest = (Bound::Excluded((Reverse(stage), BucketId(u32::MAX))), Bound::Unbounded);
        next = queue.range(rest).next();
    }
    None
}
