//! Admission control: picks the ready task that memory admits (RMSR, paper 003, by bytes instead of equal paths).
//!
//! Running one task at a time in order of rank, later stages first, needs least memory: the study's `min_bytes` suffice
//! (see [`dry_run`](crate::dry_run)). Any further task is admitted only if the worker can return to this order at any
//! time:
//!
//! 1. *It fits.* Held bytes, bytes reserved by running tasks and the task's own bytes are within the budget, less the bytes of
//!    processes that run external operations.
//! 2. *All can finish.* When the running tasks are done, the started buckets can be finished one after the
//!    other, in order of rank, and the stored outputs of their instances can be read and released: paths that hold a
//!    part of their memory cannot deadlock.
//! 3. *The rest can follow.* A bucket that will leave regions behind is started only if `min_bytes` stay free beside
//!    the bytes in storage then: regions made ahead of their readers cannot block other buckets.
//!
//! With a spill tier, regions that no running bucket reads do not count for rules 2 and 3, as far
//! as the tier has room. Rule 1 has them spilled first.
//!
//! Rules 2 and 3 are worst-case forecasts. If nothing runs and they refuse even the first task in order, it
//! runs by rule 1 alone, after a sync with the manager has shown that no pending message precedes it.

use super::Worker;
use super::state::{BucketEntry, Rank};
use crate::LeaseId;
use crate::memory_model::BucketDemand;

/// Returns the bytes of the next task, including the inputs that it loads if it is the bucket's first.
pub(super) fn takes(demand: &BucketDemand) -> u64 {
    let brings = if demand.started { 0 } else { demand.load_bytes };
    demand.next_bytes.saturating_add(brings)
}

/// Decision for the next stage in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Admission {
    /// Its next task runs.
    Runs(LeaseId),
    /// Its next task runs once storage has freed this many bytes.
    Needs { lease: LeaseId, bytes: u64 },
}

impl Worker {
    /// Returns the first ready stage in order of rank that all rules admit. No stage overtakes a refused stage that has
    /// started, since its memory would keep that one waiting. Stages overtake one that has not: it holds nothing yet.
    pub(super) fn admitted(&self) -> Option<Admission> {
        let makes_room = self.memory.is_freeing();
        for (rank, demand) in self.by_path(self.ready()).into_iter().flatten() {
            let may = demand.started || !makes_room;
            if may
                && self.excess(&demand) == 0
                && self.can_all_finish(rank, &demand)
                && self.leaves_room(rank, &demand)
            {
                return Some(Admission::Runs(rank.2));
            }
        }
        for (rank, demand) in self.ready() {
            let (lease, excess) = (rank.2, self.excess(&demand));
            // The inputs of a bucket that starts now may be among the regions being spilled.
            let may = demand.started || !makes_room;
            let movable_bytes = if makes_room { 0 } else { self.memory.movable_for(&demand) };
            if may
                && excess <= movable_bytes
                && self.can_all_finish(rank, &demand)
                && self.leaves_room(rank, &demand)
            {
                let needs = Admission::Needs { lease, bytes: excess };
                return Some(if excess == 0 { Admission::Runs(lease) } else { needs });
            }
            if demand.started {
                return None;
            }
        }
        None
    }

    /// Admits by rule 1 alone, in order of rank: runs the first task that fits, at once or after memory is freed.
    /// Candidates are the started stages and `first`, the first ready stage. If no task fits, all spillable
    /// memory is freed for `first`, which then runs beyond the budget.
    pub(super) fn admit_in_order(&self, first: LeaseId) -> Admission {
        let fits = |(rank, demand): (Rank, BucketDemand)| {
            let (lease, bytes) = (rank.2, self.excess(&demand));
            let is_possible = (demand.started || lease == first)
                && (bytes == 0 || bytes <= self.memory.movable_for(&demand));
            is_possible.then_some(if bytes == 0 {
                Admission::Runs(lease)
            } else {
                Admission::Needs { lease, bytes }
            })
        };
        self.ready().find_map(fits).unwrap_or_else(|| {
            let demand = self.buckets.get(first).and_then(BucketEntry::demand);
            match demand.map_or(0, |demand| self.memory.movable_for(&demand)) {
                0 => Admission::Runs(first),
                bytes => Admission::Needs { lease: first, bytes },
            }
        })
    }

