//! Laws of the planner, each checked against a slow reference implementation.

#![expect(
    clippy::unwrap_used,
    reason = "generators and models are tests too, though outside of test functions"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroUsize;

use pleach_reuse::{
    CompactGraph, ExternalIndex, InstanceId, JobGraph, LeftoverRule, LevelBytes, Member, MergeProblem,
    Merging, Neighbors, ReuseSummary, ReuseTree, RunId, Runs, SlotIndex, Source, StageIndex, Strategy,
    TaskCosts, WorkflowShape, bucket_costs, critical_path_seconds, lower_bound_seconds, peak_bytes,
};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::strategy::Strategy as Generator;

/// A problem with costs by level and key only, so that all instances that share a task agree on its cost.
#[derive(Debug, Clone)]
struct Case {
    levels: usize,
    inputs: Vec<u32>,
    keys: Vec<u32>,
    unit_costs: Vec<f64>,
}

const KEYS: u32 = 3;

impl Case {
    fn problem(&self) -> MergeProblem {
        let cost = |(at, key): (usize, &u32)| self.unit_costs[at % self.levels] * f64::from(key + 1);
        let costs = self.keys.iter().enumerate().map(cost).collect();
        MergeProblem::new(self.levels, self.inputs.clone(), self.keys.clone(), TaskCosts::PerTask(costs))
            .unwrap()
    }

    /// Returns the tasks of some members as prefixes of keys, each with its cost.
    fn prefixes(&self, members: &[Member]) -> BTreeMap<(u32, Vec<u32>), f64> {
        let mut prefixes = BTreeMap::new();
        for member in members {
            let at = member.0 as usize;
            let keys = &self.keys[at * self.levels..][..self.levels];
            for (level, key) in keys.iter().enumerate() {
                let prefix = (self.inputs[at], keys[..=level].to_vec());
                prefixes.insert(prefix, self.unit_costs[level] * f64::from(key + 1));
            }
        }
        prefixes
    }
}

fn case() -> impl Generator<Value = Case> {
    (1_usize..5, 0_usize..40).prop_flat_map(|(levels, instances)| {
        // Whole costs make sums independent of their order.
        let unit_costs = vec((1_u32..9).prop_map(f64::from), levels);
        (vec(0_u32..3, instances), vec(0..KEYS, levels * instances), unit_costs)
            .prop_map(move |(inputs, keys, unit_costs)| Case { levels, inputs, keys, unit_costs })
    })
}

fn strategy() -> impl Generator<Value = (Strategy, usize)> {
    let ending = prop_oneof![
        Just(LeftoverRule::WholeGroups),
        Just(LeftoverRule::Single),
        Just(LeftoverRule::ChunkUnderRoot)
    ];
    let limit = (1_usize..12).prop_map(|size| NonZeroUsize::new(size).unwrap());
    prop_oneof![
        Just((Strategy::Stage, 1)),
        limit
            .clone()
            .prop_map(|max_bucket_size| (Strategy::Naive { max_bucket_size }, max_bucket_size.get())),
        limit.clone().prop_map(|max_bucket_size| (Strategy::Sca { max_bucket_size }, max_bucket_size.get())),
        (limit, ending).prop_map(|(max_bucket_size, ending)| {
            (Strategy::Rtma { max_bucket_size, ending }, max_bucket_size.get())
        }),
    ]
}

