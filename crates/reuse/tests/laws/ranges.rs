//! Ranges of the tree order: compared with sorting by keys, and with the best of all cuts.

#![expect(
    clippy::unwrap_used,
    reason = "generators and models are tests too, though outside of test functions"
)]

use std::collections::BTreeSet;
use std::num::NonZeroUsize;

use pleach_reuse::{
    Dataflow, Member, MergeProblem, ReuseTree, Strategy, TaskCosts, TaskGraph, TaskReads, adjust_ranges,
    best_order, cut_ranges, even_out_ranges, tree_order,
};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::strategy::Strategy as Generator;

/// Tasks that read some earlier ones. Costs are no binary fractions, so sums depend on their order.
fn case() -> impl Generator<Value = (MergeProblem, TaskGraph)> {
    (1_usize..6, 0_usize..16).prop_flat_map(|(tasks, instances)| {
        let reads = vec((vec(prop::bool::weighted(0.5), tasks), any::<bool>()), tasks);
        let (keys, costs) = (vec(0_u32..3, tasks * instances), vec(0_u32..9, tasks));
        (reads, keys, costs, vec(0_u32..3, instances)).prop_map(move |(reads, keys, costs, inputs)| {
            let of = |task: usize| TaskReads {
                tasks: (0..task).filter(|read| reads[task].0[*read]).collect(),
                // Instances of different inputs share nothing, as in all workflows whose first tasks read the tile.
                inputs: reads[task].1 || !reads[task].0[..task].contains(&true),
            };
            let graph = TaskGraph::new((0..tasks).map(of).collect()).unwrap();
            let costs = TaskCosts::PerLevel(costs.into_iter().map(|cost| f64::from(cost) * 0.1).collect());
            (MergeProblem::new(tasks, inputs, keys, costs).unwrap(), graph)
        })
    })
}

/// Cost of some instances by their distinct tasks.
fn cost(dataflow: &Dataflow, members: &[Member]) -> f64 {
    let tasks: BTreeSet<_> = members.iter().flat_map(|member| dataflow.row(*member)).collect();
    tasks.into_iter().map(|task| dataflow.cost(*task)).sum()
}

/// Lowest maximum cost of at most `max` ranges within inputs: dynamic programming over all cuts.
fn lowest_maximum(problem: &MergeProblem, dataflow: &Dataflow, order: &[Member], max: usize) -> f64 {
    let mut best = vec![vec![f64::INFINITY; order.len() + 1]; max + 1];
    best[0][0] = 0.0;
    for ranges in 1..=max {
        best[ranges][0] = 0.0;
        for end in 1..=order.len() {
            for start in 0..end {
                let range = &order[start..end];
                if range.iter().all(|member| problem.inputs(*member) == problem.inputs(range[0])) {
                    let maximum = best[ranges - 1][start].max(cost(dataflow, range));
                    best[ranges][end] = best[ranges][end].min(maximum);
                }
            }
        }
    }
    best[max][order.len()]
}

proptest! {
    #[test]
    fn tree_order_is_a_stable_sort_by_first_appearance((problem, graph) in case()) {
        let order = best_order(&problem, &graph).tasks;
        // The first instance with the same inputs and the same first keys, for each number of keys.
        let path = |member: Member| {
            let same = |other: Member, keys: usize| problem.inputs(other) == problem.inputs(member)
                && order[..keys].iter().all(|task| problem.keys(other)[*task] == problem.keys(member)[*task]);
            (0..=order.len()).map(|keys| problem.members().find(|other| same(*other, keys)).unwrap()).collect::<Vec<_>>()
        };
        let mut sorted: Vec<Member> = problem.members().collect();
        sorted.sort_by_cached_key(|member| path(*member));
        prop_assert_eq!(tree_order(&problem, &graph), sorted);
    }

    #[test]
    fn ranges_are_contiguous_in_the_number_asked_for((problem, graph) in case(), max in 1_usize..20) {
        let dataflow = Dataflow::build(&problem, &graph);
        let order = tree_order(&problem, &graph);
        let buckets = cut_ranges(&problem, &dataflow, &order, NonZeroUsize::new(max).unwrap());
        prop_assert_eq!(buckets.iter().flatten().copied().collect::<Vec<_>>(), order.clone());
        prop_assert!(buckets.iter().all(|members| !members.is_empty()));
        let inputs: BTreeSet<u32> = problem.members().map(|member| problem.inputs(member)).collect();
        if inputs.len() <= max {
            prop_assert_eq!(buckets.len(), max.min(problem.len()));
            for members in buckets.iter() {
                prop_assert!(members.iter().all(|member| problem.inputs(*member) == problem.inputs(members[0])));
            }
        } else {
            prop_assert!(buckets.len() <= max);
            let split = |input: &u32| buckets.iter().filter(|members| members.iter().any(|m| problem.inputs(*m) == *input)).count();
            prop_assert!(inputs.iter().all(|input| split(input) == 1));
        }
    }

    #[test]
    fn most_expensive_range_is_as_cheap_as_possible((problem, graph) in case(), max in 1_usize..8) {
        let inputs: BTreeSet<u32> = problem.members().map(|member| problem.inputs(member)).collect();
        let max = max.max(inputs.len()).max(1);
        let dataflow = Dataflow::build(&problem, &graph);
        let order = tree_order(&problem, &graph);
        let buckets = cut_ranges(&problem, &dataflow, &order, NonZeroUsize::new(max).unwrap());
        let found = buckets.iter().map(|members| cost(&dataflow, members)).fold(0.0, f64::max);
        prop_assert!(found <= lowest_maximum(&problem, &dataflow, &order, max) + 1e-6);
    }

    /// The tree scope is the dataflow graph of a chain, in the declared order.
    #[test]
    fn tree_scope_counts_prefixes((problem, _) in case(), max in 1_usize..8) {
        let tree = ReuseTree::build(&problem);
        let max_buckets = NonZeroUsize::new(max).unwrap();
        let strategy = Strategy::Ranges { max_buckets };
        let chain = TaskGraph::chain(problem.levels());
        let dataflow = Dataflow::build(&problem, &chain);
        let buckets = strategy.solve(&problem, &tree).unwrap();
        prop_assert_eq!(&strategy.solve_dataflow(&problem, &tree, &chain, &dataflow).unwrap(), &buckets);
        prop_assert_eq!(buckets.check_partition(&problem), Ok(()));
    }

    /// A part of the sequence is cut as a problem of its own, for replans of what is not started.
    #[test]
    fn a_part_of_the_sequence_is_cut_alike((problem, graph) in case(), max in 1_usize..8, skip in 0_usize..16) {
        let dataflow = Dataflow::build(&problem, &graph);
        let part: Vec<Member> = tree_order(&problem, &graph).into_iter().skip(skip).collect();
        let buckets = cut_ranges(&problem, &dataflow, &part, NonZeroUsize::new(max).unwrap());
        prop_assert_eq!(buckets.iter().flatten().copied().collect::<Vec<_>>(), part);
    }
}

