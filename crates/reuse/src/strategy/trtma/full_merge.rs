//! Full-Merge, the first phase of TRTMA: descends from the top of the tree to the first level with enough
//! nodes. Each of its nodes becomes a bucket.
//!
//! The papers leave two cases open. If even the last tasks are too few, every instance is a bucket. If the
//! limit allows each input its own bucket, each input's tree is merged separately ([`shares`]), so that no
//! bucket reads several inputs. The buckets may exceed the limit, and the next phase folds them.

use super::forest::{Forest, ForestIndex};
use crate::bucket_shares::{InputLoad, bucket_shares};
use crate::graph::tree::{NodeId, ReuseTree};
use crate::merge_problem::MergeProblem;

/// Returns how many of `max_buckets` buckets each input gets, by the costs of the inputs' trees. `None` if there are
/// fewer buckets than inputs.
pub(super) fn shares(forest: &Forest, places: &ForestIndex, max_buckets: usize) -> Option<Vec<usize>> {
    let load = |root: &u32| InputLoad {
        cost: forest.subtree_cost(*root) as f64,
        instances: forest.leaves(*root) as usize,
    };
    let loads: Vec<InputLoad> = places.of_input.iter().map(load).collect();
    bucket_shares(&loads, max_buckets)
}

/// Returns for each input the nodes that become buckets: those of the first level with at least as many nodes
/// as the input's share. They are in preorder, from left to right in the papers' drawings.
pub(super) fn merge(
    problem: &MergeProblem,
    tree: &ReuseTree,
    places: &ForestIndex,
    shares: &[usize],
) -> Vec<Vec<u32>> {
    let input_of = |node: NodeId| places.input_of[tree.first_member(node).0 as usize] as usize;
    let mut heads = vec![Vec::new(); shares.len()];
    let mut found = vec![false; shares.len()];
    let mut nodes = vec![0; shares.len()];
    for level in 0..tree.levels() {
        if found.iter().all(|found| *found) {
            break;
        }
        let of_level = || (tree.level(level).start.0..tree.level(level).end.0).map(NodeId);
        nodes.fill(0);
        of_level().for_each(|node| nodes[input_of(node)] += 1);
        let enough = |input: usize| !found[input] && nodes[input] >= shares[input];
        if (0..shares.len()).any(enough) {
            for node in of_level().filter(|node| enough(input_of(*node))) {
                heads[input_of(node)].push(places.of_node[node.0 as usize]);
            }
        }
        for (found, heads) in found.iter_mut().zip(&heads) {
            *found = !heads.is_empty();
        }
    }
    for member in problem.members() {
        let input = places.input_of[member.0 as usize] as usize;
        if !found[input] {
            heads[input].push(places.of_member[member.0 as usize]);
        }
    }
    heads.iter_mut().for_each(|heads| heads.sort_unstable());
    heads
}

/// Post-condition: the branches of the nodes are disjoint and hold `instances` instances.
pub(super) fn covers<'a>(forest: &Forest, heads: impl Iterator<Item = &'a u32>, instances: usize) -> bool {
    let (mut leaves, mut end) = (0, 0);
    let mut follows = |head: &u32| {
        leaves += forest.leaves(*head) as usize;
        let follows = *head >= end;
        end = forest.end(*head);
        follows
    };
    heads.into_iter().all(&mut follows) && leaves == instances
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::merge_problem::TaskCosts;

    fn merged(keys: &[u32], levels: usize, inputs: &[u32], max_buckets: usize) -> Option<Vec<usize>> {
        let problem = MergeProblem::new(levels, inputs.to_vec(), keys.to_vec(), TaskCosts::Count).unwrap();
        let tree = ReuseTree::build(&problem);
        let (forest, places) = Forest::build(&problem, &tree);
        let shares = shares(&forest, &places, max_buckets)?;
        let heads = merge(&problem, &tree, &places, &shares).concat();
        assert!(covers(&forest, heads.iter(), problem.len()));
        Some(heads.iter().map(|head| forest.leaves(*head) as usize).collect())
    }

    /// Thesis Fig. 3.8: two first tasks, three second tasks, MaxBuckets 3. Only the drawing shows the leaves.
    #[test]
    fn figure_3_8_stops_at_the_second_level() {
        let keys = [[1, 4, 0], [1, 4, 1], [1, 5, 0], [1, 5, 1], [2, 3, 0], [2, 3, 1]];
        assert_eq!(merged(keys.as_flattened(), 3, &[0; 6], 2), Some(vec![4, 2]));
        assert_eq!(merged(keys.as_flattened(), 3, &[0; 6], 3), Some(vec![2, 2, 2]));
        assert_eq!(merged(keys.as_flattened(), 3, &[0; 6], 4), Some(vec![1; 6]));
        assert_eq!(merged(keys.as_flattened(), 3, &[0; 6], 1), Some(vec![4, 2]));
    }

    #[test]
    fn too_few_last_tasks_make_every_instance_a_bucket() {
        assert_eq!(merged(&[7; 5], 1, &[0; 5], 2), Some(vec![1; 5]));
        assert_eq!(merged(&[7; 5], 1, &[0; 5], 1), Some(vec![5]));
        assert_eq!(merged(&[7; 5], 1, &[0; 5], 99), Some(vec![1; 5]));
    }

    #[test]
    fn inputs_get_buckets_by_what_they_cost() {
        let keys = [[1, 1], [2, 2], [3, 3], [4, 4], [1, 1]];
        let inputs = [0, 0, 0, 0, 1];
        assert_eq!(merged(keys.as_flattened(), 2, &inputs, 1), None);
        let problem =
            MergeProblem::new(2, inputs.to_vec(), keys.as_flattened().to_vec(), TaskCosts::Count).unwrap();
        let (forest, places) = Forest::build(&problem, &ReuseTree::build(&problem));
        let found = [2, 4, 5, 50].map(|max_buckets| shares(&forest, &places, max_buckets).unwrap());
        assert_eq!(found, [[1, 1], [3, 1], [4, 1], [4, 1]]);
    }
}
