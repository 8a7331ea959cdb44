//! Worked examples of the papers, and invariants of balancing.

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::graph::tree::ReuseTree;
use crate::merge_problem::{MergeProblem, TaskCosts};
use crate::strategy::trtma::forest::ForestIndex;
use crate::strategy::trtma::{Pruning, TrtmaOptions};

const OPTIONS: TrtmaOptions = TrtmaOptions {
    search: MoveSearch::MakespanInside,
    small_bucket: PartnerRule::Last,
    pruning: Pruning::None,
    skip_chains: true,
};
const PRUNINGS: [Pruning; 3] = [Pruning::None, Pruning::Siblings, Pruning::All];

/// Instances by the keys of their tasks, and their initial buckets.
struct Example<'a> {
    keys: &'a [&'a [u32]],
    buckets: &'a [&'a [u32]],
}

impl Example<'_> {
    fn forest(&self) -> (Forest, ForestIndex, u64) {
        let levels = self.keys[0].len();
        let problem =
            MergeProblem::new(levels, vec![0; self.keys.len()], self.keys.concat(), TaskCosts::Count)
                .unwrap();
        let (forest, places) = Forest::build(&problem, &ReuseTree::build(&problem));
        let unit = forest.path_cost(places.of_member[0]) / levels as u64;
        (forest, places, unit)
    }

    fn groups(&self, forest: &Forest, places: &ForestIndex) -> Vec<Group> {
        let group = |members: &&[u32]| {
            let mut heads: Vec<u32> =
                members.iter().map(|member| places.of_member[*member as usize]).collect();
            heads.sort_unstable();
            let mut nodes: BTreeSet<u32> = heads.iter().copied().collect();
            heads.iter().for_each(|head| nodes.extend(forest.ancestors(*head)));
            Group { cost: nodes.iter().map(|node| forest.cost(*node)).sum(), heads }
        };
        self.buckets.iter().map(group).collect()
    }

    /// Returns the costs of the buckets before and after balancing, and its statistics.
    fn balance(&self, options: TrtmaOptions) -> (Vec<u64>, Vec<u64>, Balanced) {
        let (forest, places, unit) = self.forest();
        let groups = self.groups(&forest, &places);
        let before = groups.iter().map(|group| group.cost / unit).collect();
        let ranks = ranks(&forest, options.search);
        let ranked = RankedForest { forest: &forest, ranks: ranks.as_deref() };
        let mut pool = Pool::new(ranked, groups.clone());
        let mut inconsistent = 0;
        while let Some((big, small, found)) = pool.best_move(options, &mut Balanced::default())
            && found.makespan < pool.costs[big]
        {
            pool.transfer(big, small, found);
            inconsistent +=
                pool.buckets.iter().flatten().filter(|bucket| !bucket.is_consistent(ranked)).count();
        }
        assert_eq!(inconsistent, 0);
        let after = pool.costs.iter().map(|cost| cost / unit).collect();
        let (members, done) = balance(ranked, groups, options);
        assert_eq!(members, pool.into_members());
        (before, after, done)
    }
}

/// Paper 001 Fig. 10, thesis Fig. 3.11: Fold-Merge leaves buckets of 8, 9 and 5. S4…S9 share one first task.
/// Node 6 below it holds S4…S7, node 7 holds S8 and S9.
const FIGURE_10: Example<'_> = Example {
    keys: &[
        &[1, 5, 1],
        &[1, 5, 2],
        &[1, 5, 3],
        &[2, 6, 4],
        &[2, 6, 5],
        &[2, 6, 6],
        &[2, 6, 7],
        &[2, 7, 8],
        &[2, 7, 9],
        &[3, 8, 10],
        &[3, 9, 11],
        &[4, 10, 12],
    ],
    buckets: &[&[0, 1, 2, 11], &[3, 4, 5, 6, 7, 8], &[9, 10]],
};

