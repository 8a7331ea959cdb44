//! Grants: picks the ready bucket for a worker, leases it, and builds the work that is sent to the worker.

use super::Study;
use super::state::{InstanceState, Lease};
use crate::message::{BucketWork, InstanceWork};
use crate::plan::GrantOrder;
use crate::storage::Reader;
use crate::{BucketId, InstanceId, LeaseId, WorkerId};
use pleach_regions::RegionKey;
use std::collections::BTreeSet;
use std::time::Duration;

/// Maximum number of ready buckets whose paths are compared: a comparison takes about 20 ns, a grant 5 µs.
const MAX_COMPARED_PATHS: usize = 64;

/// A path longer by this ratio precedes locality. Predictions of instances of one stage and tile differ by less.
const MIN_PATH_RATIO: f32 = 1.25;

/// Constraints on a worker's next bucket.
#[derive(Clone, Copy, Debug)]
pub struct Eligibility<'a> {
    /// Only stages after this one.
    pub after: Option<usize>,
    /// By stage: whether the worker can run it. Stages beyond the end can be run.
    pub runs: &'a [bool],
    /// Whether the worker is empty: no other lease would be lost with it.
    pub is_alone: bool,
    /// Among buckets of one stage, the one whose inputs this worker reads in the least time comes first.
    pub near: Option<Reader<'a>>,
    /// Number of workers that wait for a bucket, this one included: they share what is ready.
    pub idle: usize,
    /// Whether the worker may take from the tiles of other workers.
    pub may_steal: bool,
}

impl Study {
    /// Returns the first ready bucket that meets the constraints: later stages first, then locality, then the plan's order.
    /// Before it takes from the tile of another worker, it gets a bucket of an earlier stage.
    /// An empty worker gets isolated buckets before all others, since no other worker can take them.
    #[must_use]
    pub fn first_ready(&self, suits: Eligibility<'_>) -> Option<BucketId> {
        if self.is_halted {
            return None;
        }
        let isolated = suits.is_alone.then(|| self.ready.first_isolated(suits.after, suits.runs)).flatten();
        isolated.or_else(|| {
            if self.plan.order == GrantOrder::Release {
                return self.first_released(suits);
            }
            let first = self.ready.first(suits.after, suits.runs)?;
            let local = self.most_suitable(first, suits);
            let begun = self.ready.longest_begun(suits.after, suits.runs);
            let is_shorter =
                |begun: &BucketId| local.is_none_or(|local| self.path(local) < self.path(*begun));
            if let Some(begun) = begun.filter(is_shorter) {
                return Some(begun);
            }
            let local = local?;
            Some(self.longest_path(suits).filter(|longest| self.is_longer(*longest, local)).unwrap_or(local))
        })
    }

    /// Returns the bucket that has been ready for longest. Children of one instance are ready in the plan's order.
    fn first_released(&self, suits: Eligibility<'_>) -> Option<BucketId> {
        let is_eligible = |bucket: &&BucketId| {
            let stage = self.stage_of_bucket(**bucket);
            suits.after.is_none_or(|after| stage > after)
                && suits.runs.get(stage).copied().unwrap_or(true)
                && !self.ready.contains_isolated(**bucket)
        };
        self.released.iter().find(is_eligible).copied()
    }

    /// Returns the ready bucket with the longest predicted path to the end of the study, if workers outnumber buckets: each
    /// bucket is granted now, and the longest path decides the end. `None` with more buckets, and without predictions.
    fn longest_path(&self, suits: Eligibility<'_>) -> Option<BucketId> {
        let few = suits.near.is_some() && self.ready.len() < suits.idle.min(MAX_COMPARED_PATHS);
        if !few || self.plan.ranks.is_empty() {
            return None;
        }
        let all = self.ready.all(suits.after, suits.runs);
        all.map(|bucket| (self.path_seconds(bucket), bucket))
            .reduce(|a, b| if b.0 > a.0 { b } else { a })
            .map(|(_, b)| b)
    }

    /// Returns whether the path from a bucket is longer than from another by more than tiles of one size differ.
    fn is_longer(&self, bucket: BucketId, than: BucketId) -> bool {
        self.path_seconds(bucket) > self.path_seconds(than) * MIN_PATH_RATIO
    }

    /// Returns the predicted path of a bucket's first instance to the end of the study. Without a prediction, no path is
    /// longer.
    pub(crate) fn path(&self, bucket: BucketId) -> Duration {
        let Some(first) = self.instances.bucket(bucket).open().first() else { return Duration::ZERO };
        let rank =
            || self.plan.ranks.get(first.index()).and_then(|rank| Duration::try_from_secs_f32(*rank).ok());
        self.begun.get(first).copied().or_else(rank).unwrap_or(Duration::MAX)
    }

    /// Records the predicted path of instances of a lease that its worker has begun, and returns.
    pub(crate) fn record_begun(&mut self, lease: LeaseId, instances: &[InstanceId], path: Duration) {
        let Some(lease) = self.leases.get(lease) else { return };
        let own = instances.iter().filter(|id| lease.open().contains(id));
        self.begun.extend(own.map(|id| (*id, path)));
    }

    fn path_seconds(&self, bucket: BucketId) -> f32 {
        let first = self.instances.bucket(bucket).open().first();
        first.and_then(|first| self.plan.ranks.get(first.index())).copied().unwrap_or(0.0)
    }

    /// Returns whether any bucket is ready to be granted.
    #[must_use]
    pub fn has_ready(&self) -> bool {
        !self.ready.is_empty() && !self.is_halted
    }

