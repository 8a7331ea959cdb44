//! Granularity against brute force: distinct fused instances counted from whole histories, all partitions tried.

#![expect(clippy::unwrap_used, reason = "a test")]

use pleach_reuse::{
    Dataflow, FusionSavings, Granularity, GranularityProblem, MergeProblem, TaskCosts, TaskGraph, TaskReads,
};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

#[derive(Clone, Debug)]
struct Case {
    reads: Vec<TaskReads>,
    read_outside: Vec<bool>,
    /// Keys of each instance.
    keys: Vec<Vec<u32>>,
    costs: Vec<f64>,
    overhead: f64,
    transfers: Vec<f64>,
}

fn cases() -> impl Strategy<Value = Case> {
    (1..=8_usize).prop_flat_map(|tasks| {
        let read = |task: usize| {
            // Mostly chains: few tasks of other graphs may be fused.
            let earlier = proptest::collection::vec(any::<bool>(), task);
            (earlier, 0..5_u32, any::<bool>()).prop_map(move |(chosen, shape, inputs)| {
                let earlier = chosen.iter().enumerate().filter(|(_, chosen)| **chosen).map(|(task, _)| task);
                let tasks = if shape > 0 { (task.max(1) - 1..task).collect() } else { earlier.collect() };
                TaskReads { tasks, inputs: inputs || task == 0 }
            })
        };
        let keys = proptest::collection::vec(proptest::collection::vec(0..3_u32, tasks), 1..24);
        let times =
            |most: u32| proptest::collection::vec((0..most).prop_map(|units| f64::from(units) / 8.0), tasks);
        let read_outside = proptest::collection::vec(proptest::bool::weighted(0.1), tasks);
        let reads = (0..tasks).map(read).collect::<Vec<_>>();
        (reads, read_outside, keys, times(40), 0..60_u32, times(8)).prop_map(
            |(reads, read_outside, keys, costs, overhead, transfers)| Case {
                reads,
                read_outside,
                keys,
                costs,
                overhead: f64::from(overhead) / 8.0,
                transfers,
            },
        )
    })
}

impl Case {
    fn solve(&self) -> Granularity {
        let graph = TaskGraph::new(self.reads.clone()).unwrap();
        let keys = self.keys.concat();
        let costs = TaskCosts::PerLevel(self.costs.clone());
        let problem = MergeProblem::new(self.reads.len(), vec![0; self.keys.len()], keys, costs).unwrap();
        let dataflow = Dataflow::build(&problem, &graph);
        let problem = GranularityProblem::of_tasks(&graph, &dataflow, &self.read_outside);
        problem.solve(FusionSavings { overhead_seconds: self.overhead, transfer_seconds: &self.transfers })
    }

    /// The keys of a task and of all tasks that it depends on, which identify its computation.
    fn history(&self, instance: usize, task: usize) -> Vec<(usize, u32)> {
        let mut all = BTreeSet::from([(task, self.keys[instance][task])]);
        self.reads[task].tasks.iter().for_each(|read| all.extend(self.history(instance, *read)));
        all.into_iter().collect()
    }

    /// Seconds of a partition, from the distinct instances of each group.
    fn seconds(&self, groups: &[Vec<usize>]) -> f64 {
        let of_group = |group: &Vec<usize>| {
            let history =
                |instance| group.iter().map(|task| self.history(instance, *task)).collect::<Vec<_>>();
            let instances: BTreeSet<_> = (0..self.keys.len()).map(history).collect();
            let work: f64 = group.iter().map(|task| self.costs[*task]).sum();
            let from_outside =
                self.reads[group[0]].tasks.iter().map(|read| self.transfers[*read]).sum::<f64>();
            instances.len() as f64 * (self.overhead + work + from_outside)
        };
        groups.iter().map(of_group).sum()
    }

