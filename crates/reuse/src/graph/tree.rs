//! The reuse tree (thesis §3.3.3): one node per distinct prefix of tasks, built in O(kn) with a hash per level.
//!
//! The papers insert one instance after the other (Fig. 3.6). Here all instances descend one level at a time. The
//! tree and the order of a node's children are the same, but only one level's table exists at once, and a branch
//! with a single remaining instance needs no look-up. The steps of a large level are first partitioned by hash, so
//! that each table stays in the processor's cache (radix partitioning, as in hash joins).
//!
//! The virtual root of the papers is no node: nodes without a parent belong to level 1, and the identity of
//! the inputs replaces the papers' one stage and one tile below the root. The tree does not contain buckets.

use std::ops::Range;

use crate::graph::interner::{Interner, hash};
use crate::merge_problem::{Member, MergeProblem};

/// A task of the reuse tree. Numbered level by level, and within a level by the first instance that needs it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub u32);

/// The distinct task prefixes of the instances of a [`MergeProblem`].
#[derive(Debug, Clone)]
pub struct ReuseTree {
    /// Parent of nodes below level 1. Meaningless for nodes of level 1.
    parents: Vec<NodeId>,
    /// The first instance that needs the task.
    first: Vec<Member>,
    costs: Vec<f64>,
    /// Level `l` (from 0) is the nodes `starts[l]..starts[l + 1]`.
    starts: Vec<u32>,
    leaves: Vec<NodeId>,
}

impl ReuseTree {
    /// Builds the tree of all instances of a problem.
    pub fn build(problem: &MergeProblem) -> Self {
        let mut tree = Self {
            parents: Vec::new(),
            first: Vec::new(),
            costs: Vec::new(),
            starts: vec![0],
            leaves: Vec::new(),
        };
        // Position of each instance: first the identity of its inputs, then its node of the level above.
        let mut above: Vec<u32> = problem.members().map(|member| problem.inputs(member)).collect();
        let mut alone = vec![false; problem.len()];
        let mut siblings = Siblings::default();
        for level in 0..problem.levels() {
            siblings.find(problem, level, &above, &alone);
            tree.push_level(problem, level, &siblings.first, &mut above, &mut alone);
        }
        tree.leaves = above.into_iter().map(NodeId).collect();
        let (leaves, levels) = (tree.leaves.len(), tree.levels());
        assert!(leaves == problem.len(), "{} instances have {leaves} leaves", problem.len());
        assert!(levels == problem.levels(), "{} tasks have {levels} levels", problem.levels());
        tree
    }

    /// Moves every instance one level down and creates the nodes of that level. `first` holds for each instance the
    /// first one that takes the same step.
    fn push_level(
        &mut self,
        problem: &MergeProblem,
        level: usize,
        first: &[u32],
        above: &mut [u32],
        alone: &mut [bool],
    ) {
        let start = self.parents.len();
        // Number of instances per node.
        let mut instances = Vec::new();
        for member in problem.members() {
            let at = member.0 as usize;
            if first[at] == member.0 {
                let node = self.parents.len() as u32;
                self.parents.push(NodeId(above[at]));
                self.first.push(member);
                self.costs.push(problem.cost(member, level));
                instances.push(0_u32);
                above[at] = node;
            } else {
                // The first instance precedes this one, so its entry is already the node of this level.
                above[at] = above[first[at] as usize];
            }
            instances[above[at] as usize - start] += 1;
        }
        for (at, alone) in alone.iter_mut().enumerate() {
            *alone = instances[above[at] as usize - start] == 1;
        }
        let nodes = instances.len();
        let nodes_above = start - self.starts[level.saturating_sub(1)] as usize;
        assert!(
            (nodes_above..=problem.len()).contains(&nodes),
            "level {level} has {nodes} nodes, the one above {nodes_above}, of {} instances",
            problem.len()
        );
        debug_assert!(
            instances.iter().all(|instances| *instances > 0),
            "a node of level {level} has no instance"
        );
        debug_assert!(
            level == 0 || self.parents[start..].iter().all(|parent| (parent.0 as usize) < start),
            "a node of level {level} precedes its parent"
        );
        self.starts.push(self.parents.len() as u32);
    }

    /// Returns the number of levels.
    pub fn levels(&self) -> usize {
        self.starts.len() - 1
    }

    /// Returns the number of tasks that remain with maximum sharing.
    pub fn len(&self) -> usize {
        self.parents.len()
    }

    /// Returns whether the tree has no node.
    pub fn is_empty(&self) -> bool {
        self.parents.is_empty()
    }

