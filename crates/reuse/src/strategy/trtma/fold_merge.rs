//! Fold-Merge, the second phase of TRTMA: sorts buckets by descending cost and folds those beyond MaxBuckets onto
//! the first ones, so that cheap buckets merge with expensive ones.
//!
//! The papers fold repeatedly while more than twice MaxBuckets remain. A bucket among the first MaxBuckets stays
//! there, because merging makes no bucket cheaper. Each round thus assigns the next MaxBuckets buckets, most
//! expensive first, to those, cheapest first. O(b log b) for b buckets, times the levels above them.

use std::cmp::Reverse;
use std::num::NonZeroUsize;

use super::forest::Forest;
use crate::graph::interner::Interner;

/// Branches of one bucket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Group {
    /// Their topmost nodes.
    pub(super) heads: Vec<u32>,
    /// Cost of their tasks and the tasks above them, each counted once.
    pub(super) cost: u64,
}

/// Joins branches until at most `max_buckets` groups remain. Returns them in the order of their first nodes.
pub(super) fn fold(forest: &Forest, heads: &[u32], max_buckets: NonZeroUsize) -> Vec<Group> {
    let alone = |head: &u32| Group {
        heads: vec![*head],
        cost: forest.cost_above(*head) + forest.subtree_cost(*head),
    };
    // On ties the later one counts as more expensive, as in the example of paper 001, Fig. 8.
    let by_cost = |group: &Group| (Reverse(group.cost), Reverse(group.heads[0]));
    let mut groups: Vec<Group> = heads.iter().map(alone).collect();
    if groups.len() > max_buckets.get() {
        groups.sort_unstable_by_key(by_cost);
        let rest = groups.split_off(max_buckets.get());
        let mut joined = Joined::default();
        // Marks the ancestors of the first heads: `alone` has counted their cost already.
        for group in &groups {
            joined.ancestors_cost(forest, group.heads[0], group.heads[0]);
        }
        for round in rest.chunks(max_buckets.get()) {
            groups.sort_unstable_by_key(by_cost);
            for (group, next) in groups.iter_mut().rev().zip(round) {
                let head = next.heads[0];
                group.cost += forest.subtree_cost(head);
                group.cost += joined.ancestors_cost(forest, group.heads[0], head);
                group.heads.push(head);
            }
        }
        groups.sort_unstable_by_key(|group| group.heads[0]);
        groups.iter_mut().for_each(|group| group.heads.sort_unstable());
    }
    groups
}

/// Set of (group, ancestor of its heads). A group is named by its first head.
#[derive(Default)]
struct Joined {
    seen: Interner<(u32, u32)>,
}

impl Joined {
    /// Adds the tasks above a head to a group. Returns the cost of the added ones.
    fn ancestors_cost(&mut self, forest: &Forest, group: u32, head: u32) -> u64 {
        let is_new = |node: &u32| {
            let next = self.seen.len();
            self.seen.intern((group, *node)) as usize == next
        };
        // A known ancestor ends the walk, because all ancestors above it are known too.
        forest.ancestors(head).take_while(is_new).map(|node| forest.cost(node)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::tree::ReuseTree;
    use crate::merge_problem::{MergeProblem, TaskCosts};

    /// Folds first tasks with `sizes` second tasks each. Returns the merged numbers of second tasks, and the
    /// costs.
    fn folded(sizes: &[u32], max_buckets: usize) -> Vec<(Vec<u32>, u64)> {
        let keys: Vec<u32> = (0..)
            .zip(sizes)
            .flat_map(|(first, size)| (0..*size).flat_map(move |second| [first, second]))
            .collect();
        let problem = MergeProblem::new(2, vec![0; keys.len() / 2], keys, TaskCosts::Count).unwrap();
        let tree = ReuseTree::build(&problem);
        let (forest, places) = Forest::build(&problem, &tree);
        let heads = &places.of_node[..sizes.len()];
        let unit = forest.path_cost(places.of_node[tree.leaf(crate::Member(0)).0 as usize]) / 2;
        let groups = fold(&forest, heads, NonZeroUsize::new(max_buckets).unwrap());
        let sizes_of = |group: &Group| group.heads.iter().map(|head| forest.leaves(*head)).collect();
        groups.iter().map(|group| (sizes_of(group), group.cost / unit)).collect()
    }

    /// Thesis Fig. 3.10 with b1 ≥ … ≥ b6 and MaxBuckets 4: b5 joins b4, and b6 joins b3.
    #[test]
    fn figure_3_10_folds_around_the_pivot() {
        let expected = [(vec![9], 10), (vec![8], 9), (vec![7, 4], 13), (vec![6, 5], 13)];
        assert_eq!(folded(&[9, 8, 7, 6, 5, 4], 4), expected);
    }

    /// Paper 001 Fig. 8 with costs 5, 9, 5, 3 and MaxBuckets 3: the first and the last join.
    #[test]
    fn figure_8_joins_the_first_and_the_last() {
        assert_eq!(folded(&[4, 8, 4, 2], 3), [(vec![4, 2], 8), (vec![8], 9), (vec![4], 5)]);
    }

    #[test]
    fn more_than_twice_as_many_are_folded_again() {
        // 9 8 | 7 6 gives 9+6, 8+7. Of these equals the later counts as more expensive, so 5 joins the first.
        assert_eq!(folded(&[9, 8, 7, 6, 5, 4], 2), [(vec![9, 6, 5], 23), (vec![8, 7, 4], 22)]);
        assert_eq!(folded(&[1, 1, 1], 1), [(vec![1, 1, 1], 6)]);
    }

    #[test]
    fn folded_buckets_count_shared_ancestors_once() {
        let problem =
            MergeProblem::new(2, vec![0; 4], vec![1, 1, 1, 2, 1, 3, 2, 1], TaskCosts::Count).unwrap();
        let tree = ReuseTree::build(&problem);
        let (forest, places) = Forest::build(&problem, &tree);
        let heads: Vec<u32> = places.of_member.clone();
        let groups = fold(&forest, &heads, NonZeroUsize::MIN);
        assert_eq!(groups[0].cost, forest.subtree_cost(places.of_input[0]));
    }
}