#[test]
fn figure_10_moves_one_leaf() {
    for pruning in PRUNINGS {
        let (before, after, done) = FIGURE_10.balance(TrtmaOptions { pruning, ..OPTIONS });
        assert_eq!(before, [8, 9, 5]);
        assert_eq!(after, [8, 8, 8], "{pruning:?}");
        assert_eq!(done.steps, 1);
    }
}

/// The attempts of the same figure: node 6 gives 4 and 11, node 7 gives 6 and 9, a leaf gives 8 and 8.
#[test]
fn figure_10_attempts_have_the_published_costs() {
    let (forest, places, unit) = FIGURE_10.forest();
    let groups = FIGURE_10.groups(&forest, &places);
    let [big, small] = [1, 2].map(|group: usize| BalancedBucket::new(&forest, &groups[group]));
    let after = |member: usize, up: usize| {
        let path =
            std::iter::once(places.of_member[member]).chain(forest.ancestors(places.of_member[member]));
        let node = path.take(up + 1).last().unwrap();
        let costs = [big.cost - big.parts[&node].cost, small.cost + small.added(&forest, &big, node)];
        costs.map(|cost| cost / unit)
    };
    assert_eq!(after(3, 1), [4, 11]);
    assert_eq!(after(7, 1), [6, 9]);
    assert_eq!(after(8, 0), [8, 8]);
}

/// Without the makespan inside the search (thesis), the best imbalance may be a false improvement, which ends
/// balancing.
#[test]
fn the_thesis_stops_at_a_false_improvement() {
    // Costs are 7 and 4. A branch costs 2 in the first and 3 in the second bucket. The move gives 5 and 7, so
    // the imbalance falls to 2 and the makespan does not change.
    let example = Example {
        keys: &[&[1, 1, 1], &[1, 2, 1], &[1, 3, 1], &[2, 1, 1], &[2, 1, 2]],
        buckets: &[&[0, 1, 2], &[3, 4]],
    };
    for search in [MoveSearch::MakespanInside, MoveSearch::BestImbalanceFirst] {
        let (before, after, done) = example.balance(TrtmaOptions { search, ..OPTIONS });
        assert_eq!((before, after), (vec![7, 4], vec![7, 4]));
        assert_eq!(done.ended_falsely, search == MoveSearch::BestImbalanceFirst);
    }
}

/// Thesis Fig. 3.13: the search tries 11 nodes with pruning among siblings, and 7 with pruning among all.
/// Node 1 has three chains below it, node 2 two pairs, node 3 a pair and two chains.
#[test]
fn figure_3_13_prunes_11_nodes_to_7() {
    let node_1 = [[1, 4, 12], [1, 5, 13], [1, 6, 14]];
    let node_2 = [[2, 7, 15], [2, 7, 16], [2, 8, 17], [2, 8, 18]];
    let node_3 = [[3, 9, 19], [3, 9, 20], [3, 10, 21], [3, 11, 22]];
    let keys: Vec<&[u32]> = node_1
        .iter()
        .chain(&node_2)
        .chain(&node_3)
        .map(<[u32; 3]>::as_slice)
        .chain([&[9, 9, 9][..]])
        .collect();
    let example = Example { keys: &keys, buckets: &[&[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10], &[11]] };
    let (forest, places, _) = example.forest();
    let groups = example.groups(&forest, &places);
    let [big, small] = [0, 1].map(|group: usize| BalancedBucket::new(&forest, &groups[group]));
    let tried = |pruning, skip_chains| {
        let options = TrtmaOptions { pruning, skip_chains, ..OPTIONS };
        let mut search = SingleBalance::new(
            RankedForest { forest: &forest, ranks: None },
            options,
            &big,
            &small,
            u64::MAX,
        );
        search.walk();
        search.tried
    };
    assert_eq!(tried(Pruning::None, false), 22);
    assert_eq!(tried(Pruning::Siblings, false), 11);
    assert_eq!(tried(Pruning::All, false), 7);
    // With skipped chains, a chain is one move and tried once.
    assert_eq!(tried(Pruning::None, true), 17);
    assert_eq!(tried(Pruning::Siblings, true), 9);
    assert_eq!(tried(Pruning::All, true), 6);
}