    /// Returns the nodes of a level, counted from 0 (level 1 of the papers).
    pub fn level(&self, level: usize) -> Range<NodeId> {
        NodeId(self.starts[level])..NodeId(self.starts[level + 1])
    }

    /// Returns the number of nodes per level, first level first.
    pub fn nodes_per_level(&self) -> Vec<usize> {
        self.starts.windows(2).map(|level| (level[1] - level[0]) as usize).collect()
    }

    /// Returns the task whose result a task reads. Returns `None` for the first task of a stage.
    pub fn parent(&self, node: NodeId) -> Option<NodeId> {
        (node.0 >= self.starts[1]).then(|| self.parents[node.0 as usize])
    }

    /// Returns the last task of an instance.
    pub fn leaf(&self, member: Member) -> NodeId {
        self.leaves[member.0 as usize]
    }

    /// Returns the tasks of an instance, last task first.
    pub fn upwards(&self, member: Member) -> impl Iterator<Item = NodeId> + '_ {
        std::iter::successors(Some(self.leaf(member)), |node| self.parent(*node))
    }

    /// Returns the first instance that needs a task.
    pub fn first_member(&self, node: NodeId) -> Member {
        self.first[node.0 as usize]
    }

    /// Returns the cost of a task as given by its first instance.
    pub fn cost(&self, node: NodeId) -> f64 {
        self.costs[node.0 as usize]
    }

    /// Returns the total cost with maximum sharing. No plan of this tree costs less.
    pub fn unique_cost(&self) -> f64 {
        self.costs.iter().sum()
    }
}

/// Maximum number of instances looked up in one table. Its entries, about 20 bytes each, then fit into a
/// core's own cache.
const TABLE_INSTANCES: usize = 1 << 14;

/// Groups instances that take the same step down from the same node.
#[derive(Default)]
struct Siblings {
    /// For each instance, the first one with the same step. The instance itself, if no earlier one has it.
    first: Vec<u32>,
    /// Steps (the node above, the key) with the instances that take them.
    steps: Vec<((u32, u32), u32)>,
    /// The steps, partitioned by hash.
    dealt: Vec<((u32, u32), u32)>,
    /// End of each partition in `dealt`.
    ends: Vec<usize>,
    table: Interner<(u32, u32)>,
}

impl Siblings {
    /// Looks up a step of all instances. Instances alone at their node have no siblings.
    fn find(&mut self, problem: &MergeProblem, level: usize, above: &[u32], alone: &[bool]) {
        self.first.clear();
        self.first.extend(0..problem.len() as u32);
        let shared = alone.iter().filter(|alone| !**alone).count();
        // A power of two, so that a mask of hash bits selects the partition.
        let hands = (shared / TABLE_INSTANCES + 1).next_power_of_two();
        let steps = problem.members().filter(|member| !alone[member.0 as usize]);
        let steps = steps.map(|member| ((above[member.0 as usize], problem.keys(member)[level]), member.0));
        if hands == 1 {
            // A small level needs no partitioning.
            return first_of_each(steps, &mut self.table, &mut self.first);
        }
        self.steps.clear();
        self.steps.extend(steps);
        // Middle bits: the table uses the low bits as slot and the high bits as tag, and both must vary in a partition.
        let hand = |step: (u32, u32)| (hash(step) >> 32) as usize & (hands - 1);
        // Starts of partitions, which become their ends as they fill.
        self.ends.clear();
        self.ends.resize(hands + 1, 0);
        self.steps.iter().for_each(|(step, _)| self.ends[hand(*step) + 1] += 1);
        (0..hands).for_each(|hand| self.ends[hand + 1] += self.ends[hand]);
        self.dealt.resize(shared, ((0, 0), 0));
        // A counting sort is stable: instances stay in order, so each step has the same first instance as in one table.
        for &(step, member) in &self.steps {
            let place = &mut self.ends[hand(step)];
            self.dealt[*place] = (step, member);
            *place += 1;
        }
        let mut begin = 0;
        for end in &self.ends[..hands] {
            let dealt = self.dealt[begin..*end].iter().copied();
            first_of_each(dealt, &mut self.table, &mut self.first);
            begin = *end;
        }
        assert!(begin == shared, "{begin} of {shared} steps are dealt at level {level}");
    }
}

