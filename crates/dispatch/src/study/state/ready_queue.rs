//! Queue of the buckets that can be granted.
//!
//! Invariants: a bucket is queued at most once, either for any worker or, if it is isolated, for an otherwise empty
//! one. The study queues a bucket exactly while it has open instances and all of them are ready.

use super::positions::Span;
use super::ready_runs::ReadyRuns;
use crate::{BucketId, WorkerId};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::time::Duration;

/// Later stages first, since they release the outputs of earlier ones. Then the plan's order: the position of the first
/// instance, if buckets have positions, and the bucket.
pub(crate) type Rank = (Reverse<usize>, u32, BucketId);

/// Ready buckets in the order of grants.
#[derive(Debug, Default)]
pub(crate) struct ReadyQueue {
    /// Buckets for any worker.
    ready: BTreeSet<Rank>,
    /// Buckets for otherwise empty workers.
    isolated: BTreeSet<Rank>,
    /// Isolated buckets that were queued since the last call of [`overdue`](Self::overdue), which has the time.
    unseen: BTreeSet<Rank>,
    /// Time when each other isolated bucket was first seen ready.
    since: BTreeMap<Rank, Duration>,
    /// The same, by stage and time: a lost worker may leave thousands of suspects.
    waiting: BTreeSet<(Reverse<usize>, Duration, Rank)>,
    /// Rank of each queued bucket, which depends on its open instances when it was queued.
    ranks: BTreeMap<BucketId, Rank>,
    /// Runs of the buckets for any worker.
    runs: ReadyRuns,
    /// Buckets for any worker that workers have begun and returned, by their predicted paths, and the path of each.
    begun: BTreeSet<(Reverse<Duration>, Rank)>,
    paths: BTreeMap<BucketId, Duration>,
}

impl ReadyQueue {
    /// Queues a bucket of a stage, with its positions if it has any. Returns false if it was queued already.
    pub(crate) fn queue(
        &mut self,
        bucket: BucketId,
        stage: usize,
        span: Option<Span>,
        is_isolated: bool,
        begun: Option<Duration>,
    ) -> bool {
        let rank = (Reverse(stage), span.map_or(0, |span| span.start), bucket);
        if self.ranks.contains_key(&bucket) {
            assert!(self.isolated.contains(&self.ranks[&bucket]) == is_isolated, "{bucket} is queued twice");
            return false;
        }
        self.ranks.insert(bucket, rank);
        if is_isolated {
            self.unseen.insert(rank);
            return self.isolated.insert(rank);
        }
        if let Some(path) = begun {
            self.begun.insert((Reverse(path), rank));
            self.paths.insert(bucket, path);
        }
        span.into_iter().for_each(|span| self.runs.insert(rank, span));
        self.ready.insert(rank)
    }

    /// Removes a bucket from the queue. Returns whether it was queued.
    pub(crate) fn unqueue(&mut self, bucket: BucketId) -> bool {
        let Some(rank) = self.ranks.remove(&bucket) else { return false };
        if self.isolated.remove(&rank) {
            let was_unseen = self.unseen.remove(&rank);
            let since = self.since.remove(&rank);
            assert!(was_unseen != since.is_some(), "{bucket} waits for an empty worker since {since:?}");
            since.into_iter().for_each(|since| _ = self.waiting.remove(&(rank.0, since, rank)));
        } else {
            self.runs.remove(rank);
            if let Some(path) = self.paths.remove(&bucket) {
                self.begun.remove(&(Reverse(path), rank));
            }
            let was_ready = self.ready.remove(&rank);
            assert!(was_ready, "{bucket} has a rank, and is not queued");
        }
        true
    }

    pub(crate) fn contains(&self, bucket: BucketId) -> bool {
        self.ranks.contains_key(&bucket)
    }

    /// Returns whether a bucket is queued for otherwise empty workers.
    pub(crate) fn contains_isolated(&self, bucket: BucketId) -> bool {
        self.ranks.get(&bucket).is_some_and(|rank| self.isolated.contains(rank))
    }

    /// Returns the runs of the buckets for any worker.
    pub(crate) fn runs(&self) -> &ReadyRuns {
        &self.runs
    }

    /// Returns the runs, to record grants, and workers that leave.
    pub(crate) fn runs_mut(&mut self) -> &mut ReadyRuns {
        &mut self.runs
    }

    /// Returns a worker's next bucket of a stage by its place. See [`ReadyRuns::next`].
    pub(crate) fn next_of_run(
        &self,
        worker: WorkerId,
        stage: usize,
        idle: usize,
    ) -> Option<(BucketId, bool)> {
        self.runs.next(worker, stage, idle)
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
        first_of(&self.ready, None, after, runs)
    }

