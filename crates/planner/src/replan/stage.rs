//! Merge problem of one stage of a running study, and its buckets for other slots or other costs.

use crate::ReuseMode;
use crate::builder::StageProblem;
use crate::cost_classes::CostClasses;
use pleach_dispatch::cost_model::CostModel;
use pleach_dispatch::plan::BucketPlan;
use pleach_dispatch::study::{MAX_MERGED_INSTANCES, StudySnapshot};
use pleach_dispatch::{BucketId, InstanceId};
use pleach_reuse::{
    Buckets, Dataflow, Member, MergeProblem, PreviousPlan, ReuseTree, StageLoad, Strategy, TaskGraph,
    adjust_ranges, bucket_costs, even_out_ranges, replan, tree_order,
};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::num::NonZeroUsize;

/// Merge problem of one stage.
#[derive(Debug)]
pub struct ReplannedStage {
    /// Instance of each member of the problem.
    members: Vec<InstanceId>,
    /// Pixels of each member's tile.
    pixels: Vec<u64>,
    problem: MergeProblem,
    /// Inputs of each task. A chain under the tree scope.
    tasks: TaskGraph,
    sharing: SharingTables,
    /// Whether tasks of different buckets share their results.
    shares_across_buckets: bool,
    /// Seconds of its distinct tasks, by the reuse tree.
    unique_seconds: f64,
    /// `None` if the costs are not those of operations.
    classes: Option<CostClasses>,
}

/// Shared tasks of the instances, for the kind of the buckets.
#[derive(Debug)]
enum SharingTables {
    /// Buckets are branches of this tree.
    Tree(ReuseTree),
    /// Buckets are ranges.
    Ranges(RangeTables),
}

/// Instances of a stage in the order of its ranges, and their tasks.
#[derive(Debug)]
pub struct RangeTables {
    order: Vec<Member>,
    dataflow: Dataflow,
}

impl SharingTables {
    /// Returns the seconds of the distinct tasks.
    fn unique_seconds(&self) -> f64 {
        match self {
            Self::Tree(tree) => tree.unique_cost(),
            Self::Ranges(RangeTables { dataflow, .. }) => {
                dataflow.tasks().map(|task| dataflow.cost(task)).sum()
            }
        }
    }
}

impl RangeTables {
    /// Creates the tables of a problem. The graph of the tree scope is a chain.
    #[must_use]
    pub fn new(problem: &MergeProblem, graph: &TaskGraph) -> Self {
        Self { order: tree_order(problem, graph), dataflow: Dataflow::build(problem, graph) }
    }
}

impl ReplannedStage {
    /// Creates the stage of a problem with fixed costs. `pixels` are those of each member's tile, and `ranges` is `None` if
    /// the buckets are branches of the reuse tree. Tasks of different ranges share their results.
    #[must_use]
    pub fn new(
        members: Vec<InstanceId>,
        pixels: Vec<u64>,
        problem: MergeProblem,
        ranges: Option<RangeTables>,
    ) -> Self {
        let tasks = TaskGraph::chain(problem.levels());
        let tree = || SharingTables::Tree(ReuseTree::build(&problem));
        let shares_across_buckets = ranges.is_some();
        let sharing = ranges.map_or_else(tree, SharingTables::Ranges);
        let unique_seconds = sharing.unique_seconds();
        Self {
            members,
            pixels,
            problem,
            tasks,
            sharing,
            shares_across_buckets,
            unique_seconds,
            classes: None,
        }
    }

    pub(crate) fn of_problem(
        stage: StageProblem,
        mode: ReuseMode,
        pixels: impl Fn(pleach_reuse::InstanceId) -> u64,
    ) -> Self {
        let StageProblem { members, problem, tree, tasks, mut classes, .. } = stage;
        let tasks = if mode.is_dataflow() { tasks } else { TaskGraph::chain(problem.levels()) };
        let unique_seconds = tree.unique_cost();
        let has_ranges = matches!(mode.strategy(), Some(Strategy::Ranges { .. }));
        let sharing = match has_ranges {
            // Ranges are cut without the tree, which takes as much memory as all other tables of a stage.
            true => SharingTables::Ranges(RangeTables::new(&problem, &tasks)),
            false => SharingTables::Tree(tree),
        };
        let pixels = members.iter().map(|instance| pixels(*instance)).collect();
        let members = members.into_iter().map(|instance| InstanceId(instance.0)).collect();
        for (member, level) in distinct_tasks(&problem, &sharing) {
            classes.add_work(level, problem.keys(member)[level], problem.cost(member, level));
        }
        let shares_across_buckets = mode.is_dataflow();
        let classes = Some(classes);
        Self { members, pixels, problem, tasks, sharing, shares_across_buckets, unique_seconds, classes }
    }