proptest! {
    #[test]
    fn adjusted_ranges_are_parts_or_unions_of_the_present_ones(
        (problem, graph) in case(), before in 1_usize..20, after in 1_usize..20,
    ) {
        let dataflow = Dataflow::build(&problem, &graph);
        let order = tree_order(&problem, &graph);
        let cut = |max: usize| cut_ranges(&problem, &dataflow, &order, NonZeroUsize::new(max).unwrap());
        // As a study has them: a range within one input.
        let same = |a: &Member, b: &Member| problem.inputs(*a) == problem.inputs(*b);
        let mut present = pleach_reuse::Buckets::default();
        let whole = cut(before);
        whole.iter().flat_map(|members| members.chunk_by(same)).for_each(|part| present.push(part.iter().copied()));
        let count = NonZeroUsize::new(after).unwrap();
        let adjusted = adjust_ranges(&problem, &dataflow, &present, count);

        let flat = |buckets: &pleach_reuse::Buckets| buckets.iter().flatten().copied().collect::<Vec<_>>();
        prop_assert_eq!(flat(&adjusted), flat(&present));
        prop_assert!(adjusted.iter().all(|members| members.chunk_by(same).count() == 1));
        let most = |buckets: &pleach_reuse::Buckets| {
            buckets.iter().map(|members| cost(&dataflow, members)).fold(0.0, f64::max)
        };
        let ends = |buckets: &pleach_reuse::Buckets| {
            let ends = buckets.iter().scan(0, |end, members| { *end += members.len(); Some(*end) });
            ends.collect::<BTreeSet<usize>>()
        };
        if adjusted.len() >= present.len() {
            prop_assert_eq!(adjusted.len(), after.min(order.len()).max(present.len()));
            prop_assert!(most(&adjusted) <= most(&present) + 1e-9);
        }
        let (old, new) = (ends(&present), ends(&adjusted));
        prop_assert!(old.is_subset(&new) || new.is_subset(&old), "{:?} {:?}", old, new);
        if after == present.len() {
            prop_assert_eq!(&adjusted, &present);
        }

        // One group: as cut anew. Otherwise no range has instances of two groups.
        let evened = |most: usize| even_out_ranges(&problem, &dataflow, &present, count, most);
        prop_assert_eq!(evened(order.len().max(1)), cut(after));
        let grouped = evened(1);
        prop_assert_eq!(flat(&grouped), flat(&present));
        prop_assert!(ends(&grouped).is_superset(&old));
    }
}

/// Ten instances without common tasks, whose last two cost 8 s each and the others 1 s, were cut into five ranges of two.
#[test]
fn few_instances_change_their_range() {
    let costs = (0..10).map(|instance| if instance < 8 { 1.0 } else { 8.0 }).collect();
    let problem = MergeProblem::new(1, vec![0; 10], (0..10).collect(), TaskCosts::PerTask(costs)).unwrap();
    let dataflow = Dataflow::build(&problem, &TaskGraph::chain(1));
    let mut present = pleach_reuse::Buckets::default();
    (0..5).for_each(|range| present.push([Member(2 * range), Member(2 * range + 1)]));
    let lengths = |buckets: pleach_reuse::Buckets| buckets.iter().map(<[Member]>::len).collect::<Vec<_>>();
    let count = |count: usize| NonZeroUsize::new(count).unwrap();
    let adjust = |number: usize| lengths(adjust_ranges(&problem, &dataflow, &present, count(number)));
    assert_eq!(adjust(5), [2, 2, 2, 2, 2]);
    assert_eq!(adjust(6), [2, 2, 2, 2, 1, 1]);
    assert_eq!(adjust(4), [4, 2, 2, 2]);
    assert_eq!(adjust(2), [8, 2]);
    assert_eq!(adjust(12), [1; 10]);
    let even_out = |most: usize| lengths(even_out_ranges(&problem, &dataflow, &present, count(4), most));
    assert_eq!(even_out(10), [4, 4, 1, 1]);
    // Groups of 4, 4 and 16 s get 0.7, 0.7 and 2.7 of four ranges, rounded. The last group has two instances.
    assert_eq!(even_out(4), [4, 4, 1, 1]);
}