    /// Returns the begun bucket with the longest path, of the stages of [`first`](Self::first).
    pub(crate) fn longest_begun(&self, after: Option<usize>, runs: &[bool]) -> Option<BucketId> {
        let suits = |stage: usize| {
            after.is_none_or(|after| stage > after) && runs.get(stage).copied().unwrap_or(true)
        };
        self.begun.iter().map(|(_, rank)| rank).find(|rank| suits(rank.0.0)).map(|rank| rank.2)
    }

    /// As [`first`](Self::first), of a stage before `stage`.
    pub(crate) fn first_before(&self, stage: usize, after: Option<usize>, runs: &[bool]) -> Option<BucketId> {
        first_of(&self.ready, Some(stage), after, runs)
    }

    /// Returns all buckets for any worker, of the stages of [`first`](Self::first), in order.
    pub(crate) fn all(&self, after: Option<usize>, runs: &[bool]) -> impl Iterator<Item = BucketId> {
        let suits = move |(Reverse(stage), ..): &&Rank| {
            after.is_none_or(|after| *stage > after) && runs.get(*stage).copied().unwrap_or(true)
        };
        self.ready.iter().filter(suits).map(|(.., bucket)| *bucket)
    }

    /// As [`first`](Self::first), among the buckets for otherwise empty workers.
    pub(crate) fn first_isolated(&self, after: Option<usize>, runs: &[bool]) -> Option<BucketId> {
        first_of(&self.isolated, None, after, runs)
    }

    /// Returns a bucket for any worker and the ones of its stage after it, in order.
    pub(crate) fn stage_from(&self, bucket: BucketId) -> impl Iterator<Item = BucketId> {
        let rank = self.ranks.get(&bucket).copied();
        debug_assert!(
            rank.is_some_and(|rank| self.ready.contains(&rank)),
            "{bucket} is not queued for any worker"
        );
        let of_stage = move |rank: Rank| {
            self.ready
                .range(rank..)
                .take_while(move |(stage, ..)| *stage == rank.0)
                .map(|(.., bucket)| *bucket)
        };
        rank.into_iter().flat_map(of_stage)
    }

    /// Returns the stages of isolated buckets that have been ready for longer than the timeout of their stage, in order: once
    /// for each bucket, but at most `most` times for each stage.
    pub(crate) fn overdue(
        &mut self,
        now: Duration,
        most: usize,
        timeout: impl Fn(usize) -> Duration,
    ) -> Vec<usize> {
        for rank in std::mem::take(&mut self.unseen) {
            self.since.insert(rank, now);
            self.waiting.insert((rank.0, now, rank));
        }
        let (waiting, isolated) = (self.waiting.len(), self.isolated.len());
        assert!(waiting == isolated, "{waiting} of {isolated} isolated buckets wait");
        let mut stages = Vec::new();
        let mut next = self.waiting.first();
        while let Some(&(Reverse(stage), ..)) = next {
            let timeout = timeout(stage);
            let is_overdue = |(of, since, _): &&(Reverse<usize>, Duration, Rank)| {
                *of == Reverse(stage) && now.saturating_sub(*since) > timeout
            };
            let first = (Reverse(stage), Duration::ZERO, (Reverse(usize::MAX), 0, BucketId(0)));
            let overdue = self.waiting.range(first..).take_while(is_overdue).take(most);
            stages.extend(overdue.map(|_| stage));
            let last = (Reverse(stage), Duration::MAX, (Reverse(0), u32::MAX, BucketId(u32::MAX)));
            next = self.waiting.range((Bound::Excluded(last), Bound::Unbounded)).next();
        }
        stages
    }
}

/// Returns the first bucket that meets the constraints, of a stage before `before` if given. Skips an unsuitable stage at
/// once, whatever its number of buckets.
fn first_of(
    queue: &BTreeSet<Rank>,
    before: Option<usize>,
    after: Option<usize>,
    runs: &[bool],
) -> Option<BucketId> {
    let beyond = |stage: usize| {
        let rest = (Bound::Excluded((Reverse(stage), u32::MAX, BucketId(u32::MAX))), Bound::Unbounded);
        queue.range(rest).next()
    };
    let mut next = before.map_or_else(|| queue.first(), beyond);
    while let Some(&(Reverse(stage), _, bucket)) = next {
        // Stages descend in the queue, so no further bucket qualifies.
        if after.is_some_and(|after| stage <= after) {
            return None;
        }
        if runs.get(stage).copied().unwrap_or(true) {
            return Some(bucket);
        }
        next = beyond(stage);
    }
    None
}
