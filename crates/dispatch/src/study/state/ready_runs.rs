//! Runs of ready buckets: buckets of one tile whose instances follow each other, with none granted in between.
//!
//! A worker that continues where it stopped finds the tasks of neighboring buckets in its result cache. Its frontier is
//! the position after its last bucket, and the run that begins there is taken: other workers start elsewhere as long as
//! they can. A tile's home is the worker that began the tile, in this plan or in the round before.
//!
//! Invariants: each queued bucket with a span is in one run. The buckets of a run are neighbors in the queue, and each
//! begins where the one before ends. Each run is in every index once, under its present class. All operations take
//! logarithmic time, except for changes of homes, which take time for each run of the tile.

use super::positions::Span;
use super::ready_queue::Rank;
use crate::{BucketId, WorkerId};
use std::cmp::Reverse;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound::{Excluded, Unbounded};

/// Claim of a worker to a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Class {
    /// No worker has begun the tile.
    Free,
    /// No worker is about to continue with it. This one has begun the tile.
    Home(WorkerId),
    /// A worker continues with its first bucket.
    Taken,
}

#[derive(Clone, Copy, Debug)]
struct Run {
    last: Rank,
    tile: u32,
    /// Number of positions.
    length: u32,
    class: Class,
}

impl Run {
    /// Returns the positions that a further worker can expect of it: half, if a worker is at its beginning.
    fn share(&self) -> u32 {
        if self.class == Class::Taken { self.length / 2 } else { self.length }
    }
}

/// Position after the last bucket of a worker.
#[derive(Clone, Copy, Debug)]
struct Frontier {
    tile: u32,
    next: u32,
}

/// Runs of the ready buckets, the frontiers of workers and the homes of tiles.
#[derive(Debug, Default)]
pub(crate) struct ReadyRuns {
    /// Queued buckets with their spans.
    spans: BTreeMap<Rank, Span>,
    /// Runs, by their first bucket.
    runs: BTreeMap<Rank, Run>,
    by_class: BTreeSet<(Reverse<usize>, Class, Reverse<u32>, Rank)>,
    by_share: BTreeSet<(Reverse<usize>, Reverse<u32>, Rank)>,
    by_tile: BTreeSet<(u32, Rank)>,
    frontiers: BTreeMap<(WorkerId, usize), Frontier>,
    /// Workers by stage, tile and frontier.
    owners: BTreeSet<(usize, u32, u32, WorkerId)>,
    homes: BTreeMap<u32, WorkerId>,
}

/// Lowest rank of a stage from a position on.
fn at(stage: usize, position: u32) -> Rank {
    (Reverse(stage), position, BucketId(0))
}

impl ReadyRuns {
    /// Adds a queued bucket, and joins it with its neighbors.
    pub(crate) fn insert(&mut self, rank: Rank, span: Span) {
        let around = self.runs.range(..rank).next_back().map(|(first, run)| (*first, run.last));
        if let Some((first, last)) = around.filter(|(_, last)| *last > rank) {
            // A bucket of scattered instances begins within a run. Runs are neighbors in the queue, so this one ends.
            self.take(first);
            self.put(first, self.before(rank).unwrap_or(first));
            self.put(self.after(rank).unwrap_or(last), last);
        }
        let before = self.before(rank).filter(|before| follows(self.spans[before], span));
        let after = self.after(rank).filter(|after| follows(span, self.spans[after]));
        self.spans.insert(rank, span);
        let mut first = rank;
        if let Some(before) = before {
            first = self.first_of(before);
            self.take(first);
        }
        let last = after.and_then(|after| self.take(after)).map_or(rank, |run| run.last);
        self.put(first, last);
    }

    /// Removes a bucket. Its run ends before it, and another begins after it.
    pub(crate) fn remove(&mut self, rank: Rank) -> Option<Span> {
        let span = *self.spans.get(&rank)?;
        let first = self.first_of(rank);
        let last = self.take(first).map_or(rank, |run| run.last);
        let (before, after) = (self.before(rank), self.after(rank));
        self.spans.remove(&rank);
        if let Some(before) = before.filter(|_| first < rank) {
            self.put(first, before);
        }
        if let Some(after) = after.filter(|_| rank < last) {
            self.put(after, last);
        }
        Some(span)
    }

