//! Which ready task memory admits (RMSR, paper 003, by bytes instead of equal paths).
//!
//! What runs one task at a time in order of rank, later stages first, needs least: the study's `least_bytes` are enough
//! for it (see [`rehearsal`](crate::rehearsal)). Everything beyond that is admitted only when this order could still be
//! gone back to at any time:
//!
//! 1. *It fits.* What is held, what running tasks have reserved and what the task itself takes are within the budget.
//! 2. *All can finish.* When the running tasks are done, the buckets under way can be brought to their end one after the
//!    other, in order of rank, and what their instances leave in storage can be read and let go of: paths that hold a
//!    part of what they need cannot wait for each other for ever.
//! 3. *The rest can follow.* A bucket that will leave regions behind is begun only when `least_bytes` stay free beside
//!    what will be in storage then: regions made ahead of their readers cannot shut out others.
//!
//! Rules 2 and 3 foresee, and foresee the worst. Where nothing runs and they refuse even the task whose turn it is, it
//! runs by rule 1 alone, once the manager has said that nothing is on its way that would come before it.

use super::{Held, Rank, Worker};
use crate::LeaseId;
use crate::memory::Demand;

/// What the next task takes, with the inputs that it brings if it is the bucket's first.
pub(super) fn takes(demand: &Demand) -> u64 {
    let brings = if demand.started { 0 } else { demand.load_bytes };
    demand.next_bytes.saturating_add(brings)
}

impl Worker {
    /// The first ready stage in order of rank that all rules admit. A stage under way that is refused is not overtaken:
    /// what others take would keep it waiting. One not begun is: it holds nothing yet.
    pub(super) fn admitted(&self) -> Option<LeaseId> {
        for (rank, demand) in self.ready() {
            if self.fits(&demand) && self.can_all_finish(rank) && self.leaves_room(rank, &demand) {
                return Some(rank.2);
            }
            if demand.started {
                return None;
            }
        }
        None
    }

    /// The stage whose turn it is by rule 1: the first ready one, or if that does not fit, the first one under way.
    pub(super) fn whose_turn_it_is(&self) -> Option<LeaseId> {
        let (mut is_first, fits) = (true, |(_, demand): &(Rank, Demand)| self.fits(demand));
        let may = |(_, demand): &(Rank, Demand)| std::mem::take(&mut is_first) || demand.started;
        self.ready().filter(may).find(fits).map(|(rank, _)| rank.2)
    }

    /// The stages that have something to run, in order of rank, but for what would not be finished in time.
    fn ready(&self) -> impl Iterator<Item = (Rank, Demand)> {
        let is_ready = |demand: &Demand| demand.next.is_some() && self.in_time(demand);
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
        demands.fold(self.stored_bytes, |sum, demand| sum.saturating_add(demand.held_bytes))
    }

    fn fits(&self, demand: &Demand) -> bool {
        let taken = self.held_bytes().saturating_add(self.reserved_bytes());
        taken.saturating_add(takes(demand)) <= self.budget.bytes
    }

    /// Buckets of which something has been started, and `candidate`, in order of rank.
    fn under_way_with(&self, candidate: Rank) -> impl Iterator<Item = (Rank, Demand)> {
        self.leases.iter().filter_map(move |(&rank, held)| {
            let demand = held.demand.filter(|demand| demand.started || rank == candidate)?;
            Some((rank, demand))
        })
    }

    /// Rule 2, with one more task of `candidate`.
    fn can_all_finish(&self, candidate: Rank) -> bool {
        // What a bucket adds when its running tasks are done, and what it needs then.
        let buckets = || {
            self.under_way_with(candidate).map(|(rank, demand)| {
                let forecast = if rank == candidate { demand.then } else { demand.now };
                let with_load = |bytes: u64| bytes.saturating_add(demand.load_bytes);
                (demand, with_load(forecast.growth_bytes), with_load(forecast.finish_bytes))
            })
        };
        let mut total = buckets().fold(self.held_bytes(), |sum, (_, growth, _)| sum.saturating_add(growth));
        for (demand, growth, finish) in buckets() {
            // Its own growth is part of what it needs to finish.
            let others = total.saturating_sub(growth);
            if others.saturating_add(finish) > self.budget.bytes {
                return false;
            }
            // At its end it has let go of what it held, but not of the inputs it brought nor of what has to wait.
            let stays = demand.load_bytes.saturating_add(demand.stay_bytes);
            total = others.saturating_sub(demand.held_bytes).saturating_add(stays);
        }
        true
    }

    /// Rule 3. What the buckets under way leave is one instance's outputs each, where others need not wait: the rest has
    /// been read by then.
    fn leaves_room(&self, candidate: Rank, demand: &Demand) -> bool {
        if demand.started || demand.load_bytes + demand.store_bytes == 0 {
            return true;
        }
        let to_come = |sum: u64, bucket: Demand| {
            sum.saturating_add(bucket.load_bytes).saturating_add(bucket.store_bytes.max(bucket.stay_bytes))
        };
        let left = self.under_way_with(candidate).map(|(_, bucket)| bucket).fold(self.stored_bytes, to_come);
        left.saturating_add(self.budget.least_bytes) <= self.budget.bytes
    }
}