    /// Returns the stages with a ready task, in order of rank, except those that would not finish before the time limit.
    fn ready(&self) -> impl Iterator<Item = (Rank, BucketDemand)> {
        let is_ready = |demand: &BucketDemand| demand.next.is_some() && self.in_time(demand);
        let ready = move |(rank, held): (Rank, &BucketEntry)| Some((rank, held.demand().filter(is_ready)?));
        self.buckets.iter().filter_map(ready)
    }

    /// Returns the first stage with a ready task, admitted or not.
    pub(super) fn first_ready(&self) -> Option<LeaseId> {
        self.ready().next().map(|(rank, _)| rank.2)
    }

    /// Returns the bytes reserved by running tasks.
    #[must_use]
    pub fn reserved_bytes(&self) -> u64 {
        self.slots.reserved_bytes().saturating_add(self.downloads.reserved_bytes())
    }

    /// Returns the bytes held by storage and buckets. A stage reports the outputs of a task as its slot becomes free, so
    /// either this or the reserved bytes include them at any time.
    pub(super) fn held_bytes(&self) -> u64 {
        self.memory.region_bytes().saturating_add(self.buckets.held_bytes())
    }

    /// Returns the excess of the next task over the budget, in bytes.
    pub(super) fn excess(&self, demand: &BucketDemand) -> u64 {
        let taken = self.held_bytes().saturating_add(self.reserved_bytes());
        taken.saturating_add(takes(demand)).saturating_sub(self.memory.budget_bytes())
    }

    /// Returns the started buckets and `candidate`, in order of rank.
    fn under_way_with(&self, candidate: Rank) -> impl Iterator<Item = (Rank, BucketDemand)> {
        let unstarted = self.buckets.get(candidate.2).filter(|held| !held.is_started());
        let mut unstarted = unstarted.map(|held| (candidate, held)).into_iter().peekable();
        let mut started = self.buckets.started().peekable();
        // Merged in the order of rank.
        let next = move || match (started.peek(), unstarted.peek()) {
            (Some((rank, _)), Some(_)) if *rank > candidate => unstarted.next(),
            (None, _) => unstarted.next(),
            _ => started.next(),
        };
        std::iter::from_fn(next).filter_map(|(rank, held)| Some((rank, held.demand()?)))
    }

    /// Checks rule 2, with one more task of `candidate`.
    pub(super) fn can_all_finish(&self, candidate: Rank, next: &BucketDemand) -> bool {
        // Bytes that a bucket adds when its running tasks are done, and its maximum until its end.
        let buckets = || {
            self.under_way_with(candidate).map(|(rank, demand)| {
                let forecast = if rank == candidate { next.then } else { demand.now };
                let with_load = |bytes: u64| bytes.saturating_add(demand.load_bytes);
                (demand, with_load(forecast.growth_bytes), with_load(forecast.finish_bytes))
            })
        };
        let moved = self.memory.movable_for(next);
        let mut free = self.memory.free_after(moved);
        let kept = self.held_bytes().saturating_sub(moved);
        let mut total = buckets().fold(kept, |sum, (_, growth, _)| sum.saturating_add(growth));
        for (demand, growth, finish) in buckets() {
            // Its own growth is part of its maximum.
            let others = total.saturating_sub(growth);
            if others.saturating_add(finish) > self.memory.budget_bytes() {
                return false;
            }
            // At its end it has released its held bytes, but neither its loaded inputs nor outputs whose readers wait.
            let stays = demand.load_bytes.saturating_add(demand.stay_bytes);
            let goes = stays.min(free);
            free -= goes;
            total = others.saturating_sub(demand.held_bytes).saturating_add(stays - goes);
        }
        true
    }

    /// Checks rule 3. Each started bucket leaves one instance's outputs, unless their readers wait: the rest has
    /// been read by then. Inputs stay as long as their buckets. Outputs may spill.
    pub(super) fn leaves_room(&self, candidate: Rank, demand: &BucketDemand) -> bool {
        if demand.started || demand.load_bytes + demand.store_bytes == 0 {
            return true;
        }
        let moved = self.memory.movable_for(demand);
        let (mut read, mut left) = (self.memory.stored_bytes().saturating_sub(moved), 0_u64);
        for (_, bucket) in self.under_way_with(candidate) {
            read = read.saturating_add(bucket.load_bytes);
            left = left.saturating_add(bucket.store_bytes.max(bucket.stay_bytes));
        }
        let stays = left.saturating_sub(self.memory.free_after(moved));
        let needed = read.saturating_add(stays).saturating_add(self.memory.min_bytes());
        needed <= self.memory.budget_bytes()
    }
}
