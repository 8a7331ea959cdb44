//! The Reuse-Tree Merging Algorithm (thesis §3.3.3, Algorithm 3): bottom-up, full buckets first.
//!
//! Instances that share most tasks are below one deep node, so buckets filled there share most. Instances
//! that do not fill a bucket move up one level, join those left over at the parent's other children, and are
//! tried again. The tree itself is only read: the position of an instance is a pair (node, instance), and
//! moving up replaces the node by its parent.

use std::num::NonZeroUsize;

use super::LeftoverRule;
use crate::buckets::Buckets;
use crate::graph::tree::{NodeId, ReuseTree};
use crate::merge_problem::{Member, MergeProblem};

/// An instance without a bucket, and its sort key: the node it has moved up to.
type Place = (u32, Member);

pub(super) fn solve(
    problem: &MergeProblem,
    tree: &ReuseTree,
    max_bucket_size: NonZeroUsize,
    ending: LeftoverRule,
) -> Buckets {
    let mut buckets = Buckets::default();
    // The papers start at the parents of the leaves. Starting at the leaves is equivalent if instances
    // differ, as they do after stage-level merging, and groups equal instances otherwise.
    let mut left = regroup(problem.members().map(|member| (tree.leaf(member).0, member)));
    for level in (0..tree.levels()).rev() {
        left = prune(&left, max_bucket_size, &mut buckets);
        debug_assert!(no_full_bucket(&left, max_bucket_size));
        if level > 0 {
            left = move_up(&left, tree);
        }
    }
    end(&left, problem, max_bucket_size, ending, &mut buckets);
    buckets
}

/// `PruneLeafLevel`: forms buckets of exactly `max_bucket_size` instances at each node. Returns the remaining
/// instances.
fn prune(left: &[Place], max_bucket_size: NonZeroUsize, buckets: &mut Buckets) -> Vec<Place> {
    let mut rest = Vec::new();
    for group in left.chunk_by(same_node) {
        let full = group.chunks_exact(max_bucket_size.get());
        rest.extend_from_slice(full.remainder());
        for bucket in full {
            buckets.push(bucket.iter().map(|place| place.1));
        }
    }
    let full = left.len() - rest.len();
    assert!(full.is_multiple_of(max_bucket_size.get()), "{full} instances fill buckets of {max_bucket_size}");
    rest
}

/// `MoveReuseTreeUp`: moves every remaining instance to the parent of its node.
fn move_up(left: &[Place], tree: &ReuseTree) -> Vec<Place> {
    regroup(left.iter().filter_map(|(node, member)| {
        let parent = tree.parent(NodeId(*node));
        // The caller stops at level 1, so `filter_map` drops no instance.
        debug_assert!(parent.is_some(), "level-1 nodes do not move up");
        Some((parent?.0, *member))
    }))
}

/// Forms buckets of the remaining instances. They are at nodes of level 1 and fill no bucket.
fn end(
    left: &[Place],
    problem: &MergeProblem,
    max_bucket_size: NonZeroUsize,
    ending: LeftoverRule,
    buckets: &mut Buckets,
) {
    match ending {
        LeftoverRule::WholeGroups => {
            for group in left.chunk_by(same_node) {
                buckets.push(group.iter().map(|place| place.1));
            }
        }
        LeftoverRule::Single => {
            for place in left {
                buckets.push([place.1]);
            }
        }
        LeftoverRule::ChunkUnderRoot => {
            let under_root = regroup(left.iter().map(|place| (problem.inputs(place.1), place.1)));
            for group in under_root.chunk_by(same_node) {
                for bucket in group.chunks(max_bucket_size.get()) {
                    buckets.push(bucket.iter().map(|place| place.1));
                }
            }
        }
    }
}

/// Groups the instances of a node. The sort is stable: children keep their order, and leftovers of a child
/// follow those of the child before it.
fn regroup(places: impl Iterator<Item = Place>) -> Vec<Place> {
    let mut places: Vec<Place> = places.collect();
    places.sort_by_key(|place| place.0);
    places
}

fn same_node(a: &Place, b: &Place) -> bool {
    a.0 == b.0
}

/// Post-condition of pruning: no node has enough remaining instances for a full bucket.
fn no_full_bucket(left: &[Place], max_bucket_size: NonZeroUsize) -> bool {
    left.chunk_by(same_node).all(|group| group.len() < max_bucket_size.get())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::merge_problem::TaskCosts;

    /// The twelve instances a…l of thesis Fig. 3.7: {a,b,c} share two tasks, {d,e,f,g} share two, {h,i} share
    /// two, and d…i share one. Only the drawing shows the sharing of j, k and l. Here j and k share one task.
    const FIGURE_3_7: [[u32; 3]; 12] = [
        [1, 5, 0],
        [1, 5, 1],
        [1, 5, 2],
        [2, 6, 0],
        [2, 6, 1],
        [2, 6, 2],
        [2, 6, 3],
        [2, 7, 0],
        [2, 7, 1],
        [3, 8, 0],
        [3, 9, 0],
        [4, 10, 0],
    ];

    fn rtma(max_bucket_size: usize, ending: LeftoverRule) -> Vec<String> {
        let keys = FIGURE_3_7.as_flattened().to_vec();
        let problem = MergeProblem::new(3, vec![0; 12], keys, TaskCosts::Count).unwrap();
        let tree = ReuseTree::build(&problem);
        let buckets = solve(&problem, &tree, NonZeroUsize::new(max_bucket_size).unwrap(), ending);
        let name = |member: &Member| char::from(b'a' + member.0 as u8);
        buckets.iter().map(|members| members.iter().map(name).collect()).collect()
    }

    #[test]
    fn figure_3_7_first_round_fills_two_buckets_and_g_joins_h_and_i() {
        assert_eq!(rtma(3, LeftoverRule::WholeGroups), ["abc", "def", "ghi", "jk", "l"]);
    }

    #[test]
    fn figure_4_of_paper_003_takes_s4_to_s7_first() {
        assert_eq!(rtma(4, LeftoverRule::WholeGroups), ["defg", "abc", "hi", "jk", "l"]);
    }

    #[test]
    fn the_other_endings_differ_in_what_is_left_only() {
        assert_eq!(rtma(3, LeftoverRule::Single), ["abc", "def", "ghi", "j", "k", "l"]);
        assert_eq!(rtma(3, LeftoverRule::ChunkUnderRoot), ["abc", "def", "ghi", "jkl"]);
        assert_eq!(rtma(4, LeftoverRule::ChunkUnderRoot), ["defg", "abch", "ijkl"]);
    }

    #[test]
    fn a_limit_of_one_shares_nothing_and_a_large_one_groups_by_first_task() {
        assert_eq!(rtma(1, LeftoverRule::WholeGroups).len(), 12);
        assert_eq!(rtma(100, LeftoverRule::WholeGroups), ["abc", "defghi", "jk", "l"]);
    }
}
