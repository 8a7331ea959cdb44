//! Which ready task memory admits (RMSR, paper 003, by bytes instead of equal paths).
//!
//! What runs one task at a time in order of rank, later stages first, needs least: the study's `least_bytes` are enough
//! for it (see [`rehearsal`](crate::dry_run)). Everything beyond that is admitted only when this order could still be
//! gone back to at any time:
//!
//! 1. *It fits.* What is held, what running tasks have reserved and what the task itself takes are within the budget.
//! 2. *All can finish.* When the running tasks are done, the buckets under way can be brought to their end one after the
//!    other, in order of rank, and what their instances leave in storage can be read and let go of: paths that hold a
//!    part of what they need cannot wait for each other for ever.
//! 3. *The rest can follow.* A bucket that will leave regions behind is begun only when `least_bytes` stay free beside
//!    what will be in storage then: regions made ahead of their readers cannot shut out others.
//!
//! Where there is room below memory, what no bucket under way reads is not in the way: rules 2 and 3 do not count it, as far
//! as there is room, and rule 1 has it moved first.
//!
//! Rules 2 and 3 foresee, and foresee the worst. Where nothing runs and they refuse even the task whose turn it is, it
//! runs by rule 1 alone, once the manager has said that nothing is on its way that would come before it.

use super::{Held, Rank, Worker};
use crate::LeaseId;
use crate::memory_model::BucketDemand;

/// What the next task takes, with the inputs that it brings if it is the bucket's first.
pub(super) fn takes(demand: &BucketDemand) -> u64 {
    let brings = if demand.started { 0 } else { demand.load_bytes };
    demand.next_bytes.saturating_add(brings)
}

/// What is to be done for the stage whose turn it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Admission {
    /// Its next task runs.
    Runs(LeaseId),
    /// It would if storage let go of so many bytes.
    Needs { lease: LeaseId, bytes: u64 },
}

