//! Replans a running study for more or fewer slots: unstarted instances are rebuilt into a suitable number of buckets, and as
//! few as possible change their bucket (`pleach_reuse::replan`). Ranges are cut again from the unstarted instances, in the
//! same order, so that ranges stay contiguous.

use super::builder::StageProblem;
use crate::ReuseMode;
use pleach_dispatch::plan::BucketPlan;
use pleach_dispatch::study::{Replanner, StudySnapshot};
use pleach_dispatch::{BucketId, InstanceId};
use pleach_reuse::{
    Buckets, Dataflow, Member, MergeProblem, PreviousPlan, ReuseTree, Strategy, TaskGraph, cut_ranges,
    replan, tree_order,
};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::num::NonZeroUsize;

/// Buckets for each slot: MaxBuckets of thesis section 4.5 and paper 001 section 4.2.4.
const BUCKETS_PER_SLOT: usize = 3;

/// Merge problems of a running study.
#[derive(Debug)]
pub struct StudyReplanner {
    stages: Vec<ReplannedStage>,
    max_buckets: NonZeroUsize,
    /// With fewer buckets, the workers that the plan was made for would lack the memory.
    min_buckets: NonZeroUsize,
}

/// Merge problem of one stage.
#[derive(Debug)]
pub struct ReplannedStage {
    /// Instance of each member of the problem.
    pub members: Vec<InstanceId>,
    /// Pixels of each member's tile.
    pub pixels: Vec<u64>,
    /// The problem.
    pub problem: MergeProblem,
    /// Its reuse tree.
    pub tree: ReuseTree,
    /// Order and tasks of the ranges. `None` if the buckets are branches of the tree.
    pub ranges: Option<RangeTables>,
}

/// Instances of a stage in the order of its ranges, and their tasks.
#[derive(Debug)]
pub struct RangeTables {
    order: Vec<Member>,
    dataflow: Dataflow,
}

impl RangeTables {
    /// Creates the tables of a problem. The graph of the tree scope is a chain.
    #[must_use]
    pub fn new(problem: &MergeProblem, graph: &TaskGraph) -> Self {
        Self { order: tree_order(problem, graph), dataflow: Dataflow::build(problem, graph) }
    }
}

impl StudyReplanner {
    /// Creates the replanner of a plan that has `max_buckets` for each stage now. It never goes below `min_buckets`.
    pub fn new(stages: Vec<ReplannedStage>, max_buckets: NonZeroUsize, min_buckets: NonZeroUsize) -> Self {
        Self { stages, max_buckets, min_buckets }
    }

    /// Returns the number of buckets for each stage after the last replan.
    pub fn max_buckets(&self) -> NonZeroUsize {
        self.max_buckets
    }
}

impl ReplannedStage {
    pub(crate) fn of_problem(
        stage: StageProblem,
        mode: ReuseMode,
        pixels: impl Fn(pleach_reuse::InstanceId) -> u64,
    ) -> Self {
        let StageProblem { members, problem, tree, tasks, .. } = stage;
        let tasks = if mode.is_dataflow() { tasks } else { TaskGraph::chain(problem.levels()) };
        let has_ranges = matches!(mode.strategy(), Some(Strategy::Ranges { .. }));
        let ranges = has_ranges.then(|| RangeTables::new(&problem, &tasks));
        let pixels = members.iter().map(|instance| pixels(*instance)).collect();
        let members = members.into_iter().map(|instance| InstanceId(instance.0)).collect();
        Self { members, pixels, problem, tree, ranges }
    }
}

impl Replanner for StudyReplanner {
    fn replan(&mut self, snapshot: &StudySnapshot, slots: u32) -> Option<Vec<BucketPlan>> {
        // Without slots no worker would run new buckets, so the present ones stay.
        let wanted = NonZeroUsize::new(slots as usize * BUCKETS_PER_SLOT)?.max(self.min_buckets);
        let before = std::mem::replace(&mut self.max_buckets, wanted);
        // With an unchanged number `pleach_reuse::replan` moves no instance.
        if before == wanted {
            return None;
        }
        let buckets: Vec<BucketPlan> = self
            .stages
            .iter()
            .flat_map(|stage| stage.replan(snapshot, before, wanted).unwrap_or_default())
            .collect();
        (!buckets.is_empty()).then_some(buckets)
    }
}

impl ReplannedStage {
    /// Returns the buckets of this stage that change, or `None`.
    fn replan(
        &self,
        snapshot: &StudySnapshot,
        before: NonZeroUsize,
        desired: NonZeroUsize,
    ) -> Option<Vec<BucketPlan>> {
        let Self { members, problem, tree, .. } = self;
        if let Some(ranges) = &self.ranges {
            return Some(self.cut_again(ranges, snapshot, desired));
        }
        let id = |member: Member| members[member.0 as usize];
        let waits = |member: Member| snapshot.is_unstarted(id(member));
        if !problem.members().any(waits) {
            return None;
        }
        // Present buckets, numbered from 0 in the order of their first members.
        let mut numbers: HashMap<BucketId, u32> = HashMap::new();
        let mut lists: Vec<Vec<Member>> = Vec::new();
        for member in problem.members() {
            let bucket = snapshot.bucket_of(id(member))?;
            let number = *numbers.entry(bucket).or_insert(lists.len() as u32) as usize;
            if number == lists.len() {
                lists.push(Vec::new());
            }
            lists[number].push(member);
        }
        let mut buckets = Buckets::default();
        lists.into_iter().for_each(|members| buckets.push(members));
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
        let changed: HashSet<u32> = replanned
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

    /// Returns ranges of the unstarted instances that differ from their present buckets.
    fn cut_again(
        &self,
        ranges: &RangeTables,
        snapshot: &StudySnapshot,
        desired: NonZeroUsize,
    ) -> Vec<BucketPlan> {
        let id = |member: &Member| self.members[member.0 as usize];
        let waits = |member: &Member| snapshot.is_unstarted(id(member));
        let unstarted: Vec<Member> = ranges.order.iter().copied().filter(waits).collect();
        // Ranges stay as large as for the whole stage, which keeps their reuse. One for each slot at least.
        let share = (desired.get() * unstarted.len()).div_ceil(self.members.len().max(1));
        let count = share.max(desired.get() / BUCKETS_PER_SLOT);
        let count = NonZeroUsize::new(count).unwrap_or(NonZeroUsize::MIN);
        let mut present: HashMap<BucketId, usize> = HashMap::new();
        for bucket in unstarted.iter().filter_map(|member| snapshot.bucket_of(id(member))) {
            *present.entry(bucket).or_default() += 1;
        }
        let stays = |members: &[Member]| {
            let bucket = snapshot.bucket_of(id(&members[0]));
            let is_of_bucket = |member: &Member| snapshot.bucket_of(id(member)) == bucket;
            let size = bucket.and_then(|bucket| present.get(&bucket));
            size == Some(&members.len()) && members.iter().all(is_of_bucket)
        };
        let cut = cut_ranges(&self.problem, &ranges.dataflow, &unstarted, count);
        // With fewer ranges than inputs, a range has several of them.
        let same = |a: &Member, b: &Member| self.problem.inputs(*a) == self.problem.inputs(*b);
        let changed = cut.iter().flat_map(|members| members.chunk_by(same)).filter(|members| !stays(members));
        let plan = |members: &[Member]| BucketPlan {
            instances: members.iter().map(id).collect(),
            pixels: self.pixels[members[0].0 as usize],
        };
        changed.map(plan).collect()
    }
}
