//! Buckets on a worker, in the order of admission.
//!
//! Invariant: each lease has one rank, which contains the lease, and each rank has one bucket.

use crate::memory_model::{BucketDemand, MemoryForecast};
use crate::{BucketId, LeaseId};
use std::cmp::Reverse;
use std::collections::BTreeMap;

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

/// All buckets on this worker.
#[derive(Debug, Default)]
pub(crate) struct Buckets {
    by_rank: BTreeMap<Rank, BucketEntry>,
    rank_of: BTreeMap<LeaseId, Rank>,
}

impl Buckets {
    /// Adds a bucket. It replaces one with the same lease, since the manager never reuses a lease.
    pub(crate) fn add(&mut self, lease: LeaseId, stage: u32, bucket: BucketId) {
        let rank = (Reverse(stage), bucket, lease);
        if let Some(before) = self.rank_of.insert(lease, rank) {
            self.by_rank.remove(&before);
        }
        let before = self.by_rank.insert(rank, BucketEntry::default());
        assert!(before.is_none(), "{lease} begins with the rank of another bucket: {before:?}");
        self.assert_counts(lease);
    }

    /// Removes the bucket of a lease, if it is still present.
    pub(crate) fn remove(&mut self, lease: LeaseId) {
        if let Some(rank) = self.rank_of.remove(&lease) {
            let held = self.by_rank.remove(&rank);
            assert!(held.is_some(), "{lease} ends, and has the rank {rank:?} of no bucket");
        }
        self.assert_counts(lease);
    }

    pub(crate) fn get(&self, lease: LeaseId) -> Option<&BucketEntry> {
        self.by_rank.get(self.rank_of.get(&lease)?)
    }

    pub(crate) fn get_mut(&mut self, lease: LeaseId) -> Option<&mut BucketEntry> {
        self.by_rank.get_mut(self.rank_of.get(&lease)?)
    }

    /// Returns the buckets in the order of admission.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Rank, &BucketEntry)> {
        self.by_rank.iter().map(|(rank, held)| (*rank, held))
    }

    /// As [`iter`](Self::iter), to update them.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = (Rank, &mut BucketEntry)> {
        self.by_rank.iter_mut().map(|(rank, held)| (*rank, held))
    }

    pub(crate) fn len(&self) -> usize {
        self.by_rank.len()
    }

    /// Returns the earliest stage of a bucket.
    pub(crate) fn earliest_stage(&self) -> Option<u32> {
        self.by_rank.last_key_value().map(|(rank, _)| rank.0.0)
    }

    /// Counts the buckets whose stage has not sent a demand.
    pub(crate) fn without_demand(&self) -> usize {
        self.by_rank.values().filter(|held| held.demand.is_none()).count()
    }

    /// Returns the bytes that buckets hold besides storage.
    pub(crate) fn held_bytes(&self) -> u64 {
        let demands = self.by_rank.values().filter_map(|held| held.demand);
        demands.fold(0, |sum, demand| sum.saturating_add(demand.held_bytes))
    }

    fn assert_counts(&self, lease: LeaseId) {
        let (buckets, leases) = (self.by_rank.len(), self.rank_of.len());
        assert!(buckets == leases, "{buckets} buckets have {leases} leases after {lease}");
    }
}
