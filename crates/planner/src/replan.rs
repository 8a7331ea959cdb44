//! Replans a running study for more or fewer slots: unstarted instances are rebuilt into a suitable number of buckets, and as
//! few as possible change their bucket (`pleach_reuse::replan`).

use super::builder::StageProblem;
use pleach_dispatch::plan::BucketPlan;
use pleach_dispatch::study::{Replanner, Study};
use pleach_dispatch::{BucketId, InstanceId};
use pleach_reuse::{Buckets, Member, PreviousPlan, replan};
use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroUsize;

/// Buckets for each slot: MaxBuckets as in 000 section 4.4.2.
const BUCKETS_PER_SLOT: usize = 3;

/// Merge problems of a running study.
pub struct StudyReplanner {
    stages: Vec<Stage>,
    max_buckets: NonZeroUsize,
    /// With fewer buckets, the workers that the plan was cut for would lack the memory.
    min_buckets: NonZeroUsize,
}

struct Stage {
    problem: StageProblem,
    /// Pixels of each member's tile.
    pixels: Vec<u64>,
}

impl StudyReplanner {
    pub(crate) fn new(
        stages: Vec<StageProblem>,
        max_buckets: NonZeroUsize,
        min_buckets: NonZeroUsize,
        pixels: impl Fn(pleach_reuse::InstanceId) -> u64,
    ) -> Self {
        let stage = |problem: StageProblem| {
            let pixels = problem.members.iter().map(|instance| pixels(*instance)).collect();
            Stage { problem, pixels }
        };
        Self { stages: stages.into_iter().map(stage).collect(), max_buckets, min_buckets }
    }
}

impl Replanner for StudyReplanner {
    fn replan(&mut self, study: &Study, slots: u32) -> Option<Vec<BucketPlan>> {
        let wanted = NonZeroUsize::new(slots as usize * BUCKETS_PER_SLOT)?.max(self.min_buckets);
        let before = std::mem::replace(&mut self.max_buckets, wanted);
        if before == wanted {
            return None;
        }
        let waiting: BTreeMap<BucketId, &BTreeSet<InstanceId>> = study.unstarted().collect();
        let buckets: Vec<BucketPlan> = self
            .stages
            .iter()
            .flat_map(|stage| stage.replan(study, &waiting, before, wanted).unwrap_or_default())
            .collect();
        (!buckets.is_empty()).then_some(buckets)
    }
}

impl Stage {
    /// Returns the buckets of this stage that change, or `None`.
    fn replan(
        &self,
        study: &Study,
        waiting: &BTreeMap<BucketId, &BTreeSet<InstanceId>>,
        before: NonZeroUsize,
        desired: NonZeroUsize,
    ) -> Option<Vec<BucketPlan>> {
        let StageProblem { members, problem, tree, .. } = &self.problem;
        let id = |member: Member| InstanceId(members[member.0 as usize].0);
        // Present buckets, numbered from 0.
        let mut numbers: BTreeMap<BucketId, u32> = BTreeMap::new();
        let mut lists: Vec<Vec<Member>> = Vec::new();
        for member in problem.members() {
            let bucket = study.bucket_of(id(member))?;
            let number = *numbers.entry(bucket).or_insert(lists.len() as u32) as usize;
            if number == lists.len() {
                lists.push(Vec::new());
            }
            lists[number].push(member);
        }
        let mut buckets = Buckets::default();
        lists.into_iter().for_each(|members| buckets.push(members));
        let waits = |member: Member| {
            let bucket = study.bucket_of(id(member));
            bucket.and_then(|bucket| waiting.get(&bucket)).is_some_and(|open| open.contains(&id(member)))
        };
        let (present, listed) = (numbers.len(), buckets.len());
        assert!(present == listed, "{present} buckets are numbered, {listed} are listed");
        let previous = PreviousPlan { buckets: &buckets, max_buckets: before };
        let replanned = replan(problem, tree, previous, |member| !waits(member), desired).ok()?;
        if replanned.moved.is_empty() {
            return None;
        }
        let (assigned, instances) = (replanned.bucket_of.len(), problem.len());
        assert!(assigned == instances, "{assigned} of {instances} instances have a bucket after the replan");
        debug_assert!(replanned.moved.iter().all(|member| waits(*member)), "a started instance moves");
        let old = buckets.bucket_of();
        let changed: BTreeSet<u32> = replanned
            .moved
            .iter()
            .flat_map(|member| [old[member.0 as usize], replanned.bucket_of[member.0 as usize]])
            .collect();
        // A bucket's instances read the same.
        let mut new: BTreeMap<(u32, u32), BucketPlan> = BTreeMap::new();
        for member in problem.members().filter(|member| waits(*member)) {
            let number = replanned.bucket_of[member.0 as usize];
            if changed.contains(&number) {
                let pixels = self.pixels[member.0 as usize];
                let empty = || BucketPlan { instances: Vec::new(), pixels };
                let bucket = new.entry((number, problem.inputs(member))).or_insert_with(empty);
                bucket.instances.push(id(member));
            }
        }
        debug_assert!(new.values().all(|bucket| !bucket.instances.is_empty()), "a new bucket is empty");
        Some(new.into_values().collect())
    }
}