proptest! {
    #[test]
    fn a_tree_has_one_node_per_distinct_prefix(case in case()) {
        let problem = case.problem();
        let tree = ReuseTree::build(&problem);
        let prefixes = case.prefixes(&problem.members().collect::<Vec<_>>());
        let per_level = |level| prefixes.keys().filter(|(_, keys)| keys.len() == level).count();
        prop_assert_eq!(tree.nodes_per_level(), (1..=case.levels).map(per_level).collect::<Vec<_>>());
        prop_assert_eq!(tree.unique_cost(), prefixes.values().sum::<f64>());
        for member in problem.members() {
            prop_assert_eq!(tree.upwards(member).count(), case.levels);
            prop_assert!(tree.upwards(member).all(|node| tree.first_member(node) <= member));
        }
    }

    #[test]
    fn every_instance_is_in_one_bucket_within_the_limit(case in case(), (strategy, limit) in strategy()) {
        let problem = case.problem();
        let tree = ReuseTree::build(&problem);
        let buckets = strategy.solve(&problem, &tree).unwrap();
        let mut members: Vec<Member> = buckets.iter().flatten().copied().collect();
        members.sort_unstable();
        prop_assert_eq!(members, problem.members().collect::<Vec<_>>());
        prop_assert!(buckets.iter().all(|members| (1..=limit).contains(&members.len())));
        for members in buckets.iter() {
            let inputs: BTreeSet<u32> = members.iter().map(|member| problem.inputs(*member)).collect();
            prop_assert_eq!(inputs.len(), 1);
        }
        let bucket_of = buckets.bucket_of();
        for (bucket, members) in (0..).zip(buckets.iter()) {
            prop_assert!(members.iter().all(|member| bucket_of[member.0 as usize] == bucket));
        }
        prop_assert_eq!(strategy.solve(&case.problem(), &ReuseTree::build(&case.problem())).unwrap(), buckets);
    }

    #[test]
    fn bucket_costs_equal_a_recount_of_prefixes(case in case(), (strategy, _) in strategy(), skip in 1_u32..5) {
        let problem = case.problem();
        let tree = ReuseTree::build(&problem);
        let buckets = strategy.solve(&problem, &tree).unwrap();
        let counted = |member: Member| member.0.is_multiple_of(skip);
        for (cost, members) in bucket_costs(&tree, &buckets, counted).iter().zip(buckets.iter()) {
            let members: Vec<Member> = members.iter().copied().filter(|member| counted(*member)).collect();
            let prefixes = case.prefixes(&members);
            prop_assert_eq!(cost.tasks, prefixes.len());
            prop_assert_eq!(cost.cost, prefixes.values().sum::<f64>());
        }
    }

    #[test]
    fn no_strategy_is_worse_than_stage_level(case in case(), (strategy, _) in strategy()) {
        let problem = case.problem();
        let tree = ReuseTree::build(&problem);
        let of = |strategy: Strategy| ReuseSummary::new(&problem, &tree, &strategy.solve(&problem, &tree).unwrap(), |_| true);
        let (stage, found) = (of(Strategy::Stage), of(strategy));
        prop_assert_eq!((stage.reuse_fraction, stage.cost_reuse_fraction), (0.0, 0.0));
        prop_assert_eq!(stage.tasks_after_stage_merging, found.tasks_after_stage_merging);
        prop_assert!(found.tasks <= stage.tasks && found.cost <= stage.cost);
        prop_assert!(found.tasks >= tree.len() && found.cost >= tree.unique_cost());
        prop_assert!(found.min_bucket_cost <= found.max_bucket_cost);
    }

    #[test]
    fn tiles_are_planned_as_if_each_were_alone(case in case(), (strategy, _) in strategy()) {
        let problem = case.problem();
        let together = strategy.solve(&problem, &ReuseTree::build(&problem)).unwrap();
        let together: BTreeSet<Vec<Member>> = together.iter().map(<[Member]>::to_vec).collect();
        let mut alone = BTreeSet::new();
        for tile in 0..3 {
            let of_tile: Vec<Member> =
                problem.members().filter(|member| problem.inputs(*member) == tile).collect();
            let keys = of_tile.iter().flat_map(|member| problem.keys(*member).iter().copied()).collect();
            let cost = |member: &Member| (0..case.levels).map(|level| problem.cost(*member, level)).collect::<Vec<_>>();
            let costs = TaskCosts::PerTask(of_tile.iter().flat_map(cost).collect());
            let part = MergeProblem::new(case.levels, vec![tile; of_tile.len()], keys, costs).unwrap();
            let buckets = strategy.solve(&part, &ReuseTree::build(&part)).unwrap();
            alone.extend(buckets.iter().map(|members| {
                members.iter().map(|member| of_tile[member.0 as usize]).collect::<Vec<_>>()
            }));
        }
        prop_assert_eq!(together, alone);
    }
}

/// Relations between tiles.
const SLOTS: usize = 2;

