//! Replanning: rebuilds buckets from unstarted instances, since their number should follow that of the workers.
//!
//! A replan of many instances takes seconds, so it runs on another thread with a [`StudySnapshot`], and grants continue
//! meanwhile. [`Study::handle_replanned`] merges the new buckets with the present state: instances that have started
//! since the snapshot stay where they are. It takes time in proportion to the moved instances, 20 to 40 ns each, because
//! [`NewBuckets`] are prepared on the other thread. Many instances are merged in [parts](NewBuckets::into_parts).

use super::Study;
use super::state::StudySnapshot;
use crate::memory_model::MinimumMemory;
use crate::plan::{BucketPlan, PlanError, ReuseScope};
use crate::{BucketId, InstanceId};
use std::collections::{BTreeSet, HashMap};

/// Instances that a manager merges in one event, 65,536: takes 2 ms.
pub const MAX_MERGED_INSTANCES: usize = 1 << 16;

/// Rebuilds buckets from unstarted instances for a different number of slots.
pub trait Replanner: Send {
    /// Returns new buckets for some of the [unstarted](StudySnapshot::unstarted) instances, or `None` if all can keep
    /// theirs. The shell calls it on a thread where it may take seconds.
    fn replan(&mut self, snapshot: &StudySnapshot, slots: u32) -> Option<Vec<BucketPlan>>;

    /// Returns whether the measured costs of tasks differ so much from those of the present buckets that a replan pays off.
    /// The shell calls it on its own thread: it must take microseconds.
    fn has_new_costs(&self) -> bool {
        false
    }

    /// Returns the overhead of a bucket in seconds that a replan would use now. `None` if the study keeps that of its plan. As
    /// fast as [`has_new_costs`](Self::has_new_costs).
    fn bucket_overhead_seconds(&self) -> Option<f64> {
        None
    }

    /// Returns the ranks of all instances ([`ExecutionPlan::ranks`](crate::plan::ExecutionPlan::ranks)) if the last replan
    /// has changed them.
    fn take_ranks(&mut self) -> Option<Vec<f32>> {
        None
    }
}

/// New buckets of a study, prepared for [`Study::handle_replanned`].
#[derive(Clone, Debug, Default)]
pub struct NewBuckets {
    plans: Vec<BucketPlan>,
    /// Instances of each plan.
    sets: Vec<BTreeSet<InstanceId>>,
    /// New ranks of all instances, if they change.
    ranks: Option<Vec<f32>>,
}

impl NewBuckets {
    /// Prepares buckets. Takes time in proportion to their instances.
    ///
    /// # Errors
    /// [`PlanError::NotInOneBucket`] names an instance that occurs twice, [`PlanError::BadBucket`] an empty bucket, counted
    /// from 0.
    pub fn new(plans: Vec<BucketPlan>) -> Result<Self, PlanError> {
        let sets: Vec<BTreeSet<InstanceId>> =
            plans.iter().map(|plan| plan.instances.iter().copied().collect()).collect();
        if let Some(empty) = sets.iter().position(BTreeSet::is_empty) {
            return Err(PlanError::BadBucket(BucketId(empty as u32)));
        }
        let mut all: Vec<InstanceId> = plans.iter().flat_map(|plan| plan.instances.iter().copied()).collect();
        all.sort_unstable();
        if let Some(pair) = all.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(PlanError::NotInOneBucket(pair[0]));
        }
        Ok(Self { plans, sets, ranks: None })
    }

    /// Adds new ranks of all instances of the study.
    #[must_use]
    pub fn with_ranks(self, ranks: Option<Vec<f32>>) -> Self {
        Self { ranks, ..self }
    }

    /// Divides the buckets into parts that a study merges one after the other, each in a short time. No two parts have
    /// instances of one present bucket. A part has at most `max_instances` instances, unless present and new buckets connect
    /// more of them.
    #[must_use]
    pub fn into_parts(self, snapshot: &StudySnapshot, max_instances: usize) -> Vec<Self> {
        let Self { plans, sets, ranks } = self;
        let group_of = connected(&plans, snapshot);
        let mut sizes = vec![0; plans.len()];
        plans.iter().zip(&group_of).for_each(|(plan, group)| sizes[*group] += plan.instances.len());
        // By group: the part that it is in. A group has the number of its first bucket, so the buckets stay about in order.
        let mut part_of: HashMap<usize, usize> = HashMap::new();
        let mut parts = vec![Self { ranks, ..Self::default() }];
        let mut instances = 0;
        for ((plan, set), group) in plans.into_iter().zip(sets).zip(group_of) {
            let part = *part_of.entry(group).or_insert_with(|| {
                if instances > 0 && instances + sizes[group] > max_instances {
                    parts.push(Self::default());
                    instances = 0;
                }
                instances += sizes[group];
                parts.len() - 1
            });
            parts[part].plans.push(plan);
            parts[part].sets.push(set);
        }
        parts
    }

    /// Counts the instances of all buckets.
    #[must_use]
    pub fn instances(&self) -> usize {
        self.sets.iter().map(BTreeSet::len).sum()
    }
}

