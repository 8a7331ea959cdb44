//! Locality: grants a worker the ready bucket whose inputs it reads in the least time, or the one that continues its range.
//!
//! Where buckets have tasks in common, each worker works through one range of the plan's order at a time: the bucket after
//! its last one has the most tasks in its result cache. Tiles stay on the worker that began them until another is idle.
//! Inputs from files count as local everywhere: the study does not know which worker has read which file.

use super::Study;
use super::grant::Eligibility;
use super::state::Span;
use crate::storage::{CopyPlace, ReadCost, ReadSource, Reader};
use crate::{BucketId, InstanceId, WorkerId};
use pleach_regions::{RegionIdentity, RegionKey};
use pleach_workflow::TierKind;
use std::collections::BTreeSet;

/// Ready buckets considered for locality: those of all tiles that a few dozen workers process at a time. The search takes
/// less than a tenth of the time of a grant.
const LOOKED_AT: usize = 64;

/// Holders of each region that are considered as waiting workers.
const HOLDERS_LOOKED_AT: usize = 4;

impl Study {
    /// Returns a ready bucket of the stage of `first`, or of the first earlier stage where the worker need not take
    /// from the tile of another worker: a new tile shares no task with others, and each worker has one then. `None` if it may
    /// not take from them, and would have to.
    pub(super) fn most_suitable(&self, first: BucketId, suits: Eligibility<'_>) -> Option<BucketId> {
        let (bucket, is_stolen) = self.most_local(first, suits);
        let mut stage = self.stage_of_bucket(first);
        while is_stolen && let Some(first) = self.ready.first_before(stage, suits.after, suits.runs) {
            stage = self.stage_of_bucket(first);
            let (earlier, is_stolen) = self.most_local(first, suits);
            if !is_stolen {
                return Some(earlier);
            }
        }
        Some(bucket).filter(|_| !is_stolen || suits.may_steal)
    }

    /// Returns the bucket with the lowest cost of reads among the next one of the worker's range, `first`, and the ready
    /// buckets of its stage after it, and whether it takes the bucket, with a transfer, from the tile of another worker. Among equals, the first of these. The
    /// next one of the range is first if it needs no transfer: its tasks are in the result cache, whatever the tier of its inputs.
    fn most_local(&self, first: BucketId, suits: Eligibility<'_>) -> (BucketId, bool) {
        let Some(reader) = suits.near else { return (first, false) };
        let stage = self.stage_of_bucket(first);
        let next = self.ready.next_of_run(reader.worker, stage, suits.idle);
        let mut best = (ReadCost::MAX, first, false);
        if let Some((next, is_stolen)) = next {
            best = (self.read_cost(next, reader), next, is_stolen);
            if best.0.is_local() {
                return (next, is_stolen);
            }
        }
        for bucket in self.ready.stage_from(first).take(LOOKED_AT) {
            let cost = self.read_cost(bucket, reader);
            if cost < best.0 {
                best = (cost, bucket, !cost.is_local() && self.is_begun_elsewhere(bucket, reader.worker));
            }
            if cost == ReadCost::NONE {
                break;
            }
        }
        (best.1, best.2)
    }

    /// Returns whether another worker has begun the tile of a bucket.
    fn is_begun_elsewhere(&self, bucket: BucketId, worker: WorkerId) -> bool {
        let first = self.instances.bucket(bucket).open().first();
        let tile = first.and_then(|first| self.positions.tile_of(*first));
        tile.and_then(|tile| self.ready.runs().home(tile)).is_some_and(|home| home != worker)
    }

    /// Returns the positions of a bucket's open instances. `None` if buckets of its stage share nothing.
    pub(super) fn span(&self, bucket: BucketId) -> Option<Span> {
        let planned = &self.plan.buckets[bucket.index()].instances;
        self.positions.span(self.stage_of_bucket(bucket), planned, self.instances.bucket(bucket).open())
    }

    /// Records that a worker gets a bucket: it continues there.
    pub(super) fn begin_range(&mut self, bucket: BucketId, worker: WorkerId) {
        match (self.span(bucket), self.instances.bucket(bucket).open().first()) {
            (Some(span), _) => self.ready.runs_mut().begin(worker, span),
            // The worker has the tile's regions, also where this stage has no ranges.
            (None, Some(first)) => {
                let tile = self.positions.tile_of(*first);
                tile.into_iter().for_each(|tile| self.ready.runs_mut().begin_tile(worker, tile));
            }
            (None, None) => {}
        }
    }