    /// Suspends the study: grants nothing from now on. Existing leases stay.
    pub fn halt(&mut self) {
        self.is_halted = true;
    }

    /// Returns whether the study is suspended.
    #[must_use]
    pub fn is_halted(&self) -> bool {
        self.is_halted
    }

    /// Leases a ready bucket to a worker, under an id that no lease has. Returns `None` if the bucket is not ready.
    ///
    /// # Panics
    /// If a lease has the id.
    pub fn grant(
        &mut self,
        bucket: BucketId,
        worker: WorkerId,
        lease: LeaseId,
        now: Duration,
    ) -> Option<BucketWork> {
        if !self.unqueue(bucket) {
            return None;
        }
        self.begin_range(bucket, worker);
        let open = self.instances.lease(bucket, lease);
        let work = self.work(bucket, &open, worker);
        let waited = now.saturating_sub(self.instances.bucket(bucket).ready_since());
        // Stored in the lease: if the worker cannot fetch an input, exactly these holders are dropped.
        let sent_locations = work.elsewhere.clone();
        let isolated = self.instances.bucket(bucket).is_isolated();
        let granted = Lease::new(worker, open, sent_locations, now).after(waited).isolated(isolated);
        self.leases.grant(lease, granted);
        debug_assert!(!self.instances.is_ready(bucket), "{bucket} is ready, and granted under {lease}");
        Some(work)
    }

    /// Leases the open instances of a straggler to a second worker as well, under an id that no lease has. The first
    /// result counts. Returns `None` if the lease does not qualify.
    ///
    /// # Panics
    /// If a lease has the id.
    pub fn grant_speculative(
        &mut self,
        of: LeaseId,
        worker: WorkerId,
        lease: LeaseId,
        now: Duration,
    ) -> Option<BucketWork> {
        let open = self.leases.get(of).filter(|first| first.may_twin_with(worker))?.open().clone();
        let bucket = open.first().map(|first| self.instances.bucket_of(*first))?;
        let work = self.work(bucket, &open, worker);
        let sent_locations = work.elsewhere.clone();
        self.leases.grant_twin(of, lease, Lease::new(worker, open, sent_locations, now));
        Some(work)
    }

    /// Counts the leases of a worker.
    #[must_use]
    pub fn leases_of(&self, worker: WorkerId) -> usize {
        self.leases.count_of(worker)
    }

    /// Counts all leases.
    #[must_use]
    pub fn leases(&self) -> usize {
        self.leases.len()
    }

    /// Counts the open instances of a bucket.
    pub(crate) fn open_in(&self, bucket: BucketId) -> usize {
        self.instances.bucket(bucket).open().len()
    }

    /// Returns the stage of a bucket.
    pub(crate) fn stage_of_bucket(&self, bucket: BucketId) -> usize {
        let first = self.plan.buckets[bucket.index()].instances[0];
        self.plan.instances.at(first).stage
    }

    /// Queues a bucket if it has open instances and all of them are ready.
    pub(super) fn queue_if_ready(&mut self, bucket: BucketId) {
        let is_isolated = self.instances.bucket(bucket).is_isolated();
        if !self.instances.is_ready(bucket) || self.ready.contains(bucket) {
            return;
        }
        let (stage, span) = (self.stage_of_bucket(bucket), self.span(bucket));
        let first = self.instances.bucket(bucket).open().first();
        let begun = first.and_then(|first| self.begun.get(first)).copied();
        if self.ready.queue(bucket, stage, span, is_isolated, begun) {
            self.instances.set_ready_since(bucket, self.now);
            if self.plan.order == GrantOrder::Release {
                self.released.push_back(bucket);
            }
        }
    }

    /// Removes a bucket from the queue. Returns whether it was queued.
    pub(super) fn unqueue(&mut self, bucket: BucketId) -> bool {
        if let Some(place) = self.released.iter().position(|released| *released == bucket) {
            self.released.remove(place);
        }
        self.ready.unqueue(bucket)
    }

    fn work(&self, bucket: BucketId, open: &BTreeSet<InstanceId>, worker: WorkerId) -> BucketWork {
        let mut stage = 0;
        let instances = open.iter().map(|&id| {
            let plan = self.plan.instances.at(id);
            stage = plan.stage as u32;
            InstanceWork {
                id,
                parameters: plan.parameters().collect(),
                inputs: plan.inputs.to_vec(),
                outputs: plan.outputs.to_vec(),
                stays: self.stays(id),
            }
        });
        let instances: Vec<InstanceWork> = instances.collect();
        let keys: BTreeSet<RegionKey> =
            instances.iter().flat_map(|instance| &instance.inputs).copied().collect();
        debug_assert!(
            keys.iter().all(|key| self.regions.is_used(*key)),
            "{worker} would read released regions for {bucket}: {keys:?}"
        );
        let elsewhere = self.regions.locate(&keys, worker);
        let pixels = self.plan.buckets[bucket.index()].pixels;
        let drain = self.plan.needs.drains.get(stage as usize).copied().unwrap_or_default();
        let sharing = self.plan.sharing;
        BucketWork { bucket, stage, pixels, drain, sharing, own_tile: None, instances, elsewhere }
    }

    /// Returns whether some reader of an instance waits for other parents as well.
    fn stays(&self, id: InstanceId) -> bool {
        let waits = |other: &InstanceId| *other != id && self.instances.state(*other) != InstanceState::Done;
        let children = self.instances.children(id).iter();
        children.flat_map(|child| self.plan.instances.at(*child).parents).any(waits)
    }
}
