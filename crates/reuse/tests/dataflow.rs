//! The dataflow graph compared with explicit identities, and transfers compared with counting.

#![expect(
    clippy::unwrap_used,
    reason = "generators and models are tests too, though outside of test functions"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroUsize;

use pleach_reuse::{
    Buckets, Dataflow, JobGraph, Member, MergeProblem, ReuseTree, SharingSchedule, TaskCosts, TaskGraph,
    TaskId, TaskReads, TransferCost, TransferPlan, best_order,
};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::strategy::Strategy as Generator;

/// A task instance with its whole history.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct History {
    task: usize,
    key: u32,
    inputs: Option<u32>,
    reads: Vec<History>,
}

fn history(problem: &MergeProblem, graph: &TaskGraph, member: Member, task: usize) -> History {
    let reads = graph.reads(task);
    History {
        task,
        key: problem.keys(member)[task],
        inputs: reads.inputs.then(|| problem.inputs(member)),
        reads: reads.tasks.iter().map(|read| history(problem, graph, member, *read)).collect(),
    }
}

/// Tasks that read some earlier ones, instances in buckets, and whole costs per task.
fn case() -> impl Generator<Value = (MergeProblem, TaskGraph, Buckets)> {
    (1_usize..6, 1_usize..14).prop_flat_map(|(tasks, instances)| {
        let reads = vec((vec(prop::bool::weighted(0.5), tasks), any::<bool>()), tasks);
        let keys = vec(0_u32..3, tasks * instances);
        let costs = vec(0_u32..9, tasks);
        (reads, keys, costs, vec(0_u32..2, instances), vec(0_usize..4, instances)).prop_map(
            move |(reads, keys, costs, inputs, bucket_of)| {
                let of = |task: usize| TaskReads {
                    tasks: (0..task).filter(|read| reads[task].0[*read]).collect(),
                    inputs: reads[task].1,
                };
                let graph = TaskGraph::new((0..tasks).map(of).collect()).unwrap();
                let costs = TaskCosts::PerLevel(costs.into_iter().map(f64::from).collect());
                let problem = MergeProblem::new(tasks, inputs, keys, costs).unwrap();
                let mut buckets = Buckets::default();
                for bucket in 0..4 {
                    let members =
                        problem.members().filter(|m| bucket_of[m.0 as usize] == bucket).collect::<Vec<_>>();
                    if !members.is_empty() {
                        buckets.push(members);
                    }
                }
                (problem, graph, buckets)
            },
        )
    })
}