/// Records for each instance the first with the same step. Instances must be in order.
fn first_of_each(
    steps: impl Iterator<Item = ((u32, u32), u32)>,
    table: &mut Interner<(u32, u32)>,
    first: &mut [u32],
) {
    table.clear();
    let mut first_of_step = Vec::new();
    for (step, member) in steps {
        let number = table.intern(step) as usize;
        debug_assert!(number <= first_of_step.len(), "step {number} follows {}", first_of_step.len());
        if number == first_of_step.len() {
            first_of_step.push(member);
        }
        first[member as usize] = first_of_step[number];
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::merge_problem::TaskCosts;

    impl ReuseTree {
        /// Returns the number of nodes of a level whose first instance is before `member`.
        fn first_rank(&self, level: usize, member: Member) -> u32 {
            let range = self.starts[level] as usize..self.starts[level + 1] as usize;
            self.first[range].partition_point(|first| *first < member) as u32
        }
    }

    fn tree(levels: usize, inputs: &[u32], keys: &[u32]) -> ReuseTree {
        let problem = MergeProblem::new(levels, inputs.to_vec(), keys.to_vec(), TaskCosts::Count).unwrap();
        ReuseTree::build(&problem)
    }

    /// Thesis Fig. 3.6: x agrees with d in p1 = 8 (node 2), but not in p2, so node 6 and a leaf are new. The
    /// text gives only the value p1 = 8. The other values give the shape of the figure.
    #[test]
    fn figure_3_6_insertion_reuses_the_first_task_only() {
        let a_to_d = [[5, 1, 1], [5, 2, 1], [5, 2, 2], [8, 3, 1]];
        let before = tree(3, &[0; 4], a_to_d.as_flattened());
        assert_eq!(before.nodes_per_level(), [2, 3, 4]);

        let with_x = [&a_to_d[..], &[[8, 4, 1]]].concat();
        let after = tree(3, &[0; 5], with_x.as_flattened());
        assert_eq!(after.nodes_per_level(), [2, 4, 5]);
        let (d, x) = (Member(3), Member(4));
        let [d, x] = [d, x].map(|member| after.upwards(member).collect::<Vec<_>>());
        assert_eq!(d[2], x[2]);
        assert_eq!(after.first_member(x[2]), Member(3));
        assert_eq!([x[0], x[1]].map(|node| after.first_member(node)), [Member(4); 2]);
    }

    #[test]
    fn instances_of_different_inputs_share_nothing() {
        assert_eq!(tree(2, &[0, 1], &[3, 3, 3, 3]).nodes_per_level(), [2, 2]);
        assert_eq!(tree(2, &[1, 1], &[3, 3, 3, 3]).nodes_per_level(), [1, 1]);
    }

    /// A tree of several tables equals that of the papers: one instance after the other, one look-up per
    /// task.
    #[test]
    fn a_tree_too_large_for_one_table_is_the_same() {
        let (instances, levels) = (3 * TABLE_INSTANCES + 5, 4);
        let key = |at: usize, level: usize| (at * 7919 % [3, 50, 4000, 100_000][level]) as u32;
        let keys: Vec<u32> =
            (0..instances).flat_map(|at| (0..levels).map(move |level| key(at, level))).collect();
        let inputs: Vec<u32> = (0..instances).map(|at| (at % 2) as u32).collect();
        let tree = tree(levels, &inputs, &keys);
        let mut known = std::collections::HashMap::new();
        let mut sizes = vec![0; levels];
        for (member, row) in (0..).map(Member).zip(keys.chunks(levels)) {
            let path: Vec<NodeId> = tree.upwards(member).collect();
            for (level, node) in path.iter().rev().enumerate() {
                let prefix = (inputs[member.0 as usize], row[..=level].to_vec());
                let (found, first) = *known.entry(prefix).or_insert_with(|| {
                    sizes[level] += 1;
                    (*node, member)
                });
                assert_eq!((*node, tree.first_member(*node)), (found, first));
                assert_eq!(*node, NodeId(tree.starts[level] + tree.first_rank(level, first)));
            }
        }
        assert_eq!(tree.nodes_per_level(), sizes);
    }

    #[test]
    fn an_equal_key_below_another_parent_is_another_node() {
        let tree = tree(3, &[0; 3], &[1, 7, 7, 2, 7, 7, 1, 7, 8]);
        assert_eq!(tree.nodes_per_level(), [2, 2, 3]);
        assert_eq!(tree.parent(NodeId(0)), None);
        assert_eq!(tree.parent(tree.leaf(Member(2))), tree.parent(tree.leaf(Member(0))));
        assert_eq!(tree.unique_cost(), 7.0);
    }
}