    /// Returns whether the measured costs need other buckets than the present ones.
    pub(super) fn has_new_costs(&self, costs: &CostModel) -> bool {
        self.classes.as_ref().is_some_and(|classes| classes.changes(costs).is_some())
    }

    /// Takes over measured costs if they need other buckets. Returns whether they do.
    pub(super) fn update_costs(&mut self, costs: &CostModel) -> bool {
        let Some(classes) = &mut self.classes else { return false };
        let Some(changes) = classes.changes(costs) else { return false };
        self.problem.scale_costs(|level, key| classes.factor(&changes, level, key));
        classes.apply(&changes);
        let before = self.sharing.unique_seconds();
        match &mut self.sharing {
            SharingTables::Ranges(ranges) => ranges.dataflow.update_costs(&self.problem),
            SharingTables::Tree(tree) => *tree = ReuseTree::build(&self.problem),
        }
        // Ranges have no tree any more. Its seconds change about as those of their distinct tasks.
        let ratio = self.sharing.unique_seconds() / before;
        if ratio.is_finite() {
            self.unique_seconds *= ratio;
        }
        true
    }

    /// Returns the work of the stage.
    pub(super) fn load(&self) -> StageLoad {
        StageLoad { instances: self.members.len(), seconds: self.unique_seconds }
    }

    /// Returns the minimum seconds of each instance alone.
    pub(super) fn seconds(&self) -> impl Iterator<Item = (pleach_reuse::InstanceId, f64)> {
        let levels = self.problem.levels();
        let mut tasks = vec![0.0; levels];
        self.problem.members().zip(&self.members).map(move |(member, id)| {
            tasks.iter_mut().enumerate().for_each(|(level, task)| *task = self.problem.cost(member, level));
            (pleach_reuse::InstanceId(id.0), self.tasks.longest_chain(&tasks))
        })
    }
}

/// Returns a member and the level of each distinct task.
fn distinct_tasks(problem: &MergeProblem, sharing: &SharingTables) -> Vec<(Member, usize)> {
    let dataflow = match sharing {
        SharingTables::Ranges(RangeTables { dataflow, .. }) => dataflow,
        SharingTables::Tree(tree) => {
            let nodes =
                |level| (tree.level(level).start.0..tree.level(level).end.0).map(pleach_reuse::NodeId);
            let first = |level| nodes(level).map(move |node| (tree.first_member(node), level));
            return (0..tree.levels()).flat_map(first).collect();
        }
    };
    let mut seen = vec![false; dataflow.len()];
    let all = problem.members().flat_map(|member| (0..problem.levels()).map(move |level| (member, level)));
    let is_first = |(member, level): &(Member, usize)| {
        !std::mem::replace(&mut seen[dataflow.task(*member, *level).0 as usize], true)
    };
    all.filter(is_first).collect()
}

