//! Locality: grants a worker the ready bucket with the fewest bytes to transfer to it.
//!
//! Inputs from files count as local everywhere: the study does not know which worker has read which file.

use super::Study;
use super::grant::Eligibility;
use crate::{BucketId, WorkerId};
use std::collections::BTreeSet;

/// Ready buckets considered for locality: those of all tiles that a few dozen workers process at a time. The search takes
/// less than a tenth of the time of a grant.
const LOOKED_AT: usize = 64;

/// Holders of each region that are considered as waiting workers.
const HOLDERS_LOOKED_AT: usize = 4;

impl Study {
    /// Returns the bucket with the fewest bytes to transfer among `first` and the ready buckets of its stage after it. Among
    /// equals, the first one.
    pub(super) fn most_local(&self, first: BucketId, suits: Eligibility<'_>) -> BucketId {
        let Some(worker) = suits.near else { return first };
        let mut best = (u64::MAX, first);
        for bucket in self.ready.stage_from(self.rank(first)).take(LOOKED_AT) {
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

    /// Returns workers that hold an input of a bucket: a few for each region.
    #[must_use]
    pub fn holders_of(&self, bucket: BucketId) -> BTreeSet<WorkerId> {
        let Some(first) = self.instances.bucket(bucket).open().first() else { return BTreeSet::new() };
        let inputs = &self.plan.instances[first.index()].inputs;
        let holders = inputs.iter().filter_map(|key| self.regions.holders(*key));
        // All workers may hold a common region, so a few of its holders suffice.
        let few = holders.flat_map(|holders| holders.iter().take(HOLDERS_LOOKED_AT));
        few.copied().filter(|holder| *holder != WorkerId::SHARED).collect()
    }

    /// Returns the bytes of a bucket's inputs that other workers hold and this worker does not.
    #[must_use]
    pub fn remote_bytes(&self, bucket: BucketId, worker: WorkerId) -> u64 {
        // All instances of a bucket have the same inputs.
        let Some(first) = self.instances.bucket(bucket).open().first() else { return 0 };
        let instance = &self.plan.instances[first.index()];
        let inputs = &self.plan.stages[instance.stage].inputs;
        let pixels = self.plan.buckets[bucket.index()].pixels;
        let mut bytes = 0;
        for (place, key) in instance.inputs.iter().enumerate() {
            if self.regions.is_remote(*key, worker) && !instance.inputs[..place].contains(key) {
                bytes += inputs[place].region.element.bytes(pixels);
            }
        }
        bytes
    }
}