proptest! {
    #[test]
    fn tasks_are_one_exactly_when_their_histories_are((problem, graph, buckets) in case()) {
        let dataflow = Dataflow::build(&problem, &graph);
        let mut by_history: BTreeMap<History, TaskId> = BTreeMap::new();
        for member in problem.members() {
            for task in 0..graph.len() {
                let history = history(&problem, &graph, member, task);
                let id = dataflow.task(member, task);
                prop_assert_eq!(*by_history.entry(history).or_insert(id), id);
                let reads: Vec<TaskId> = graph.reads(task).tasks.iter().map(|read| dataflow.task(member, *read)).collect();
                prop_assert_eq!(dataflow.reads(id), reads);
                prop_assert_eq!(dataflow.level(id), task);
            }
        }
        prop_assert_eq!(by_history.len(), dataflow.len());
        for (cost, members) in dataflow.bucket_costs(&buckets).iter().zip(buckets.iter()) {
            let tasks: BTreeSet<TaskId> = members.iter().flat_map(|member| dataflow.row(*member)).copied().collect();
            prop_assert_eq!(cost.tasks, tasks.len());
            prop_assert_eq!(cost.cost, tasks.iter().map(|task| dataflow.cost(*task)).sum::<f64>());
        }
    }

    /// The makespan of buckets executed in order on some workers is never below the lower bound. A single
    /// worker never waits.
    #[test]
    fn sharing_schedule_keeps_within_its_bounds((problem, graph, buckets) in case(), workers in 1_usize..5) {
        let dataflow = Dataflow::build(&problem, &graph);
        let mut relay = SharingSchedule::new(&dataflow);
        let mut free = vec![0.0_f64; workers];
        for members in buckets.iter() {
            free.sort_by(f64::total_cmp);
            let end = relay.begin(members, free[0]);
            prop_assert!(end >= free[0]);
            free[0] = end;
        }
        let makespan = free.iter().copied().fold(0.0, f64::max);
        let all: f64 = dataflow.tasks().map(|task| dataflow.cost(task)).sum();
        let chain = |member| {
            let row: Vec<f64> = dataflow.row(member).iter().map(|task| dataflow.cost(*task)).collect();
            graph.longest_chain(&row)
        };
        let chain = problem.members().map(chain).fold(0.0, f64::max);
        prop_assert!(makespan >= chain.max(all / workers as f64) - 1e-9);
        prop_assert!(workers > 1 || makespan == all);
        let first = dataflow.first_costs(&buckets);
        prop_assert_eq!(first.iter().map(|bucket| bucket.tasks).sum::<usize>(), dataflow.len());
        prop_assert_eq!(first.iter().map(|bucket| bucket.cost).sum::<f64>(), all);
    }

    /// In any task order a tree has at least as many nodes. For a chain of tasks the graph equals the tree.
    #[test]
    fn no_tree_shares_more((problem, graph, _) in case()) {
        let dataflow = Dataflow::build(&problem, &graph);
        let cost = dataflow.figures(&problem).cost;
        prop_assert!(cost <= best_order(&problem, &graph).cost);
        let tree = ReuseTree::build(&problem);
        let chain = Dataflow::build(&problem, &TaskGraph::chain(problem.levels()));
        prop_assert_eq!(chain.tasks_per_level(), tree.nodes_per_level());
        prop_assert_eq!(chain.figures(&problem).cost, tree.unique_cost());
    }

    #[test]
    fn transfer_plan_never_costs_more_than_recomputing(
        (problem, graph, buckets) in case(),
        bytes in vec(0_u64..20, 5),
        latency in 0_u32..5,
    ) {
        let dataflow = Dataflow::build(&problem, &graph);
        let link = |bytes_per_second| TransferCost { bytes_per_second, latency_seconds: f64::from(latency) };
        let alone: f64 = dataflow.bucket_costs(&buckets).iter().map(|bucket| bucket.cost).sum();
        let once = dataflow.figures(&problem).cost;
        let of = |link| TransferPlan::decide(&dataflow, &buckets, &bytes, link).figures(&buckets);
        let figures = of(link(2.0));
        prop_assert!(figures.compute_seconds >= once);
        prop_assert!(figures.compute_seconds + figures.transfer_seconds <= alone);
        prop_assert!(figures.transferred_tasks <= figures.shared_tasks.min(figures.transfers));
        // A link without bandwidth transfers nothing, if all outputs have bytes.
        if bytes.iter().all(|bytes| *bytes > 0) {
            let nothing = of(link(1e-9));
            prop_assert_eq!(nothing.transfers, 0);
            prop_assert!(nothing.compute_seconds <= alone);
        }
        // If transfers are free, every task with a cost is computed once.
        let free = of(TransferCost { bytes_per_second: f64::INFINITY, latency_seconds: 0.0 });
        prop_assert_eq!(free.compute_seconds, once);
        prop_assert_eq!(free.transfer_seconds, 0.0);
    }

    /// If transfers are free, jobs are single tasks and leftovers, and no schedule beats the longest chain of
    /// tasks.
    #[test]
    fn pieces_are_the_same_work((problem, graph, buckets) in case(), bytes in vec(0_u64..20, 5), latency in 0_u32..5) {
        let dataflow = Dataflow::build(&problem, &graph);
        let of = |bytes_per_second, latency_seconds| {
            let link = TransferCost { bytes_per_second, latency_seconds };
            TransferPlan::decide(&dataflow, &buckets, &bytes, link).pieces(&buckets)
        };
        let workers = |count| NonZeroUsize::new(count).unwrap();
        let once = dataflow.figures(&problem).cost;
        let found = of(2.0, f64::from(latency));
        prop_assert!(found.compute_seconds >= once);
        let total: f64 = found.seconds.iter().sum();
        let jobs = JobGraph::with_edges(found.seconds, found.edges).unwrap();
        prop_assert_eq!(jobs.makespan_seconds(workers(1)), total);
        prop_assert!(jobs.makespan_seconds(workers(2)) <= total);

        let free = of(f64::INFINITY, 0.0);
        prop_assert_eq!(free.compute_seconds, once);
        let makespan = JobGraph::with_edges(free.seconds, free.edges).unwrap().makespan_seconds(workers(1000));
        let mut until = vec![0.0_f64; dataflow.len()];
        for task in dataflow.tasks() {
            let before = dataflow.reads(task).iter().map(|read| until[read.0 as usize]).fold(0.0, f64::max);
            until[task.0 as usize] = before + dataflow.cost(task);
        }
        prop_assert!(makespan >= until.into_iter().fold(0.0, f64::max));
    }

    #[test]
    fn each_bucket_has_what_its_tasks_read(
        (problem, graph, buckets) in case(),
        bytes in vec(0_u64..20, 5),
    ) {
        let dataflow = Dataflow::build(&problem, &graph);
        let link = TransferCost { bytes_per_second: 1.0, latency_seconds: 0.5 };
        let plan = TransferPlan::decide(&dataflow, &buckets, &bytes, link);
        for ((bucket, members), work) in (0..).zip(buckets.iter()).zip(plan.work(&buckets)) {
            for task in &work.received {
                prop_assert!(plan.is_transferred(*task) && plan.owner(*task) < bucket);
                prop_assert!(plan.move_seconds(*task) < plan.recompute_seconds(*task));
            }
            prop_assert_eq!(work.receive_seconds, work.received.iter().map(|task| plan.move_seconds(*task)).sum::<f64>());
            // Backward execution from the bucket's last tasks needs exactly these.
            let row = |member: &Member| dataflow.row(*member).to_vec();
            let all: BTreeSet<TaskId> = members.iter().flat_map(row).collect();
            let read: BTreeSet<TaskId> = all.iter().flat_map(|task| dataflow.reads(*task)).copied().collect();
            let mut wanted: Vec<TaskId> = all.difference(&read).copied().collect();
            let (mut computed, mut received) = (BTreeSet::new(), BTreeSet::new());
            while let Some(task) = wanted.pop() {
                if plan.is_transferred(task) && plan.owner(task) != bucket {
                    received.insert(task);
                } else if computed.insert(task) {
                    wanted.extend(dataflow.reads(task));
                }
            }
            let seconds = |tasks: &BTreeSet<TaskId>| tasks.iter().map(|task| dataflow.cost(*task)).sum::<f64>();
            let moved: f64 = received.iter().map(|task| plan.move_seconds(*task)).sum();
            if seconds(&computed) + moved > seconds(&all) {
                (computed, received) = (all, BTreeSet::new());
            }
            prop_assert_eq!(work.compute_seconds, seconds(&computed));
            prop_assert_eq!(computed.len(), work.tasks);
            prop_assert_eq!(received.into_iter().collect::<Vec<_>>(), work.received);
        }
    }
}