    /// Records that a worker has got a bucket.
    pub(crate) fn begin(&mut self, worker: WorkerId, span: Span) {
        self.leave(worker, span.stage);
        let frontier = Frontier { tile: span.tile, next: span.end + 1 };
        self.frontiers.insert((worker, span.stage), frontier);
        self.owners.insert((span.stage, span.tile, frontier.next, worker));
        self.classify_at(span.stage, frontier.next);
        self.begin_tile(worker, span.tile);
    }

    /// Makes a worker the home of a tile that has none.
    pub(crate) fn begin_tile(&mut self, worker: WorkerId, tile: u32) {
        if let Entry::Vacant(entry) = self.homes.entry(tile) {
            entry.insert(worker);
            self.classify_tile(tile);
        }
    }

    /// Returns the worker that began a tile.
    pub(crate) fn home(&self, tile: u32) -> Option<WorkerId> {
        self.homes.get(&tile).copied()
    }

    /// Returns the homes of tiles.
    pub(crate) fn homes(&self) -> impl Iterator<Item = (u32, WorkerId)> {
        self.homes.iter().map(|(tile, worker)| (*tile, *worker))
    }

    /// Forgets a worker that has left.
    pub(crate) fn remove_worker(&mut self, worker: WorkerId) {
        let stages: Vec<usize> =
            self.frontiers.range((worker, 0)..=(worker, usize::MAX)).map(|((_, stage), _)| *stage).collect();
        stages.into_iter().for_each(|stage| self.leave(worker, stage));
        let tiles: Vec<u32> =
            self.homes.iter().filter(|(_, home)| **home == worker).map(|(tile, _)| *tile).collect();
        for tile in tiles {
            self.homes.remove(&tile);
            self.classify_tile(tile);
        }
    }

    /// Returns a worker's next bucket of a stage, and whether another worker has begun its tile: the one after its last, the first of the longest run of its tiles, or
    /// of a tile that no worker has begun. Otherwise it takes a part of the run with the largest share: with `idle`
    /// workers to be served, this one included, the last of `idle` + 1 equal parts.
    pub(crate) fn next(&self, worker: WorkerId, stage: usize, idle: usize) -> Option<(BucketId, bool)> {
        let adjacent = || {
            let frontier = self.frontiers.get(&(worker, stage))?;
            let (rank, span) = self.spans.range(at(stage, frontier.next)..).next()?;
            let is_next = (span.stage, span.tile, span.start) == (stage, frontier.tile, frontier.next);
            is_next.then_some(*rank)
        };
        let longest = |class: Class| {
            let from = (Reverse(stage), class, Reverse(u32::MAX), at(usize::MAX, 0));
            let found = self.by_class.range(from..).next();
            found.filter(|found| (found.0.0, found.1) == (stage, class)).map(|found| found.3)
        };
        let stolen = || {
            let found =
                self.by_share.range((Reverse(stage), Reverse(u32::MAX), at(usize::MAX, 0))..).next()?;
            let first = Some(found.2).filter(|_| found.0.0 == stage)?;
            let run = self.runs.get(&first)?;
            if run.class != Class::Taken {
                return Some(first);
            }
            let idle = idle.max(1) as u64;
            let part = first.1 + (u64::from(run.length) * idle / (idle + 1)) as u32;
            let target = self.spans.range(..=(first.0, part, BucketId(u32::MAX))).next_back()?;
            // The worker at the beginning of the run is about to request its first bucket.
            let is_first = *target.0 == first && run.last != first;
            if is_first { self.after(first) } else { Some(*target.0) }
        };
        let found = adjacent().or_else(|| longest(Class::Home(worker))).or_else(|| longest(Class::Free));
        match found {
            Some(rank) => Some((rank.2, false)),
            None => stolen().map(|rank| (rank.2, true)),
        }
    }

    /// Removes a worker's frontier in a stage.
    fn leave(&mut self, worker: WorkerId, stage: usize) {
        let Some(frontier) = self.frontiers.remove(&(worker, stage)) else { return };
        self.owners.remove(&(stage, frontier.tile, frontier.next, worker));
        self.classify_at(stage, frontier.next);
    }