/// Thesis Fig. 3.12, the worst case: b − 1 buckets of one instance, and a last one of n − b + 1 instances
/// that share r tasks. With n = 2b, n − b − 1 moves leave two instances in each.
#[test]
fn figure_3_12_takes_a_move_per_instance() {
    let (n, b, k, r) = (12, 6, 3, 1);
    let keys: Vec<Vec<u32>> = (0..n)
        .map(|instance: u32| {
            let first = instance.saturating_sub(n - b);
            (0..k).map(|level| if level < r { first } else { instance }).collect()
        })
        .collect();
    let keys: Vec<&[u32]> = keys.iter().map(Vec::as_slice).collect();
    let big: Vec<u32> = (0..=n - b).collect();
    let singles: Vec<[u32; 1]> = (n - b + 1..n).map(|instance| [instance]).collect();
    let buckets: Vec<&[u32]> =
        std::iter::once(&big[..]).chain(singles.iter().map(<[u32; 1]>::as_slice)).collect();
    let example = Example { keys: &keys, buckets: &buckets };
    for pruning in PRUNINGS {
        let (before, after, done) = example.balance(TrtmaOptions { pruning, ..OPTIONS });
        assert_eq!(before, [15, 3, 3, 3, 3, 3]);
        assert_eq!(done.steps, u64::from(n - b - 1));
        assert_eq!(after, [5, 6, 6, 6, 6, 6]);
    }
}

/// Thesis Fig. 3.14a: buckets of 6, 3 and 3. The last bucket shares nothing with the first, so balancing with
/// it ends. The other one shares a task, and S3 moves.
#[test]
fn figure_3_14_a_wants_the_bucket_with_most_reuse() {
    let example = Example {
        keys: &[&[1, 1, 1], &[1, 2, 1], &[1, 2, 2], &[1, 3, 1], &[2, 1, 1]],
        buckets: &[&[0, 1, 2], &[3], &[4]],
    };
    let after = |small_bucket| example.balance(TrtmaOptions { small_bucket, ..OPTIONS });
    let (before, stuck, _) = after(PartnerRule::Last);
    assert_eq!((&before, &stuck), (&vec![6, 3, 3], &vec![6, 3, 3]));
    assert_eq!(after(PartnerRule::MostReuse).1, [5, 5, 3]);
    assert_eq!(after(PartnerRule::Exhaustive).1, [5, 5, 3]);
}

/// Thesis Fig. 3.14b: b2 costs 8. No move to b3, the cheapest, helps. Moving S7 to b1 gives 7 and 7.
#[test]
fn figure_3_14_b_wants_every_bucket_tried() {
    let example = Example {
        keys: &[
            &[1, 1, 1],
            &[1, 2, 1],
            &[1, 2, 2],
            &[1, 2, 3],
            &[1, 2, 4],
            &[1, 2, 5],
            &[3, 1, 1],
            &[2, 1, 1],
            &[2, 2, 2],
        ],
        buckets: &[&[0, 1, 2], &[3, 4, 5, 6], &[7, 8]],
    };
    for small_bucket in [PartnerRule::Last, PartnerRule::MostReuse] {
        let (before, after, _) = example.balance(TrtmaOptions { small_bucket, ..OPTIONS });
        assert_eq!((before, after), (vec![6, 8, 5], vec![6, 8, 5]));
    }
    let (_, after, _) = example.balance(TrtmaOptions { small_bucket: PartnerRule::Exhaustive, ..OPTIONS });
    assert_eq!(after, [7, 7, 5]);
}