impl Worker {
    /// The first ready stage in order of rank that all rules admit. A stage under way that is refused is not overtaken:
    /// what others take would keep it waiting. One not begun is: it holds nothing yet.
    pub(super) fn admitted(&self) -> Option<Admission> {
        let makes_room = self.below.is_asked;
        for (rank, demand) in self.ready() {
            let (lease, excess) = (rank.2, self.excess(&demand));
            // What a bucket reads that begins now may be what is leaving memory.
            let may = demand.started || !makes_room;
            let movable_bytes = if makes_room { 0 } else { self.movable_for(&demand) };
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

    /// What is done by rule 1 alone: in order of rank, `first`, which is the first ready stage, or else one under way runs if
    /// it fits, or room can be made for it. If there is none, what room there is is made for `first`, and it runs beyond
    /// the budget.
    pub(super) fn admit_in_order(&self, first: LeaseId) -> Admission {
        let fits = |(rank, demand): (Rank, BucketDemand)| {
            let (lease, bytes) = (rank.2, self.excess(&demand));
            let is_possible =
                (demand.started || lease == first) && (bytes == 0 || bytes <= self.movable_for(&demand));
            is_possible.then_some(if bytes == 0 {
                Admission::Runs(lease)
            } else {
                Admission::Needs { lease, bytes }
            })
        };
        self.ready().find_map(fits).unwrap_or_else(|| {
            let demand = self.rank_of.get(&first).and_then(|rank| self.leases.get(rank)?.demand);
            match demand.map_or(0, |demand| self.movable_for(&demand)) {
                0 => Admission::Runs(first),
                bytes => Admission::Needs { lease: first, bytes },
            }
        })
    }

    /// The stages that have something to run, in order of rank, but for what would not be finished in time.
    fn ready(&self) -> impl Iterator<Item = (Rank, BucketDemand)> {
        let is_ready = |demand: &BucketDemand| demand.next.is_some() && self.in_time(demand);
        let ready = move |(&rank, held): (&Rank, &Held)| Some((rank, held.demand.filter(is_ready)?));
        self.leases.iter().filter_map(ready)
    }

    /// The first stage that has something to run, admitted or not.
    pub(super) fn first_ready(&self) -> Option<LeaseId> {
        self.ready().next().map(|(rank, _)| rank.2)
    }

    /// What the tasks that run may take.
    #[must_use]
    pub fn reserved_bytes(&self) -> u64 {
        self.running.values().fold(0, |sum, (_, bytes)| sum.saturating_add(*bytes))
    }

    /// What storage and buckets hold. What a task has written is said by its stage as its slot falls free, so there is no
    /// moment at which neither this nor what is reserved counts it.
    pub(super) fn held_bytes(&self) -> u64 {
        let demands = self.leases.values().filter_map(|held| held.demand);
        demands.fold(self.stored_bytes.saturating_add(self.coming_bytes), |sum, demand| {
            sum.saturating_add(demand.held_bytes)
        })
    }

    /// By how much the next task does not fit.
    fn excess(&self, demand: &BucketDemand) -> u64 {
        let taken = self.held_bytes().saturating_add(self.reserved_bytes());
        taken.saturating_add(takes(demand)).saturating_sub(self.budget.bytes)
    }

    fn movable_for(&self, demand: &BucketDemand) -> u64 {
        let is_in_vain = self.below.in_vain == Some(self.stored_bytes);
        if is_in_vain { 0 } else { self.below.movable_for(demand) }
    }

    /// Buckets of which something has been started, and `candidate`, in order of rank.
    fn under_way_with(&self, candidate: Rank) -> impl Iterator<Item = (Rank, BucketDemand)> {
        self.leases.iter().filter_map(move |(&rank, held)| {
            let demand = held.demand.filter(|demand| demand.started || rank == candidate)?;
            Some((rank, demand))
        })
    }

    /// Rule 2, with one more task of `candidate`.
    fn can_all_finish(&self, candidate: Rank, next: &BucketDemand) -> bool {
        // What a bucket adds when its running tasks are done, and what it needs then.
        let buckets = || {
            self.under_way_with(candidate).map(|(rank, demand)| {
                let forecast = if rank == candidate { demand.then } else { demand.now };
                let with_load = |bytes: u64| bytes.saturating_add(demand.load_bytes);
                (demand, with_load(forecast.growth_bytes), with_load(forecast.finish_bytes))
            })
        };
        let moved = self.movable_for(next);
        let mut free = self.below.free_after(moved);
        let kept = self.held_bytes().saturating_sub(moved);
        let mut total = buckets().fold(kept, |sum, (_, growth, _)| sum.saturating_add(growth));
        for (demand, growth, finish) in buckets() {
            // Its own growth is part of what it needs to finish.
            let others = total.saturating_sub(growth);
            if others.saturating_add(finish) > self.budget.bytes {
                return false;
            }
            // At its end it has let go of what it held, but not of the inputs it brought nor of what has to wait.
            let stays = demand.load_bytes.saturating_add(demand.stay_bytes);
            let goes = stays.min(free);
            free -= goes;
            total = others.saturating_sub(demand.held_bytes).saturating_add(stays - goes);
        }
        true
    }

    /// Rule 3. What the buckets under way leave is one instance's outputs each, where others need not wait: the rest has
    /// been read by then. What they read stays as long as they do; what they leave may go below.
    fn leaves_room(&self, candidate: Rank, demand: &BucketDemand) -> bool {
        if demand.started || demand.load_bytes + demand.store_bytes == 0 {
            return true;
        }
        let moved = self.movable_for(demand);
        let (mut read, mut left) = (self.stored_bytes.saturating_sub(moved), 0_u64);
        for (_, bucket) in self.under_way_with(candidate) {
            read = read.saturating_add(bucket.load_bytes);
            left = left.saturating_add(bucket.store_bytes.max(bucket.stay_bytes));
        }
        let stays = left.saturating_sub(self.below.free_after(moved));
        read.saturating_add(stays).saturating_add(self.budget.least_bytes) <= self.budget.bytes
    }
}