/// Returns for each new bucket the first one that is connected with it: both have instances of one present bucket, or are
/// connected with one that does.
fn connected(plans: &[BucketPlan], snapshot: &StudySnapshot) -> Vec<usize> {
    let mut first: Vec<usize> = (0..plans.len()).collect();
    let root = |first: &mut Vec<usize>, mut at: usize| {
        while first[at] != at {
            // Halves the path, so that later searches are short.
            first[at] = first[first[at]];
            at = first[at];
        }
        at
    };
    let mut taken: HashMap<BucketId, usize> = HashMap::new();
    for (number, plan) in plans.iter().enumerate() {
        let mut last = None;
        for bucket in plan.instances.iter().filter_map(|id| snapshot.bucket_of(*id)) {
            // Instances of one bucket follow each other.
            if last.replace(bucket) != Some(bucket) {
                let other = *taken.entry(bucket).or_insert(number);
                let (a, b) = (root(&mut first, number), root(&mut first, other));
                first[a.max(b)] = a.min(b);
            }
        }
    }
    (0..plans.len()).map(|number| root(&mut first, number)).collect()
}

/// Another plan for the same instances, with buckets that need a different amount of memory.
#[derive(Clone, Debug, Default)]
pub struct ReplacementPlan {
    /// Buckets of all unstarted instances.
    pub buckets: NewBuckets,
    /// Minimum memory of the plan.
    pub needs: MinimumMemory,
    /// Reuse scope within a bucket.
    pub sharing: ReuseScope,
}

impl ReplacementPlan {
    /// Prepares the buckets of a plan for a study: leaves out the instances that are started or final in the snapshot.
    ///
    /// # Errors
    /// As [`NewBuckets::new`].
    pub fn new(
        mut buckets: Vec<BucketPlan>,
        snapshot: &StudySnapshot,
        needs: MinimumMemory,
        sharing: ReuseScope,
    ) -> Result<Self, PlanError> {
        buckets.iter_mut().for_each(|bucket| bucket.instances.retain(|id| snapshot.is_unstarted(*id)));
        buckets.retain(|bucket| !bucket.instances.is_empty());
        Ok(Self { buckets: NewBuckets::new(buckets)?, needs, sharing })
    }
}

/// Result of a replan.
#[derive(Debug, Default)]
pub struct Merged {
    /// Number of instances that are in a new bucket.
    pub moved: usize,
    /// Number of instances that stay in their bucket, because it has changed since the snapshot.
    pub outdated: usize,
    /// Memory of the former buckets. Dropping it takes time in proportion to their instances, so the shell drops it on
    /// another thread.
    pub former: Vec<BTreeSet<InstanceId>>,
}

impl Merged {
    /// Adds the result of a further part.
    pub fn add(&mut self, other: Self) {
        self.moved += other.moved;
        self.outdated += other.outdated;
        self.former.extend(other.former);
    }
}

impl Study {
    /// Returns the buckets with open instances and no lease, with their open instances, in order.
    pub fn unstarted(&self) -> impl Iterator<Item = (BucketId, &BTreeSet<InstanceId>)> {
        let unstarted = self.instances.buckets().filter(|(id, _)| self.instances.is_unstarted(*id));
        unstarted.map(|(id, bucket)| (id, bucket.open()))
    }

    /// Returns whether an instance is open and has no lease, so that a replan may move it. Isolated instances may not.
    #[must_use]
    pub fn is_unstarted(&self, instance: InstanceId) -> bool {
        self.instances.find_state(instance).is_some() && self.instances.is_movable(instance)
    }

    /// Returns the current or last bucket of an instance.
    #[must_use]
    pub fn bucket_of(&self, instance: InstanceId) -> Option<BucketId> {
        self.instances.find_bucket_of(instance)
    }

    /// Takes a snapshot for a replan.
    #[must_use]
    pub fn snapshot(&self) -> StudySnapshot {
        self.instances.snapshot()
    }

    /// Moves unstarted instances into `new` buckets, which keep their order and follow all existing ones. Instances of a
    /// bucket that has changed since the snapshot stay there: it is leased, isolated or complete, or has another open
    /// instance.
    ///
    /// # Errors
    /// [`PlanError::Dangling`] names an unknown instance. [`PlanError::BadBucket`] names a new bucket that mixes stages,
    /// counted from 0. Nothing changes then.
    pub fn handle_replanned(&mut self, new: NewBuckets) -> Result<Merged, PlanError> {
        self.check_stages(&new)?;
        let all = new.instances();
        let replaced = self.unchanged(&new);
        let NewBuckets { mut plans, mut sets, ranks } = new;
        if replaced.instances < all {
            for (plan, set) in plans.iter_mut().zip(&mut sets) {
                let moves = |id: &InstanceId| {
                    self.instances.is_movable(*id)
                        && replaced.buckets.contains(&self.instances.bucket_of(*id))
                };
                // Few buckets change during a replan.
                if !plan.instances.iter().all(moves) {
                    plan.instances.retain(moves);
                    *set = plan.instances.iter().copied().collect();
                }
            }
            plans.retain(|plan| !plan.instances.is_empty());
            sets.retain(|set| !set.is_empty());
        }
        let former = self.rebuild(&replaced.buckets, plans, sets);
        if let Some(ranks) = ranks.filter(|ranks| ranks.len() == self.plan.instances.len()) {
            self.plan.ranks = ranks;
        }
        Ok(Merged { moved: replaced.instances, outdated: all - replaced.instances, former })
    }

