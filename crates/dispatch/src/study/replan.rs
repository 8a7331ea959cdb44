//! Replanning: rebuilds buckets from unstarted instances, since their number should follow that of the workers.
//! The caller gets the open instances and answers with new buckets. Grants continue in between, so an answer may refer to
//! an outdated state and is refused then.

use super::Study;
use crate::memory_model::MinimumMemory;
use crate::plan::{BucketPlan, PlanError, ReuseScope};
use crate::{BucketId, InstanceId};
use std::collections::{BTreeMap, BTreeSet};

/// Rebuilds buckets from unstarted instances for a different number of slots.
pub trait Replanner: Send {
    /// Returns new buckets for some of the [`unstarted`](Study::unstarted) instances, or `None` if all can keep theirs.
    fn replan(&mut self, study: &Study, slots: u32) -> Option<Vec<BucketPlan>>;
}

/// Another plan for the same instances, with buckets that need a different amount of memory.
#[derive(Clone, Debug, Default)]
pub struct ReplacementPlan {
    /// All buckets of the plan.
    pub buckets: Vec<BucketPlan>,
    /// Minimum memory of the plan.
    pub needs: MinimumMemory,
    /// Reuse scope within a bucket.
    pub sharing: ReuseScope,
}

impl Study {
    /// Returns the buckets with open instances and no lease, with their open instances, in order.
    pub fn unstarted(&self) -> impl Iterator<Item = (BucketId, &BTreeSet<InstanceId>)> {
        let unstarted = self.instances.buckets().filter(|(id, _)| self.instances.is_unstarted(*id));
        unstarted.map(|(id, bucket)| (id, bucket.open()))
    }

    /// Returns the current or last bucket of an instance.
    #[must_use]
    pub fn bucket_of(&self, instance: InstanceId) -> Option<BucketId> {
        self.instances.find_bucket_of(instance)
    }

    /// Moves the open instances of some [`unstarted`](Self::unstarted) buckets into `buckets`. The new buckets keep their
    /// order and follow all existing ones.
    ///
    /// # Errors
    /// If the new buckets do not contain exactly the open instances of whole unstarted ones:
    /// [`PlanError::Dangling`] names an instance that is not open, leased by now, or unknown.
    /// [`PlanError::NotInOneBucket`] names one that is missing or occurs twice. [`PlanError::BadBucket`] names
    /// a new bucket, counted from 0, that is empty or mixes stages. Nothing changes then.
    pub fn handle_replanned(&mut self, buckets: Vec<BucketPlan>) -> Result<(), PlanError> {
        let replaced = self.replaced_by(&buckets)?;
        // Before their instances move: empty buckets are never queued.
        replaced.iter().for_each(|id| _ = self.unqueue(*id));
        let unfinished = self.instances.unfinished();
        let first = self.plan.buckets.len();
        self.instances.replan(&replaced, &buckets, self.now);
        self.plan.buckets.extend(buckets);
        let (planned, cut) = (self.plan.buckets.len(), self.instances.bucket_count());
        assert!(planned == cut, "{planned} buckets are planned, {cut} are there after {first}");
        assert!(
            self.instances.unfinished() == unfinished,
            "{unfinished} were open before {replaced:?} were cut"
        );
        // After all are in the plan, since a rank depends on it.
        (first..planned).for_each(|number| self.queue_if_ready(BucketId(number as u32)));
        Ok(())
    }

    /// Moves all unstarted instances into the buckets of another plan, and takes over its minimum memory. Started buckets
    /// stay as they are.
    ///
    /// # Errors
    /// As [`handle_replanned`](Self::handle_replanned), if the plan omits an instance. Nothing changes then.
    pub fn handle_replacement(&mut self, recut: ReplacementPlan) -> Result<(), PlanError> {
        let unstarted: BTreeSet<InstanceId> =
            self.unstarted().flat_map(|(_, open)| open.iter().copied()).collect();
        let mut buckets = recut.buckets;
        buckets.iter_mut().for_each(|bucket| bucket.instances.retain(|id| unstarted.contains(id)));
        buckets.retain(|bucket| !bucket.instances.is_empty());
        let kept: usize = buckets.iter().map(|bucket| bucket.instances.len()).sum();
        if kept < unstarted.len() {
            let named: BTreeSet<InstanceId> =
                buckets.iter().flat_map(|bucket| bucket.instances.iter().copied()).collect();
            let missing = unstarted.difference(&named).next().copied();
            return Err(PlanError::NotInOneBucket(missing.unwrap_or(InstanceId(0))));
        }
        self.handle_replanned(buckets)?;
        (self.plan.needs, self.plan.sharing) = (recut.needs, recut.sharing);
        Ok(())
    }

    /// Moves the first instances of a ready bucket, in the plan's order, into a new bucket, which is ready as well. The
    /// others stay. Returns the bucket with the first `most` instances: the same one if it has no more.
    pub(crate) fn split_front(&mut self, bucket: BucketId, most: usize) -> BucketId {
        assert!(most > 0, "{bucket} is split, and no instance is to be in front");
        let open = self.instances.bucket(bucket).open();
        if open.len() <= most || !self.ready.contains(self.rank(bucket)) {
            return bucket;
        }
        let planned = self.plan.buckets[bucket.index()].instances.iter();
        let first: BTreeSet<InstanceId> =
            planned.filter(|id| open.contains(id)).take(most).copied().collect();
        assert!(first.len() == most, "{bucket} has {first:?} of {most} instances in the plan's order");
        self.unqueue(bucket);
        let new = self.regroup(first);
        self.queue_if_ready(bucket);
        self.queue_if_ready(new);
        new
    }

    /// Returns the buckets whose open instances are exactly those of the new ones.
    fn replaced_by(&self, buckets: &[BucketPlan]) -> Result<BTreeSet<BucketId>, PlanError> {
        let mut named: BTreeMap<BucketId, BTreeSet<InstanceId>> = BTreeMap::new();
        for (number, plan) in (0u32..).map(BucketId).zip(buckets) {
            let mut stage = None;
            for &id in &plan.instances {
                let state = self.instances.find_state(id).ok_or(PlanError::Dangling(id))?;
                let bucket = self.instances.bucket_of(id);
                if state.is_final() || !self.instances.is_unstarted(bucket) {
                    return Err(PlanError::Dangling(id));
                }
                let own = self.plan.instances[id.index()].stage;
                if *stage.get_or_insert(own) != own {
                    return Err(PlanError::BadBucket(number));
                }
                if !named.entry(bucket).or_default().insert(id) {
                    return Err(PlanError::NotInOneBucket(id));
                }
            }
            if stage.is_none() {
                return Err(PlanError::BadBucket(number));
            }
        }
        for (bucket, named) in &named {
            if let Some(left) = self.instances.bucket(*bucket).open().difference(named).next() {
                return Err(PlanError::NotInOneBucket(*left));
            }
        }
        Ok(named.into_keys().collect())
    }
}