/// The sum of imbalances (paper 001: the most expensive with the cheapest, and so on inward) may rise.
#[test]
fn the_sum_of_imbalances_may_rise() {
    let keys: Vec<[u32; 4]> = [7, 2, 2, 2]
        .iter()
        .zip(0..)
        .flat_map(|(leaves, first)| (0..*leaves).map(move |leaf| [first, first, first, leaf]))
        .collect();
    let keys: Vec<&[u32]> = keys.iter().map(<[u32; 4]>::as_slice).collect();
    let example = Example { keys: &keys, buckets: &[&[0, 1, 2, 3, 4, 5, 6], &[7, 8], &[9, 10], &[11, 12]] };
    let (before, after, _) = example.balance(OPTIONS);
    let sum_of_imbalances = |mut costs: Vec<u64>| {
        costs.sort_unstable();
        costs[3] - costs[0] + costs[2] - costs[1]
    };
    assert_eq!((before.clone(), after.clone()), (vec![10, 5, 5, 5], vec![9, 5, 5, 9]));
    assert_eq!((sum_of_imbalances(before), sum_of_imbalances(after)), (5, 8));
}

proptest! {
    /// The outward search is at least as good as trying one node of each shape, and at most as good as trying
    /// all. If the two buckets share nothing, it equals the latter.
    #[test]
    fn outward_search_equals_a_full_walk(
        keys in vec(vec(0_u32..3, 4), 2..30),
        costs in vec(0_u32..5, 4),
        apart: bool,
        thesis: bool,
    ) {
        // With `apart`, the buckets have different first tasks.
        let in_big = |at: usize, keys: &[u32]| if apart { keys[0] > 0 } else { !at.is_multiple_of(4) };
        let (big, small): (Vec<u32>, Vec<u32>) =
            (0..keys.len() as u32).partition(|member| in_big(*member as usize, &keys[*member as usize]));
        prop_assume!(!big.is_empty() && !small.is_empty());
        let costs = TaskCosts::PerLevel(costs.into_iter().map(f64::from).collect());
        let problem = MergeProblem::new(4, vec![0; keys.len()], keys.concat(), costs).unwrap();
        let (forest, places) = Forest::build(&problem, &ReuseTree::build(&problem));
        let bucket = |members: &[u32]| {
            let mut heads: Vec<u32> = members.iter().map(|member| places.of_member[*member as usize]).collect();
            heads.sort_unstable();
            BalancedBucket::of_branches(&forest, &heads)
        };
        let (big, small) = (bucket(&big), bucket(&small));
        prop_assume!(big.cost > small.cost);
        let search = if thesis { MoveSearch::BestImbalanceFirst } else { MoveSearch::MakespanInside };
        let ranks = ranks(&forest, search);
        let ranked = RankedForest { forest: &forest, ranks: ranks.as_deref() };
        let mut big = big;
        big.list_moves(ranked);
        let found = |pruning, outwards: bool| {
            let options = TrtmaOptions { pruning, search, ..OPTIONS };
            let mut balance = SingleBalance::new(ranked, options, &big, &small, u64::MAX);
            if outwards { balance.search_outwards() } else { balance.walk() }
            balance.least_imbalance()
        };
        let outwards = found(Pruning::All, true);
        prop_assert!(outwards <= found(Pruning::All, false));
        prop_assert!(outwards >= found(Pruning::None, false));
        if apart {
            prop_assert_eq!(outwards, found(Pruning::None, false));
        }
    }
}

#[test]
fn bottom_up_order_puts_descendants_before_their_level() {
    let keys: [&[u32]; 5] = [&[1, 1, 1], &[1, 1, 2], &[1, 2, 1], &[2, 1, 1], &[2, 1, 2]];
    let (forest, ..) = Example { keys: &keys, buckets: &[] }.forest();
    // 0 root, 1 first task 1, 2 (1, 1) with leaves 3 and 4, 5 (1, 2), 6 task 2 with leaves 7 and 8.
    let mut order: Vec<u32> = (0..9).collect();
    let ranks = bottom_up(&forest);
    order.sort_by_key(|node| ranks[*node as usize]);
    assert_eq!(order, [3, 4, 2, 5, 7, 8, 1, 6, 0]);
}