/// A workflow of up to four stages over some evaluations and tiles.
fn runs() -> impl Generator<Value = Runs> {
    let source = |stage: usize| {
        let external = (0_u32..2).prop_map(|column| Source::External(ExternalIndex(column))).boxed();
        if stage == 0 {
            return external;
        }
        let earlier = (0..stage as u32).prop_map(StageIndex);
        let slot = (0..SLOTS as u32).prop_map(SlotIndex);
        prop_oneof![
            external,
            earlier.clone().prop_map(Source::Stage),
            earlier.clone().prop_map(Source::Reference),
            (earlier.clone(), slot.clone()).prop_map(|(stage, slot)| Source::StageAt(stage, slot)),
            (earlier, slot.clone()).prop_map(|(stage, slot)| Source::ReferenceAt(stage, slot)),
            (0_u32..2, slot).prop_map(|(column, slot)| Source::ExternalAt(ExternalIndex(column), slot)),
        ]
        .boxed()
    };
    let stages =
        (1_usize..5).prop_flat_map(move |count| (0..count).map(|s| vec(source(s), 0..4)).collect::<Vec<_>>());
    (stages, 1_usize..7, 0_usize..4).prop_flat_map(|(stages, evaluations, tiles)| {
        let keys = vec(0..KEYS, evaluations * stages.len());
        // External inputs of two tiles may be equal.
        let neighbors = vec(0..tiles.max(1) as u32, tiles * SLOTS);
        (keys, vec(0_u32..2, tiles * 2), neighbors).prop_map(move |(keys, externals, of_slots)| {
            let shape = WorkflowShape::new(stages.clone(), 2).unwrap();
            let neighbors = Neighbors { tiles: of_slots, slots: SLOTS, ..Neighbors::default() };
            Runs::with_neighbors(shape, (evaluations, tiles), keys, externals, true, neighbors).unwrap()
        })
    })
}

/// A stage instance with its whole history, for slow comparison.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum History {
    External(u32),
    Instance { stage: StageIndex, key: u32, inputs: Vec<History> },
}

fn history(runs: &Runs, run: RunId, stage: StageIndex) -> History {
    let reference = runs.run(0, runs.tile(run));
    let inputs = runs.shape().sources(stage).iter().map(|source| match *source {
        Source::External(column) => History::External(runs.external(run, column)),
        Source::Stage(parent) => history(runs, run, parent),
        Source::Reference(parent) => history(runs, reference, parent),
        Source::ExternalAt(column, slot) => {
            History::External(runs.external(runs.neighbor(run, slot), column))
        }
        Source::StageAt(parent, slot) => history(runs, runs.neighbor(run, slot), parent),
        Source::ReferenceAt(parent, slot) => history(runs, runs.neighbor(reference, slot), parent),
    });
    History::Instance { stage, key: runs.key(run, stage), inputs: inputs.collect() }
}

fn all_runs(runs: &Runs) -> impl Iterator<Item = RunId> + use<> {
    (0..runs.len() as u32).map(RunId)
}

fn all_stages(runs: &Runs) -> impl Iterator<Item = StageIndex> + use<> {
    (0..runs.shape().stages() as u32).map(StageIndex)
}

