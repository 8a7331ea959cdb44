//! Buckets that nobody has been granted yet may be cut anew: when workers join or leave, there should be more or fewer of
//! them. Who cuts them is told what is open, and says what becomes of it; in between nothing waits, so what is said may be
//! about a state that is over, and is refused then.

use super::{Bucket, State, Study};
use crate::memory_model::MinimumMemory;
use crate::plan::{BucketPlan, PlanError, ReuseScope};
use crate::{BucketId, InstanceId};
use std::collections::{BTreeMap, BTreeSet};

/// Another plan for the same instances: buckets that need another amount of memory.
#[derive(Clone, Debug, Default)]
pub struct Recut {
    /// All buckets of the plan.
    pub buckets: Vec<BucketPlan>,
    /// What the plan takes.
    pub needs: MinimumMemory,
    /// What the tasks of a bucket share.
    pub sharing: ReuseScope,
}

impl Study {
    /// The buckets of which something is open and nothing is granted, with what is open of them, in order.
    pub fn unstarted(&self) -> impl Iterator<Item = (BucketId, &BTreeSet<InstanceId>)> {
        let ids = (0u32..).map(BucketId).zip(&self.buckets);
        ids.filter(|(_, bucket)| self.is_unstarted(bucket)).map(|(id, bucket)| (id, &bucket.open))
    }

    /// The bucket that an instance is in, or was in last.
    #[must_use]
    pub fn bucket_of(&self, instance: InstanceId) -> Option<BucketId> {
        self.instances.get(instance.index()).map(|instance| instance.bucket)
    }

    /// Puts the open instances of some [`unstarted`](Self::unstarted) buckets into `buckets` instead. Those keep the order
    /// they are in, behind all buckets there have been.
    ///
    /// # Errors
    /// When the new buckets are not what is open of whole unstarted ones: [`PlanError::Dangling`] names an instance that is
    /// not open, or granted by now, or unknown; [`PlanError::NotInOneBucket`] one that is left out or named twice;
    /// [`PlanError::BadBucket`] a new bucket, counted from 0, that is empty or mixes stages. Nothing changes then.
    pub fn handle_replanned(&mut self, buckets: Vec<BucketPlan>) -> Result<(), PlanError> {
        let replaced = self.replaced_by(&buckets)?;
        for id in replaced {
            self.unqueue(id);
            let bucket = &mut self.buckets[id.index()];
            (bucket.open, bucket.waiting) = (BTreeSet::new(), 0);
        }
        for plan in buckets {
            let id = BucketId(self.buckets.len() as u32);
            let open: BTreeSet<InstanceId> = plan.instances.iter().copied().collect();
            let waits = |id: &&InstanceId| matches!(self.instances[id.index()].state, State::Waiting(_));
            let waiting = open.iter().filter(waits).count();
            open.iter().for_each(|instance| self.instances[instance.index()].bucket = id);
            self.buckets.push(Bucket { open, waiting, alone: false, ready_since: self.now });
            self.plan.buckets.push(plan);
            self.queue_if_ready(id);
        }
        Ok(())
    }

    /// Puts everything unstarted into the buckets of another plan, and takes over what that plan needs. Buckets that have
    /// been started end as they are.
    ///
    /// # Errors
    /// As [`handle_replanned`](Self::handle_replanned), when the plan leaves out an instance. Nothing changes then.
    pub fn handle_recut(&mut self, recut: Recut) -> Result<(), PlanError> {
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

    /// Takes the first instances of a ready bucket, in the plan's order, into a bucket of their own, which is ready as well;
    /// the rest stays where it is. Returns the bucket with the first `max_instances`: the same where it has no more.
    pub(crate) fn split_front(&mut self, bucket: BucketId, most: usize) -> BucketId {
        let open = &self.buckets[bucket.index()].open;
        if open.len() <= most || !self.is_ready(bucket) {
            return bucket;
        }
        let planned = self.plan.buckets[bucket.index()].instances.iter();
        let first: BTreeSet<InstanceId> =
            planned.filter(|id| open.contains(id)).take(most).copied().collect();
        self.unqueue(bucket);
        let new = self.regroup(first);
        self.queue_if_ready(bucket);
        self.queue_if_ready(new);
        new
    }

    fn is_unstarted(&self, bucket: &Bucket) -> bool {
        // A bucket is granted as a whole; one that has to be alone stays so.
        let first = bucket.open.first().map(|first| self.instances[first.index()].state);
        !bucket.alone && first.is_some_and(|state| matches!(state, State::Ready | State::Waiting(_)))
    }

    /// The buckets whose open instances are those of the new ones.
    fn replaced_by(&self, buckets: &[BucketPlan]) -> Result<BTreeSet<BucketId>, PlanError> {
        let mut named: BTreeMap<BucketId, BTreeSet<InstanceId>> = BTreeMap::new();
        for (number, plan) in (0u32..).map(BucketId).zip(buckets) {
            let mut stage = None;
            for &id in &plan.instances {
                let instance = self.instances.get(id.index()).ok_or(PlanError::Dangling(id))?;
                let bucket = &self.buckets[instance.bucket.index()];
                if instance.state.is_final() || !self.is_unstarted(bucket) {
                    return Err(PlanError::Dangling(id));
                }
                let own = self.plan.instances[id.index()].stage;
                if *stage.get_or_insert(own) != own {
                    return Err(PlanError::BadBucket(number));
                }
                if !named.entry(instance.bucket).or_default().insert(id) {
                    return Err(PlanError::NotInOneBucket(id));
                }
            }
            if stage.is_none() {
                return Err(PlanError::BadBucket(number));
            }
        }
        for (bucket, named) in &named {
            if let Some(left) = self.buckets[bucket.index()].open.difference(named).next() {
                return Err(PlanError::NotInOneBucket(*left));
            }
        }
        Ok(named.into_keys().collect())
    }
}
