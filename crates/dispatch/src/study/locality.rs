//! Data-aware placement: of the buckets that are ready, the one for which least has to be brought to a worker.
//!
//! What comes from files counts as near everywhere: who has read which is not known here.

use super::grant::Eligibility;
use super::{Rank, Study};
use crate::{BucketId, WorkerId};
use std::collections::BTreeSet;

/// Ready buckets that are looked at for one that is nearer than the first: those of all tiles that a few dozen workers have
/// under way at a time. Looking takes less than a tenth of what a grant does.
const LOOKED_AT: usize = 64;

/// Holders of a region that are asked for whether they wait.
const HOLDERS_LOOKED_AT: usize = 4;

impl Study {
    /// The nearest to a worker of `first` and the buckets of its stage that are ready after it; the first of equals.
    pub(super) fn most_local(&self, first: BucketId, suits: Eligibility<'_>) -> BucketId {
        let Some(worker) = suits.near else { return first };
        let rank = self.rank(first);
        if !self.ready.contains(&rank) {
            return first;
        }
        let mut best = (u64::MAX, first);
        let of_stage = |(stage, _): &&Rank| *stage == rank.0;
        for &(_, bucket) in self.ready.range(rank..).take_while(of_stage).take(LOOKED_AT) {
            let bytes = self.remote_bytes(bucket, worker);
            if bytes < best.0 {
                best = (bytes, bucket);
            }
            if bytes == 0 {
                break;
            }
        }
        best.1
    }

    /// Workers that hold something of what a bucket reads; not all of them, where there are many.
    #[must_use]
    pub fn holders_of(&self, bucket: BucketId) -> BTreeSet<WorkerId> {
        let Some(first) = self.buckets[bucket.index()].open.first() else { return BTreeSet::new() };
        let inputs = &self.plan.instances[first.index()].inputs;
        let holders = inputs.iter().filter_map(|key| self.holders.get(key));
        // Of what everybody has, everybody is a holder: the few first ones do.
        let few = holders.flat_map(|holders| holders.iter().take(HOLDERS_LOOKED_AT));
        few.copied().filter(|holder| *holder != WorkerId::SHARED).collect()
    }

    /// What a bucket reads that others hold and the worker does not.
    #[must_use]
    pub fn remote_bytes(&self, bucket: BucketId, worker: WorkerId) -> u64 {
        // A bucket's instances read the same.
        let Some(first) = self.buckets[bucket.index()].open.first() else { return 0 };
        let instance = &self.plan.instances[first.index()];
        let inputs = &self.plan.stages[instance.stage].inputs;
        let pixels = self.plan.buckets[bucket.index()].pixels;
        let mut bytes = 0;
        for (place, key) in instance.inputs.iter().enumerate() {
            let is_far = self.holders.get(key).is_some_and(|holders| !holders.contains(&worker));
            if is_far && !instance.inputs[..place].contains(key) {
                bytes += inputs[place].region.element.bytes(pixels);
            }
        }
        bytes
    }
}