    /// Returns the worker that began each tile, by the tile's first input from a file.
    pub fn tile_homes(&self) -> impl Iterator<Item = (RegionKey, WorkerId)> {
        let homes = self.ready.runs().homes();
        homes.filter_map(|(tile, worker)| Some((self.positions.key_of(tile)?, worker)))
    }

    /// Names tiles by the contents of their first inputs: studies that read equal contents from other paths have the same tiles.
    #[must_use]
    pub fn with_tile_contents(mut self, identity: impl Fn(RegionKey) -> Option<RegionIdentity>) -> Self {
        self.positions.name_by_content(identity);
        self
    }

    /// Returns the key of an instance's tile, by its content if that is known. `None` if buckets share nothing.
    pub(crate) fn tile_of(&self, instance: InstanceId) -> Option<RegionKey> {
        self.positions.content_key_of(self.positions.tile_of(instance)?)
    }

    /// Makes workers the homes of tiles that they began in an earlier round, whose task results they may have.
    pub fn adopt_homes(&mut self, home: impl Fn(RegionKey) -> Option<WorkerId>) {
        let homes = self.positions.tiles().filter_map(|(tile, key)| Some((tile, home(key)?)));
        for (tile, worker) in homes.collect::<Vec<_>>() {
            self.ready.runs_mut().begin_tile(worker, tile);
        }
    }

    /// Returns workers that hold an input of a bucket: a few for each region.
    #[must_use]
    pub fn holders_of(&self, bucket: BucketId) -> BTreeSet<WorkerId> {
        let Some(first) = self.instances.bucket(bucket).open().first() else { return BTreeSet::new() };
        let inputs = self.plan.instances.at(*first).inputs;
        let holders = inputs.iter().filter_map(|key| self.regions.holders(*key));
        // All workers may hold a common region, so a few of its holders suffice.
        let few = holders.flat_map(|holders| holders.keys().take(HOLDERS_LOOKED_AT));
        few.copied().filter(|holder| *holder != WorkerId::SHARED).collect()
    }

    /// Returns the bytes of a bucket's inputs that other workers hold and this worker does not.
    #[must_use]
    pub fn remote_bytes(&self, bucket: BucketId, worker: WorkerId) -> u64 {
        let mut remote_bytes = 0;
        self.for_stored_inputs(bucket, worker, |source, bytes| {
            remote_bytes += if matches!(source, ReadSource::Remote { .. }) { bytes } else { 0 };
        });
        remote_bytes
    }

    /// Returns the bytes of a bucket's stored inputs by the place of the copy that a worker would read, in the order of
    /// [`CopyPlace::ALL`].
    #[must_use]
    pub fn input_bytes(&self, bucket: BucketId, worker: WorkerId) -> [u64; CopyPlace::ALL.len()] {
        let mut by_place = [0; CopyPlace::ALL.len()];
        self.for_stored_inputs(bucket, worker, |source, bytes| by_place[source.place() as usize] += bytes);
        by_place
    }

    /// Returns the expected cost for a worker to read the stored inputs of a bucket.
    #[must_use]
    pub fn read_cost(&self, bucket: BucketId, Reader { worker, rates }: Reader<'_>) -> ReadCost {
        let mut cost = ReadCost::NONE;
        self.for_stored_inputs(bucket, worker, |source, bytes| cost.add(source, bytes, rates));
        cost
    }

    /// Records the tiers of a worker's copies, `None` for memory.
    pub fn handle_region_tiers(&mut self, worker: WorkerId, tiers: &[(RegionKey, Option<TierKind>)]) {
        tiers.iter().for_each(|(key, tier)| self.regions.set_tier(worker, *key, *tier));
    }

    /// Calls `each` for the stored inputs of a bucket, with the copy that a worker would read, and its bytes.
    fn for_stored_inputs(&self, bucket: BucketId, worker: WorkerId, mut each: impl FnMut(ReadSource, u64)) {
        // All instances of a bucket have the same inputs.
        let Some(first) = self.instances.bucket(bucket).open().first() else { return };
        let instance = self.plan.instances.at(*first);
        let inputs = &self.plan.stages[instance.stage].inputs;
        let pixels = self.plan.buckets[bucket.index()].pixels;
        for (place, key) in instance.inputs.iter().enumerate() {
            let source = self.regions.source(*key, worker);
            if let Some(source) = source.filter(|_| !instance.inputs[..place].contains(key)) {
                each(source, inputs[place].region.element.bytes(pixels));
            }
        }
    }
}
