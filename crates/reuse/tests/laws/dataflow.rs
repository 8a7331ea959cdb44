//! The dataflow graph compared with explicit identities, and transfers compared with counting.

#![expect(
    clippy::unwrap_used,
    reason = "generators and models are tests too, though outside of test functions"
)]

use std::collections::{BTreeMap, BTreeSet};

use pleach_reuse::{
    Buckets, Dataflow, Member, MergeProblem, ReuseTree, SharingSchedule, TaskCosts, TaskGraph, TaskId,
    TaskReads, TransferCost, best_order,
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
        let mut schedule = SharingSchedule::new(&dataflow, vec![0; graph.len()], TransferCost::FREE);
        let makespan = run(&mut schedule, &buckets, workers);
        prop_assert_eq!(schedule.forecast().recomputed_tasks, 0);
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

    /// Whatever the link, a worker has what its tasks read. A link without bandwidth transfers nothing that costs less to
    /// compute, a free one repeats no task, and one worker does neither.
    #[test]
    fn transfers_are_those_of_a_slow_schedule(
        (problem, graph, buckets) in case(),
        bytes in vec(0_u64..20, 5),
        latency in 0_u32..5,
        workers in 1_usize..5,
    ) {
        let dataflow = Dataflow::build(&problem, &graph);
        let of = |bytes_per_second, latency_seconds, workers| {
            let link = TransferCost { bytes_per_second, latency_seconds };
            let mut schedule = SharingSchedule::new(&dataflow, bytes.clone(), link);
            (run(&mut schedule, &buckets, workers), schedule.forecast(), slow(&dataflow, &buckets, &bytes, link, workers))
        };
        let (makespan, found, (slow_makespan, transfers, repeated)) = of(2.0, f64::from(latency), workers);
        prop_assert_eq!((found.transfers, found.recomputed_tasks), (transfers, repeated));
        prop_assert!((makespan - slow_makespan).abs() < 1e-9, "{} and {}", makespan, slow_makespan);
        let (_, alone, _) = of(2.0, f64::from(latency), 1);
        prop_assert_eq!((alone.transfers, alone.recomputed_tasks), (0, 0));
        let (_, free, _) = of(f64::INFINITY, 0.0, workers);
        prop_assert_eq!((free.recomputed_tasks, free.seconds), (0, 0.0));
        if bytes.iter().all(|bytes| *bytes > 0) {
            let (_, nothing, _) = of(1e-9, 0.0, workers);
            prop_assert_eq!(nothing.transfers, 0);
        }
    }
}

/// Starts the buckets in order, each on the worker that is free first. Returns the makespan.
fn run(schedule: &mut SharingSchedule<&Dataflow>, buckets: &Buckets, workers: usize) -> f64 {
    let mut free = vec![0.0_f64; workers];
    for members in buckets.iter() {
        let worker = earliest(&free);
        let end = schedule.begin(worker as u32, members, free[worker]);
        assert!(end >= free[worker]);
        free[worker] = end;
    }
    free.into_iter().fold(0.0, f64::max)
}

fn earliest(free: &[f64]) -> usize {
    (0..free.len()).min_by(|a, b| free[*a].total_cmp(&free[*b])).unwrap()
}

/// Makespan, transfers and repeated tasks, from tables of every worker and a rule written out once more.
fn slow(
    dataflow: &Dataflow,
    buckets: &Buckets,
    bytes: &[u64],
    link: TransferCost,
    workers: usize,
) -> (f64, usize, usize) {
    let mut slow = Slow { dataflow, bytes, link, has: vec![BTreeMap::new(); workers], counts: (0, 0) };
    let mut first: BTreeMap<TaskId, f64> = BTreeMap::new();
    let mut free = vec![0.0_f64; workers];
    for members in buckets.iter() {
        let worker = earliest(&free);
        let tasks: BTreeSet<TaskId> =
            members.iter().flat_map(|member| dataflow.row(*member)).copied().collect();
        let (mut now, mut end) = (free[worker], free[worker]);
        for task in tasks {
            if !first.contains_key(&task) {
                now = slow.execute(task, worker, now, &first);
                first.insert(task, now);
                slow.has[worker].insert(task, now);
            }
            end = end.max(first[&task]).max(now);
        }
        free[worker] = end;
    }
    (free.into_iter().fold(0.0, f64::max), slow.counts.0, slow.counts.1)
}

struct Slow<'a> {
    dataflow: &'a Dataflow,
    bytes: &'a [u64],
    link: TransferCost,
    has: Vec<BTreeMap<TaskId, f64>>,
    counts: (usize, usize),
}

impl Slow<'_> {
    fn transfer(&self, task: TaskId) -> f64 {
        self.link.latency_seconds + self.bytes[self.dataflow.level(task)] as f64 / self.link.bytes_per_second
    }

    fn again(&self, task: TaskId, worker: usize) -> f64 {
        let lacking = self.dataflow.reads(task).iter().filter(|read| !self.has[worker].contains_key(read));
        self.dataflow.cost(task)
            + lacking.map(|read| self.cheaper(*read, worker).min(self.transfer(*read))).sum::<f64>()
    }

    /// Seconds of running a task again, or infinite where a transfer is made: less than 50 ms or a quarter are no gain.
    fn cheaper(&self, task: TaskId, worker: usize) -> f64 {
        let (transfer, again) = (self.transfer(task), self.again(task, worker));
        if transfer > again + 0.05 && transfer > again * 1.25 { again } else { f64::INFINITY }
    }

    fn execute(&mut self, task: TaskId, worker: usize, mut now: f64, first: &BTreeMap<TaskId, f64>) -> f64 {
        for read in self.dataflow.reads(task).to_vec() {
            now = match self.has[worker].get(&read) {
                Some(at) => now.max(*at),
                None if self.cheaper(read, worker).is_finite() => {
                    self.counts.1 += 1;
                    self.execute(read, worker, now, first)
                }
                None => {
                    self.counts.0 += 1;
                    now.max(first[&read]) + self.transfer(read)
                }
            };
            self.has[worker].entry(read).or_insert(now);
        }
        now + self.dataflow.cost(task)
    }
}
