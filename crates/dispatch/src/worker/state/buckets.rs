//! Buckets on a worker, in the order of admission.
//!
//! Invariants: each lease has one rank, which contains the lease, and each rank has one bucket. The totals are those of all
//! buckets, so that an event takes no time for each of them.

use crate::memory_model::{BucketDemand, MemoryForecast};
use crate::{BucketId, LeaseId};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// Admission order: later stages first, then the plan's order, which differs from the order of arrival.
pub(crate) type Rank = (Reverse<u32>, BucketId, LeaseId);

/// A bucket on this worker.
#[derive(Debug, Default)]
pub(crate) struct BucketEntry {
    /// Last demand of its stage, updated by later grants. `None` until the stage has sent one.
    demand: Option<BucketDemand>,
    /// Grants given to it.
    granted: u64,
    /// Its unstarted instances must be returned.
    returning: bool,
}

impl BucketEntry {
    pub(crate) fn demand(&self) -> Option<BucketDemand> {
        self.demand
    }

    /// Returns whether its stage has received all grants, so that its offers are current.
    pub(crate) fn is_current(&self) -> bool {
        self.demand.is_some_and(|demand| demand.heard >= self.granted)
    }

    /// Returns whether one of its tasks has been started.
    pub(crate) fn is_started(&self) -> bool {
        self.demand.is_some_and(|demand| demand.started)
    }

    /// Returns whether a task of it may come soon: it has no demand yet, or looks a task up.
    fn is_coming(&self) -> bool {
        self.demand.is_none_or(|demand| demand.resolving)
    }

    /// Returns whether a slot is reserved for it: it has no demand yet, waits for memory, looks a task up, or waits for another
    /// worker.
    fn has_reserved_slot(&self) -> bool {
        self.demand
            .is_none_or(|demand| demand.resolving || demand.tail.waits || demand.ready > 0 && !demand.started)
    }

    /// Updates the demand with one that its stage has sent.
    pub(crate) fn update(&mut self, demand: BucketDemand) {
        self.demand = Some(match self.demand {
            // The stage sent this demand before it received the last grant: the earlier forecast holds, less the bytes
            // that are held by now.
            Some(before) if demand.heard < self.granted => BucketDemand {
                ready: 0,
                next: None,
                next_bytes: 0,
                started: true,
                tail: demand.tail.after_grant(),
                now: MemoryForecast {
                    growth_bytes: before
                        .now
                        .growth_bytes
                        .saturating_add(before.held_bytes)
                        .saturating_sub(demand.held_bytes),
                    finish_bytes: before
                        .now
                        .finish_bytes
                        .saturating_add(before.held_bytes)
                        .saturating_sub(demand.held_bytes),
                },
                ..demand
            },
            _ => demand,
        });
    }

    /// Updates the bytes of the inputs of a bucket without a started task: those in memory and the missing ones.
    pub(crate) fn update_inputs(&mut self, here_bytes: u64, missing_bytes: u64) {
        if let Some(demand) = self.demand.as_mut().filter(|demand| !demand.started) {
            (demand.local_bytes, demand.load_bytes) = (here_bytes, missing_bytes);
        }
    }

    /// Counts a grant of the next task. The forecast for that time holds until the stage sends another demand.
    pub(crate) fn grant(&mut self, demand: BucketDemand) {
        assert!(demand.next.is_some(), "a bucket without a next task gets a slot: {demand:?}");
        self.granted += 1;
        self.demand = Some(BucketDemand {
            ready: 0,
            next: None,
            next_bytes: 0,
            started: true,
            tail: demand.tail.after_grant(),
            now: demand.then,
            ..demand
        });
    }

    /// Marks its unstarted instances as to be returned. Returns false if they are marked already.
    pub(crate) fn request_return(&mut self) -> bool {
        !std::mem::replace(&mut self.returning, true)
    }

    /// Clears the mark: its stage may be asked again.
    pub(crate) fn clear_return(&mut self) {
        self.returning = false;
    }
}