proptest! {
    #[test]
    fn instances_merge_exactly_when_their_histories_are_equal(runs in runs()) {
        let graph = CompactGraph::build(&runs, Merging::Merged);
        let mut by_history: BTreeMap<History, (InstanceId, bool)> = BTreeMap::new();
        for run in all_runs(&runs) {
            for stage in all_stages(&runs) {
                let id = graph.instance_of(run, stage);
                let entry = by_history.entry(history(&runs, run, stage)).or_insert((id, true));
                prop_assert_eq!(entry.0, id);
                entry.1 &= runs.is_reference(run);
            }
        }
        prop_assert_eq!(by_history.len(), graph.instances().len());
        for (id, reference_only) in by_history.values() {
            prop_assert_eq!(graph.instance(*id).reference_only, *reference_only);
        }
    }

    #[test]
    fn graphs_are_consistent(runs in runs(), merge: bool) {
        let graph = CompactGraph::build(&runs, if merge { Merging::Merged } else { Merging::None });
        let mut consumers = vec![0; graph.instances().len()];
        let mut inputs = BTreeMap::new();
        for id in (0..graph.instances().len() as u32).map(InstanceId) {
            let instance = graph.instance(id);
            prop_assert_eq!(graph.instance_of(instance.first_run, instance.stage), id);
            prop_assert!(graph.parents(id).all(|parent| parent < id));
            prop_assert_eq!(graph.inputs(id).len(), runs.shape().sources(instance.stage).len());
            for parent in graph.parents(id).collect::<BTreeSet<_>>() {
                consumers[parent.0 as usize] += 1;
            }
            let key = (instance.stage, graph.inputs(id).iter().map(|i| format!("{i:?}")).collect::<Vec<_>>());
            prop_assert_eq!(*inputs.entry(key).or_insert(instance.inputs), instance.inputs);
        }
        let distinct: BTreeSet<_> = inputs.iter().map(|((stage, _), id)| (stage, id)).collect();
        prop_assert_eq!(distinct.len(), inputs.len());
        for (id, consumers) in (0..).map(InstanceId).zip(consumers) {
            prop_assert_eq!(graph.consumers(id), consumers);
        }
        if !merge {
            prop_assert_eq!(graph.instances().len(), runs.len() * runs.shape().stages());
        }
        prop_assert_eq!(
            all_stages(&runs).map(|stage| graph.of_stage(stage).count()).sum::<usize>(),
            graph.instances().len()
        );
    }

    #[test]
    fn no_plan_beats_the_bound(runs in runs(), (strategy, _) in strategy(), workers in 1_usize..9) {
        // Every stage is planned with two tasks of 2 s and 1 s. The key of the second one is unique to the
        // instance.
        let workers = NonZeroUsize::new(workers).unwrap();
        let graph = CompactGraph::build(&runs, Merging::Merged);
        let (mut seconds, mut unique) = (Vec::new(), 0.0);
        let mut job_of = vec![0; graph.instances().len()];
        for stage in all_stages(&runs) {
            let ids: Vec<InstanceId> = graph.of_stage(stage).collect();
            let inputs = ids.iter().map(|id| graph.instance(*id).inputs.0).collect();
            let keys = ids.iter().flat_map(|id| [id.0 % 2, id.0]).collect();
            let problem = MergeProblem::new(2, inputs, keys, TaskCosts::PerLevel(vec![2.0, 1.0])).unwrap();
            let tree = ReuseTree::build(&problem);
            let buckets = strategy.solve(&problem, &tree).unwrap();
            for (id, bucket) in ids.iter().zip(buckets.bucket_of()) {
                job_of[id.0 as usize] = seconds.len() as u32 + bucket;
            }
            seconds.extend(bucket_costs(&tree, &buckets, |_| true).iter().map(|bucket| bucket.cost));
            unique += tree.unique_cost();
        }
        let work: f64 = seconds.iter().sum();
        let jobs = JobGraph::new(seconds, &job_of, &graph).unwrap();
        let makespan = jobs.makespan_seconds(workers);
        let chain = critical_path_seconds(&graph, &vec![3.0; graph.instances().len()]);
        prop_assert!(makespan >= lower_bound_seconds(chain, unique, workers) - 1e-9);
        prop_assert!(makespan <= work + 1e-9);
        prop_assert_eq!(jobs.makespan_seconds(NonZeroUsize::MIN), work);
        prop_assert_eq!(jobs.makespan_seconds(workers), makespan);
    }

    #[test]
    fn peak_bytes_equal_a_simulation(case in case(), sizes in vec((0_u64..9, 0_u64..9, 0_usize..5), 4)) {
        let problem = case.problem();
        let tree = ReuseTree::build(&problem);
        let levels: Vec<LevelBytes> = sizes
            .iter()
            .take(case.levels)
            .enumerate()
            .map(|(level, (output_bytes, scratch_bytes, later))| LevelBytes {
                output_bytes: *output_bytes,
                scratch_bytes: *scratch_bytes,
                last_read: (level + later).min(case.levels - 1),
            })
            .collect();
        let members: Vec<Member> = problem.members().collect();
        let paths: BTreeSet<Vec<u32>> = members
            .iter()
            .map(|member| tree.upwards(*member).map(|node| node.0).collect::<Vec<_>>().into_iter().rev().collect())
            .collect();
        let expected = simulate(&paths.into_iter().collect::<Vec<_>>(), 100, &levels);
        prop_assert_eq!(peak_bytes(&problem, &tree, &members, 100, &levels), expected);
    }
}

/// Runs the tasks of a tree depth-first and holds each output until its readers have run. Returns the peak
/// bytes.
fn simulate(paths: &[Vec<u32>], input_bytes: u64, levels: &[LevelBytes]) -> u64 {
    let mut order: Vec<Vec<u32>> = Vec::new();
    for path in paths {
        for length in 1..=path.len() {
            if !order.contains(&path[..length].to_vec()) {
                order.push(path[..length].to_vec());
            }
        }
    }
    let held_until = |task: &Vec<u32>| {
        let reader = levels[task.len() - 1].last_read + 1;
        order.iter().rposition(|other| other.len() == reader && other.starts_with(task)).unwrap()
    };
    let at = |now: usize| {
        let outputs = order[..=now].iter().filter(|task| held_until(task) >= now);
        let outputs: u64 = outputs.map(|task| levels[task.len() - 1].output_bytes).sum();
        input_bytes + outputs + levels[order[now].len() - 1].scratch_bytes
    };
    (0..order.len()).map(at).max().unwrap_or(0)
}