    /// All partitions into groups whose tasks, but the first, read exactly the one before, and nothing else reads
    /// that one.
    fn partitions(&self) -> Vec<Vec<Vec<usize>>> {
        let readers = |task: usize| self.reads.iter().filter(|reads| reads.tasks.contains(&task)).count();
        let edges: Vec<(usize, usize)> = (0..self.reads.len())
            .filter_map(|task| {
                <[usize; 1]>::try_from(self.reads[task].tasks.clone()).ok().map(|[read]| (read, task))
            })
            .filter(|(read, _)| readers(*read) == 1 && !self.read_outside[*read])
            .collect();
        (0..1_u32 << edges.len())
            .map(|chosen| {
                let mut groups: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
                let mut first: Vec<usize> = (0..self.reads.len()).collect();
                let fused = edges.iter().enumerate().filter(|(bit, _)| chosen >> bit & 1 == 1);
                fused.for_each(|(_, (read, task))| first[*task] = first[*read]);
                (0..self.reads.len()).for_each(|task| groups.entry(first[task]).or_default().push(task));
                groups.into_values().collect()
            })
            .collect()
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn groups_take_the_least_time(case in cases()) {
        let found = case.solve();
        let least = case.partitions().iter().map(|groups| case.seconds(groups)).fold(f64::INFINITY, f64::min);
        let separate: Vec<Vec<usize>> = (0..case.reads.len()).map(|task| vec![task]).collect();
        prop_assert!((found.seconds - least).abs() < 1e-9, "{found:?}, least {least}");
        prop_assert!((case.seconds(&found.groups) - least).abs() < 1e-9, "{found:?} takes {}", case.seconds(&found.groups));
        prop_assert!((found.separate_seconds - case.seconds(&separate)).abs() < 1e-9);
        let mut tasks = found.groups.concat();
        tasks.sort_unstable();
        prop_assert_eq!(tasks, (0..case.reads.len()).collect::<Vec<_>>());
    }

    /// Neither the work nor the longest chain grows, so no number of workers needs longer by either bound.
    #[test]
    fn no_chain_grows(case in cases()) {
        let found = case.solve();
        let group_of = |task: usize| found.groups.iter().position(|group| group.contains(&task)).unwrap();
        let chain = |separate: bool| {
            let mut done = vec![0.0_f64; case.reads.len()];
            for task in 0..case.reads.len() {
                let inside = |read: usize| !separate && group_of(read) == group_of(task);
                let ready = case.reads[task].tasks.iter().map(|read| {
                    done[*read] + if inside(*read) { 0.0 } else { case.transfers[*read] }
                });
                let starts = separate || found.groups[group_of(task)][0] == task;
                let overhead = if starts { case.overhead } else { 0.0 };
                done[task] = ready.fold(0.0, f64::max) + overhead + case.costs[task];
            }
            done.into_iter().fold(0.0, f64::max)
        };
        prop_assert!(found.seconds <= found.separate_seconds + 1e-9);
        prop_assert!(chain(false) <= chain(true) + 1e-9);
    }
}

/// A chain of three tasks: the first has one instance, the others four. Only the last two are worth fusing.
#[test]
fn a_shared_task_stays_alone() {
    let reads = |task: usize| TaskReads { tasks: (task.max(1) - 1..task).collect(), inputs: task == 0 };
    let mut case = Case {
        reads: (0..3).map(reads).collect(),
        read_outside: vec![false; 3],
        keys: (0..4).map(|key| vec![0, key, 0]).collect(),
        costs: vec![10.0, 1.0, 1.0],
        overhead: 0.5,
        transfers: vec![0.0; 3],
    };
    let found = case.solve();
    assert_eq!(found.groups, [vec![0], vec![1, 2]]);
    assert_eq!((found.separate_seconds, found.seconds), (22.5, 20.5));
    // Transfers of the first output outweigh running it four times.
    case.transfers[0] = 8.0;
    assert_eq!(case.solve().groups, [vec![0, 1, 2]]);
    case.read_outside[1] = true;
    assert_eq!(case.solve().groups, [vec![0, 1], vec![2]]);
}