/// Totals of buckets.
#[derive(Debug, Default, PartialEq, Eq)]
struct Totals {
    /// Buckets with a started task, and the others.
    started: BTreeSet<Rank>,
    unstarted: BTreeSet<Rank>,
    /// Sum of numbers of 64 bits.
    held_bytes: u128,
    open_tasks: u64,
    without_demand: usize,
    coming: usize,
    with_reserved_slot: usize,
}

impl Totals {
    fn add(&mut self, rank: Rank, entry: &BucketEntry) {
        let ranks = if entry.is_started() { &mut self.started } else { &mut self.unstarted };
        ranks.insert(rank);
        let demand = entry.demand.unwrap_or_default();
        self.held_bytes += u128::from(demand.held_bytes);
        self.open_tasks += u64::from(demand.tail.open_tasks);
        self.without_demand += usize::from(entry.demand.is_none());
        self.coming += usize::from(entry.is_coming());
        self.with_reserved_slot += usize::from(entry.has_reserved_slot());
    }

    fn remove(&mut self, rank: Rank, entry: &BucketEntry) {
        let ranks = if entry.is_started() { &mut self.started } else { &mut self.unstarted };
        ranks.remove(&rank);
        let demand = entry.demand.unwrap_or_default();
        self.held_bytes -= u128::from(demand.held_bytes);
        self.open_tasks -= u64::from(demand.tail.open_tasks);
        self.without_demand -= usize::from(entry.demand.is_none());
        self.coming -= usize::from(entry.is_coming());
        self.with_reserved_slot -= usize::from(entry.has_reserved_slot());
    }
}

/// All buckets on this worker.
#[derive(Debug, Default)]
pub(crate) struct Buckets {
    by_rank: BTreeMap<Rank, BucketEntry>,
    rank_of: BTreeMap<LeaseId, Rank>,
    totals: Totals,
}

impl Buckets {
    /// Adds a bucket. It replaces one with the same lease, since the manager never reuses a lease.
    pub(crate) fn add(&mut self, lease: LeaseId, stage: u32, bucket: BucketId) {
        let rank = (Reverse(stage), bucket, lease);
        self.remove(lease);
        self.rank_of.insert(lease, rank);
        let entry = BucketEntry::default();
        self.totals.add(rank, &entry);
        let before = self.by_rank.insert(rank, entry);
        assert!(before.is_none(), "{lease} begins with the rank of another bucket: {before:?}");
        self.assert_counts(lease);
    }

    /// Removes the bucket of a lease, if it is still present.
    pub(crate) fn remove(&mut self, lease: LeaseId) {
        if let Some(rank) = self.rank_of.remove(&lease) {
            let held = self.by_rank.remove(&rank);
            assert!(held.is_some(), "{lease} ends, and has the rank {rank:?} of no bucket");
            held.iter().for_each(|held| self.totals.remove(rank, held));
        }
        self.assert_counts(lease);
    }

    pub(crate) fn get(&self, lease: LeaseId) -> Option<&BucketEntry> {
        self.by_rank.get(self.rank_of.get(&lease)?)
    }

    /// Changes the bucket of a lease, if it is still present.
    pub(crate) fn change<R>(
        &mut self,
        lease: LeaseId,
        change: impl FnOnce(&mut BucketEntry) -> R,
    ) -> Option<R> {
        let rank = *self.rank_of.get(&lease)?;
        let entry = self.by_rank.get_mut(&rank)?;
        self.totals.remove(rank, entry);
        let changed = change(entry);
        self.totals.add(rank, entry);
        Some(changed)
    }