    fn before(&self, rank: Rank) -> Option<Rank> {
        self.spans.range(..rank).next_back().map(|(before, _)| *before)
    }

    fn after(&self, rank: Rank) -> Option<Rank> {
        self.spans.range((Excluded(rank), Unbounded)).next().map(|(after, _)| *after)
    }

    /// Returns the first bucket of a bucket's run.
    fn first_of(&self, rank: Rank) -> Rank {
        self.runs.range(..=rank).next_back().map_or(rank, |(first, _)| *first)
    }

    fn class(&self, first: Rank, tile: u32) -> Class {
        let place = |worker| (first.0.0, tile, first.1, worker);
        // Several workers stop at one place if a bucket returns and is granted again.
        let mut owners = self.owners.range(place(WorkerId(0))..=place(WorkerId(u32::MAX)));
        match (owners.next(), self.homes.get(&tile)) {
            (Some(_), _) => Class::Taken,
            (None, Some(home)) => Class::Home(*home),
            (None, None) => Class::Free,
        }
    }

    fn put(&mut self, first: Rank, last: Rank) {
        let (tile, end) = (self.spans[&first].tile, self.spans[&last].end);
        let run = Run { last, tile, length: end - first.1 + 1, class: self.class(first, tile) };
        self.by_class.insert((first.0, run.class, Reverse(run.length), first));
        self.by_share.insert((first.0, Reverse(run.share()), first));
        self.by_tile.insert((tile, first));
        let before = self.runs.insert(first, run);
        assert!(before.is_none(), "a run begins with {first:?} twice, before as {before:?}");
    }

    fn take(&mut self, first: Rank) -> Option<Run> {
        let run = self.runs.remove(&first)?;
        let was_known = self.by_class.remove(&(first.0, run.class, Reverse(run.length), first))
            && self.by_share.remove(&(first.0, Reverse(run.share()), first))
            && self.by_tile.remove(&(run.tile, first));
        assert!(was_known, "{run:?} from {first:?} is not in all indexes");
        Some(run)
    }

    fn classify(&mut self, first: Rank) {
        if let Some(run) = self.take(first) {
            self.put(first, run.last);
        }
    }

    fn classify_at(&mut self, stage: usize, position: u32) {
        let run = self.runs.range(at(stage, position)..).next().map(|(first, _)| *first);
        if let Some(first) = run.filter(|first| (first.0.0, first.1) == (stage, position)) {
            self.classify(first);
        }
    }

    fn classify_tile(&mut self, tile: u32) {
        let runs = self.by_tile.range((tile, at(usize::MAX, 0))..).take_while(|(of, _)| *of == tile);
        let runs: Vec<Rank> = runs.map(|(_, first)| *first).collect();
        runs.into_iter().for_each(|first| self.classify(first));
    }

    /// Compares runs and indexes with the spans.
    pub(crate) fn check(&self) -> Result<(), String> {
        let mut covered = 0;
        for (first, run) in &self.runs {
            let members: Vec<(&Rank, &Span)> = self.spans.range(*first..=run.last).collect();
            let joined = members.windows(2).all(|pair| follows(*pair[0].1, *pair[1].1));
            if members.last().map(|last| *last.0) != Some(run.last) || !joined {
                return Err(format!("{run:?} from {first:?} has {members:?}"));
            }
            if run.class != self.class(*first, run.tile) {
                return Err(format!("{run:?} from {first:?} is {:?}", self.class(*first, run.tile)));
            }
            covered += members.len();
        }
        let sizes = [self.by_class.len(), self.by_share.len(), self.by_tile.len()];
        if covered == self.spans.len() && sizes == [self.runs.len(); 3] {
            Ok(())
        } else {
            Err(format!(
                "{covered} of {} buckets are in {} runs, {sizes:?}",
                self.spans.len(),
                self.runs.len()
            ))
        }
    }
}

/// Returns whether a bucket begins where another bucket of its tile ends.
fn follows(before: Span, after: Span) -> bool {
    (before.stage, before.tile, before.end.checked_add(1)) == (after.stage, after.tile, Some(after.start))
}

#[cfg(test)]
mod tests;