impl ReplannedStage {
    /// Returns the buckets of this stage that change, or `None`: for the `desired` number of buckets on `slots`, from a plan for
    /// the number `before`. `has_other_costs` means that the present buckets were cut with other costs.
    pub(super) fn replan(
        &self,
        snapshot: &StudySnapshot,
        (before, desired): (NonZeroUsize, NonZeroUsize),
        slots: NonZeroUsize,
        has_other_costs: bool,
    ) -> Option<Vec<BucketPlan>> {
        let Self { members, problem, .. } = self;
        let tree = match &self.sharing {
            SharingTables::Ranges(ranges) => {
                return Some(self.adjust(ranges, snapshot, (desired, slots), has_other_costs));
            }
            SharingTables::Tree(tree) => tree,
        };
        let id = |member: Member| members[member.0 as usize];
        let waits = |member: Member| snapshot.is_unstarted(id(member));
        if !problem.members().any(waits) {
            return None;
        }
        let buckets = self.present(snapshot)?;
        let previous = PreviousPlan { buckets: &buckets, max_buckets: before, has_other_costs };
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

    /// Returns the present buckets, in the order of their first members.
    fn present(&self, snapshot: &StudySnapshot) -> Option<Buckets> {
        let mut numbers: HashMap<BucketId, u32> = HashMap::new();
        let mut lists: Vec<Vec<Member>> = Vec::new();
        for member in self.problem.members() {
            let bucket = snapshot.bucket_of(self.members[member.0 as usize])?;
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
        Some(buckets)
    }

    /// Returns the seconds of the unstarted instances if they were rebuilt for each number of buckets and slots, with the costs
    /// of the last replan. `before` is the present number of buckets. `None` if no instance waits, or if more buckets cost
    /// none.
    pub(super) fn unstarted_seconds(
        &self,
        snapshot: &StudySnapshot,
        before: NonZeroUsize,
        limits: &[(NonZeroUsize, NonZeroUsize)],
    ) -> Option<Vec<f64>> {
        let waits = |member: Member| snapshot.is_unstarted(self.members[member.0 as usize]);
        if self.shares_across_buckets || !self.problem.members().any(waits) {
            return None;
        }
        match &self.sharing {
            SharingTables::Tree(tree) => {
                let present = self.present(snapshot)?;
                let previous =
                    PreviousPlan { buckets: &present, max_buckets: before, has_other_costs: false };
                let limits: Vec<NonZeroUsize> = limits.iter().map(|(buckets, _)| *buckets).collect();
                replanned_seconds(&self.problem, tree, previous, |member| !waits(member), &limits)
            }
            SharingTables::Ranges(ranges) => {
                let present = self.unstarted_ranges(ranges, snapshot);
                let seconds = |(buckets, slots): &(NonZeroUsize, NonZeroUsize)| {
                    let count = self.range_count(&present, *buckets, *slots);
                    let adjusted = adjust_ranges(&self.problem, &ranges.dataflow, &present, count);
                    ranges.dataflow.bucket_costs(&adjusted).iter().map(|bucket| bucket.cost).sum()
                };
                Some(limits.iter().map(seconds).collect())
            }
        }
    }

    /// Returns the present ranges of the unstarted instances, in the order of their first instances.
    fn unstarted_ranges(&self, ranges: &RangeTables, snapshot: &StudySnapshot) -> Buckets {
        let id = |member: &Member| self.members[member.0 as usize];
        let waits = |member: &Member| snapshot.is_unstarted(id(member));
        // A bucket of returned instances may lie between those of another one.
        let mut numbers: HashMap<BucketId, usize> = HashMap::new();
        let mut lists: Vec<Vec<Member>> = Vec::new();
        for member in ranges.order.iter().copied().filter(waits) {
            let Some(bucket) = snapshot.bucket_of(id(&member)) else { continue };
            let number = *numbers.entry(bucket).or_insert(lists.len());
            if number == lists.len() {
                lists.push(Vec::new());
            }
            lists[number].push(member);
        }
        let mut present = Buckets::default();
        lists.into_iter().for_each(|members| present.push(members));
        present
    }

    /// Returns the number of ranges of the unstarted instances. Ranges stay as large as for the whole stage, which keeps their
    /// reuse. One for each slot at least.
    fn range_count(&self, present: &Buckets, desired: NonZeroUsize, slots: NonZeroUsize) -> NonZeroUsize {
        let unstarted: usize = present.iter().map(<[Member]>::len).sum();
        let share = desired.get().saturating_mul(unstarted).div_ceil(self.members.len().max(1));
        NonZeroUsize::new(share.max(slots.get())).unwrap_or(NonZeroUsize::MIN)
    }

    /// Returns ranges of the unstarted instances that differ from their present buckets.
    fn adjust(
        &self,
        ranges: &RangeTables,
        snapshot: &StudySnapshot,
        (desired, slots): (NonZeroUsize, NonZeroUsize),
        has_other_costs: bool,
    ) -> Vec<BucketPlan> {
        let id = |member: &Member| self.members[member.0 as usize];
        let present = self.unstarted_ranges(ranges, snapshot);
        let count = self.range_count(&present, desired, slots);
        let (problem, dataflow) = (&self.problem, &ranges.dataflow);
        let adjusted = match has_other_costs {
            true => even_out_ranges(problem, dataflow, &present, count, MAX_MERGED_INSTANCES),
            false => adjust_ranges(problem, dataflow, &present, count),
        };
        let before: HashSet<&[Member]> = present.iter().collect();
        let plan = |members: &[Member]| BucketPlan {
            instances: members.iter().map(id).collect(),
            pixels: self.pixels[members[0].0 as usize],
        };
        // With fewer ranges than inputs, a range has several of them.
        let same = |a: &Member, b: &Member| problem.inputs(*a) == problem.inputs(*b);
        let ranges = adjusted.iter().flat_map(|members| members.chunk_by(same));
        ranges.filter(|members| !before.contains(members)).map(plan).collect()
    }
}

/// Returns the seconds of the unstarted instances in the buckets of a replan, for each maximum number of buckets.
/// `is_started` marks the instances that stay. `None` if the previous buckets do not hold the instances of the problem.
///
/// The manager and `pleach-simulation` share this function.
pub fn replanned_seconds(
    problem: &MergeProblem,
    tree: &ReuseTree,
    previous: PreviousPlan<'_>,
    is_started: impl Fn(Member) -> bool,
    limits: &[NonZeroUsize],
) -> Option<Vec<f64>> {
    let of = |limit: &NonZeroUsize| {
        let planned = replan(problem, tree, previous, &is_started, *limit).ok()?;
        let costs = bucket_costs(tree, &planned.buckets(), |member| !is_started(member));
        Some(costs.iter().map(|bucket| bucket.cost).sum::<f64>())
    };
    limits.iter().map(of).collect()
}