    /// Replaces buckets by others with the same open instances.
    fn rebuild(
        &mut self,
        replaced: &BTreeSet<BucketId>,
        plans: Vec<BucketPlan>,
        sets: Vec<BTreeSet<InstanceId>>,
    ) -> Vec<BTreeSet<InstanceId>> {
        // Before their instances move: empty buckets are never queued.
        replaced.iter().for_each(|id| _ = self.unqueue(*id));
        let unfinished = self.instances.unfinished();
        let first = self.plan.buckets.len();
        let former = self.instances.replan(replaced, sets, self.now);
        self.plan.buckets.extend(plans);
        let (planned, built) = (self.plan.buckets.len(), self.instances.bucket_count());
        assert!(planned == built, "{planned} buckets are planned, {built} exist after {first}");
        assert!(
            self.instances.unfinished() == unfinished,
            "{unfinished} were open before {replaced:?} were replanned"
        );
        // After all are in the plan, since a rank depends on it.
        (first..planned).for_each(|number| self.queue_if_ready(BucketId(number as u32)));
        former
    }

    /// Moves all unstarted instances into the buckets of another plan, and takes over its minimum memory. Started buckets
    /// stay as they are.
    ///
    /// # Errors
    /// As [`handle_replanned`](Self::handle_replanned), and [`PlanError::NotInOneBucket`] if an unstarted instance would stay
    /// in its bucket, which may need more memory. Nothing changes then.
    pub fn handle_replacement(&mut self, plan: ReplacementPlan) -> Result<Merged, PlanError> {
        let ReplacementPlan { buckets, needs, sharing } = plan;
        self.check_stages(&buckets)?;
        if self.unchanged(&buckets).instances < self.instances.movable_count() {
            let missing = self.first_left_out(&buckets);
            return Err(PlanError::NotInOneBucket(missing));
        }
        let merged = self.handle_replanned(buckets)?;
        // After the merge, which may fail and then leaves the plan as it was.
        (self.plan.needs, self.plan.sharing) = (needs, sharing);
        Ok(merged)
    }

    /// Returns the first unstarted instance that no new bucket has.
    fn first_left_out(&self, new: &NewBuckets) -> InstanceId {
        let named: BTreeSet<InstanceId> = new.sets.iter().flatten().copied().collect();
        let unstarted = self.unstarted().flat_map(|(_, open)| open.iter().copied());
        unstarted.filter(|id| !named.contains(id)).min().unwrap_or(InstanceId(0))
    }

    /// Moves the first instances of a ready bucket, in the plan's order, into a new bucket, which is ready as well. The
    /// others stay. Returns the bucket with the first `most` instances: the same one if it has no more.
    pub(crate) fn split_front(&mut self, bucket: BucketId, most: usize) -> BucketId {
        assert!(most > 0, "{bucket} is split, and no instance is to be in front");
        let open = self.instances.bucket(bucket).open();
        if open.len() <= most || !self.ready.contains(bucket) {
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

    /// Checks that all instances exist and that no bucket mixes stages.
    fn check_stages(&self, new: &NewBuckets) -> Result<(), PlanError> {
        for (number, plan) in (0u32..).map(BucketId).zip(&new.plans) {
            let mut stage = None;
            for &id in &plan.instances {
                let own = self.plan.instances.get(id).ok_or(PlanError::Dangling(id))?.stage;
                if *stage.get_or_insert(own) != own {
                    return Err(PlanError::BadBucket(number));
                }
            }
        }
        Ok(())
    }

    /// Returns the unstarted buckets whose open instances are all in new ones.
    fn unchanged(&self, new: &NewBuckets) -> ReplacedBuckets {
        let mut named: HashMap<BucketId, usize> = HashMap::new();
        for id in new.plans.iter().flat_map(|plan| &plan.instances) {
            if self.instances.is_movable(*id) {
                *named.entry(self.instances.bucket_of(*id)).or_default() += 1;
            }
        }
        named.retain(|bucket, named| self.instances.bucket(*bucket).open().len() == *named);
        ReplacedBuckets { instances: named.values().sum(), buckets: named.into_keys().collect() }
    }
}

/// Buckets that a replan replaces.
struct ReplacedBuckets {
    buckets: BTreeSet<BucketId>,
    /// Number of their open instances.
    instances: usize,
}