    /// Returns the buckets in the order of admission.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Rank, &BucketEntry)> {
        self.by_rank.iter().map(|(rank, held)| (*rank, held))
    }

    /// Returns the buckets with a started task, in the order of admission.
    pub(crate) fn started(&self) -> impl Iterator<Item = (Rank, &BucketEntry)> {
        self.totals.started.iter().filter_map(|rank| Some((*rank, self.by_rank.get(rank)?)))
    }

    /// Marks the unstarted instances of those buckets that `is_late` selects as to be returned. Returns the leases that were not
    /// marked before.
    pub(crate) fn request_returns(&mut self, is_late: impl Fn(&BucketDemand) -> bool) -> Vec<LeaseId> {
        let late =
            self.by_rank.iter_mut().filter(|(_, held)| held.demand.is_some_and(|demand| is_late(&demand)));
        late.filter_map(|(rank, held)| held.request_return().then_some(rank.2)).collect()
    }

    /// Clears the marks of all buckets.
    pub(crate) fn clear_returns(&mut self) {
        self.by_rank.values_mut().for_each(BucketEntry::clear_return);
    }

    pub(crate) fn len(&self) -> usize {
        self.by_rank.len()
    }

    /// Returns the earliest stage of a bucket.
    pub(crate) fn earliest_stage(&self) -> Option<u32> {
        self.by_rank.last_key_value().map(|(rank, _)| rank.0.0)
    }

    /// Returns the latest stage of a bucket without a started task.
    pub(crate) fn latest_unstarted_stage(&self) -> Option<u32> {
        self.totals.unstarted.first().map(|rank| rank.0.0)
    }

    /// Returns whether a bucket has no started task.
    pub(crate) fn has_unstarted(&self) -> bool {
        !self.totals.unstarted.is_empty()
    }

    /// Counts the buckets whose stage has not sent a demand.
    pub(crate) fn without_demand(&self) -> usize {
        self.totals.without_demand
    }

    /// Returns whether a bucket has just arrived or looks a task up.
    pub(crate) fn has_coming(&self) -> bool {
        self.totals.coming > 0
    }

    /// Counts the buckets with a reserved slot: those without a demand yet, since otherwise every event before it would request
    /// one more, those that wait for memory, and those that look tasks up or wait for other workers. A worker that requested
    /// buckets while its own wait would gather buckets from the workers that could run them.
    pub(crate) fn with_reserved_slot(&self) -> usize {
        self.totals.with_reserved_slot
    }

    /// Returns the open tasks of all buckets.
    pub(crate) fn open_tasks(&self) -> u64 {
        self.totals.open_tasks
    }

    /// Returns the bytes that buckets hold besides storage.
    pub(crate) fn held_bytes(&self) -> u64 {
        u64::try_from(self.totals.held_bytes).unwrap_or(u64::MAX)
    }

    /// Returns the totals, summed again.
    #[cfg(test)]
    fn summed(&self) -> Totals {
        let mut totals = Totals::default();
        self.iter().for_each(|(rank, entry)| totals.add(rank, entry));
        totals
    }

    fn assert_counts(&self, lease: LeaseId) {
        let (buckets, leases) = (self.by_rank.len(), self.rank_of.len());
        assert!(buckets == leases, "{buckets} buckets have {leases} leases after {lease}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stage::NodeId;

    /// Demands that arrive, change, are granted and end, in a fixed random order, and leases that are used again.
    #[test]
    fn totals_are_those_of_all_buckets() {
        let mut buckets = Buckets::default();
        let mut random = 1_u64;
        let mut draw = |below: u64| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (random >> 33) % below
        };
        for _ in 0..5000 {
            let lease = LeaseId(draw(12));
            let mut demand = BucketDemand {
                heard: draw(3),
                ready: draw(3) as u32,
                started: draw(2) == 0,
                resolving: draw(3) == 0,
                held_bytes: [0, 7, u64::MAX][draw(3) as usize],
                next: Some(NodeId(0)),
                ..BucketDemand::default()
            };
            (demand.tail.open_tasks, demand.tail.waits) = (draw(9) as u32, draw(2) == 0);
            match draw(6) {
                0 => buckets.add(lease, draw(4) as u32, BucketId(draw(4) as u32)),
                1 => buckets.remove(lease),
                2 => _ = buckets.change(lease, |held| held.grant(demand)),
                3 => _ = buckets.change(lease, |held| held.update_inputs(1, 2)),
                _ => _ = buckets.change(lease, |held| held.update(demand)),
            }
            assert_eq!(buckets.totals, buckets.summed());
            let started = buckets.iter().filter(|(_, held)| held.is_started()).map(|(rank, _)| rank);
            assert!(buckets.started().map(|(rank, _)| rank).eq(started));
        }
    }
}
