//! The best order of a stage's tasks, compared with all possible orders.

#![expect(
    clippy::unwrap_used,
    reason = "generators and models are tests too, though outside of test functions"
)]

use pleach_reuse::{MergeProblem, ReuseTree, TaskCosts, TaskGraph, TaskOrder, TaskReads, best_order};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::strategy::Strategy as Generator;

/// Tasks that read some earlier ones, and instances with whole costs.
fn case() -> impl Generator<Value = (MergeProblem, TaskGraph)> {
    (1_usize..7, 0_usize..12).prop_flat_map(|(tasks, instances)| {
        let reads = vec(vec(prop::bool::weighted(0.3), tasks), tasks);
        let keys = vec(0_u32..3, tasks * instances);
        let costs = vec(0_u32..4, tasks * instances);
        (reads, keys, costs, vec(0_u32..2, instances), any::<bool>()).prop_map(
            move |(reads, keys, costs, inputs, per_task)| {
                let of = |task: usize| TaskReads {
                    tasks: (0..task).filter(|read| reads[task][*read]).collect(),
                    inputs: false,
                };
                let graph = TaskGraph::new((0..tasks).map(of).collect()).unwrap();
                let costs = match per_task {
                    true => TaskCosts::PerTask(costs.into_iter().map(f64::from).collect()),
                    false => TaskCosts::Count,
                };
                (MergeProblem::new(tasks, inputs, keys, costs).unwrap(), graph)
            },
        )
    })
}

fn all_orders(graph: &TaskGraph, begun: &[usize]) -> Vec<Vec<usize>> {
    if begun.len() == graph.len() {
        return vec![begun.to_vec()];
    }
    let ready = |task: &usize| {
        !begun.contains(task) && graph.reads(*task).tasks.iter().all(|read| begun.contains(read))
    };
    let next = (0..graph.len()).filter(ready);
    next.flat_map(|task| all_orders(graph, &[begun, &[task]].concat())).collect()
}

fn tree_cost(problem: &MergeProblem, graph: &TaskGraph, order: &[usize]) -> f64 {
    ReuseTree::build(&problem.reordered(graph, order).unwrap()).unique_cost()
}

proptest! {
    #[test]
    fn no_order_shares_more((problem, graph) in case()) {
        let TaskOrder { tasks, cost, exact } = best_order(&problem, &graph);
        prop_assert!(exact);
        prop_assert_eq!(tree_cost(&problem, &graph, &tasks), cost);
        let orders = all_orders(&graph, &[]);
        let least = orders.iter().map(|order| tree_cost(&problem, &graph, order)).fold(f64::INFINITY, f64::min);
        prop_assert_eq!(cost, least);
        prop_assert!(orders.contains(&tasks));
    }
}

/// 13 independent tasks have 8192 down-sets, above the limit, so the greedy order is used.
#[test]
fn beyond_the_bound_the_order_is_greedy() {
    let problem = |tasks: usize| {
        // Task t has t + 1 different keys among 26 instances. Tasks with fewer keys come first.
        let keys =
            (0..26).flat_map(|instance| (0..tasks).rev().map(move |task| instance % (task as u32 + 1)));
        MergeProblem::new(tasks, vec![0; 26], keys.collect(), TaskCosts::Count).unwrap()
    };
    let graph = |tasks| TaskGraph::new(vec![TaskReads::default(); tasks]).unwrap();
    let exact = best_order(&problem(12), &graph(12));
    assert!(exact.exact);
    let greedy = best_order(&problem(13), &graph(13));
    assert!(!greedy.exact);
    assert_eq!(greedy.tasks[..3], [12, 11, 9]);
    assert_eq!(greedy.cost, tree_cost(&problem(13), &graph(13), &greedy.tasks));
    let given: Vec<usize> = (0..13).collect();
    assert!(greedy.cost < tree_cost(&problem(13), &graph(13), &given));
}

/// Sets of tasks are masks of 64 bits, and loops make long stages.
#[test]
fn stages_of_up_to_64_tasks_get_an_exact_order() {
    for tasks in [31, 32, 33, 64, 65] {
        let graph = TaskGraph::chain(tasks);
        let keys = vec![0; 2 * tasks];
        let problem = MergeProblem::new(tasks, vec![0, 0], keys, TaskCosts::Count).unwrap();
        let order = best_order(&problem, &graph);
        assert_eq!(order.tasks, (0..tasks).collect::<Vec<_>>());
        assert_eq!((order.cost, order.exact), (tasks as f64, tasks <= 64));
    }
}
