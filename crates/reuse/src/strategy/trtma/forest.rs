//! Reuse tree in the form that balancing needs: without chains, in preorder, with integer costs.
//!
//! A task with a single child is always in the same bucket as that child, so a chain is one node here. A tree
//! of n instances therefore has fewer than 2n + inputs nodes, independent of the number of tasks. The inputs
//! of an instance are the root of its tree, and every instance is a node of its own (at no cost, if equal
//! instances share their last task). In preorder a branch is a range of numbers. The forest does not contain
//! buckets.

use crate::graph::interner::Interner;
use crate::graph::tree::{NodeId, ReuseTree};
use crate::merge_problem::{Member, MergeProblem};

/// Marker for no node.
pub(super) const NONE: u32 = u32::MAX;

/// Chains of tasks, numbered in preorder. Children are in the order of their first instances.
#[derive(Debug)]
pub(super) struct Forest {
    parents: Vec<u32>,
    ends: Vec<u32>,
    children: Vec<u32>,
    tasks: Vec<u32>,
    leaves: Vec<u32>,
    members: Vec<Member>,
    costs: Vec<u64>,
    subtree_costs: Vec<u64>,
    path_costs: Vec<u64>,
}

/// Forest nodes of the tasks, instances and inputs of the reuse tree.
#[derive(Debug)]
pub(super) struct ForestIndex {
    /// Forest node of each tree node.
    pub(super) of_node: Vec<u32>,
    /// Forest node of each instance.
    pub(super) of_member: Vec<u32>,
    /// Root of each input, in order of first appearance.
    pub(super) of_input: Vec<u32>,
    /// Input of each instance.
    pub(super) input_of: Vec<u32>,
}

impl Forest {
    /// Compresses a reuse tree in O(kn).
    pub(super) fn build(problem: &MergeProblem, tree: &ReuseTree) -> (Self, ForestIndex) {
        let mut inputs = Interner::default();
        let input_of: Vec<u32> =
            problem.members().map(|member| inputs.intern(problem.inputs(member))).collect();
        let layout = Layout::new(problem, tree, &input_of, inputs.len());
        let (mut forest, places) = layout.place(problem, tree, input_of);
        forest.sum_up();
        (forest, places)
    }

    /// Derives the remaining fields from parents, costs and instances.
    fn sum_up(&mut self) {
        // Parents precede their children in preorder: backward, every branch is complete before its parent reads it.
        for node in (0..self.parents.len()).rev() {
            self.ends[node] = self.ends[node].max(node as u32 + 1);
            self.subtree_costs[node] += self.costs[node];
            let parent = self.parents[node] as usize;
            if parent != NONE as usize {
                self.ends[parent] = self.ends[parent].max(self.ends[node]);
                self.children[parent] += 1;
                self.leaves[parent] += self.leaves[node];
                self.subtree_costs[parent] += self.subtree_costs[node];
            }
        }
        for node in 0..self.parents.len() {
            let above = match self.parents[node] {
                NONE => 0,
                parent => self.path_costs[parent as usize],
            };
            self.path_costs[node] = above + self.costs[node];
        }
    }

    /// Returns the number of nodes.
    pub(super) fn len(&self) -> usize {
        self.parents.len()
    }

    /// Returns the node above. Returns `None` for an input.
    pub(super) fn parent(&self, node: u32) -> Option<u32> {
        Some(self.parents[node as usize]).filter(|parent| *parent != NONE)
    }

    /// Returns the nodes above, nearest first.
    pub(super) fn ancestors(&self, node: u32) -> impl Iterator<Item = u32> + '_ {
        std::iter::successors(self.parent(node), |node| self.parent(*node))
    }

    /// Returns one past the last node of the branch.
    pub(super) fn end(&self, node: u32) -> u32 {
        self.ends[node as usize]
    }

    /// Returns the number of children.
    pub(super) fn children(&self, node: u32) -> u32 {
        self.children[node as usize]
    }

    /// Returns the number of tasks in the chain.
    pub(super) fn tasks(&self, node: u32) -> u32 {
        self.tasks[node as usize]
    }

    /// Returns the number of instances in the branch.
    pub(super) fn leaves(&self, node: u32) -> u32 {
        self.leaves[node as usize]
    }

    /// Returns the cost of the chain itself.
    pub(super) fn cost(&self, node: u32) -> u64 {
        self.costs[node as usize]
    }

    /// Returns the cost of the branch.
    pub(super) fn subtree_cost(&self, node: u32) -> u64 {
        self.subtree_costs[node as usize]
    }

    /// Returns the cost of the path from the input to the node, the node included.
    pub(super) fn path_cost(&self, node: u32) -> u64 {
        self.path_costs[node as usize]
    }

    /// Returns the cost of the path to the node, without the node.
    pub(super) fn cost_above(&self, node: u32) -> u64 {
        self.path_cost(node) - self.cost(node)
    }

    /// Returns the instances of a branch, in preorder.
    pub(super) fn members(&self, node: u32) -> impl Iterator<Item = Member> + '_ {
        let branch = node..self.end(node);
        branch.filter(|node| self.leaves(*node) == 1).map(|node| self.members[node as usize])
    }

    /// Returns the instance of a node without children.
    pub(super) fn member(&self, leaf: u32) -> Member {
        debug_assert_eq!(self.leaves(leaf), 1);
        self.members[leaf as usize]
    }
}

/// Forest with the visiting order of a search.
#[derive(Debug, Clone, Copy)]
pub(super) struct RankedForest<'a> {
    pub(super) forest: &'a Forest,
    /// Rank of each node. `None` means preorder.
    pub(super) ranks: Option<&'a [u32]>,
}

impl RankedForest<'_> {
    pub(super) fn rank(self, node: u32) -> u32 {
        self.ranks.map_or(node, |ranks| ranks[node as usize])
    }
}

/// Number of children of each tree node (2 means 2 or more), and number of forest nodes in its branch.
struct Layout {
    children: Vec<u8>,
    sizes: Vec<u32>,
    input_children: Vec<u8>,
    input_sizes: Vec<u32>,
}

impl Layout {
    fn new(problem: &MergeProblem, tree: &ReuseTree, input_of: &[u32], inputs: usize) -> Self {
        let mut layout = Self {
            children: vec![0; tree.len()],
            sizes: vec![0; tree.len()],
            input_children: vec![0; inputs],
            input_sizes: vec![0; inputs],
        };
        // Only "one" and "several" differ, so a byte that stops at 2 suffices for any number of children.
        let count = |children: &mut u8| *children = (*children + 1).min(2);
        for member in problem.members() {
            let leaf = tree.leaf(member).0 as usize;
            count(&mut layout.children[leaf]);
            layout.sizes[leaf] += 1;
        }
        // Nodes are numbered by level: backward, the size of a node is final before its parent adds it.
        for node in (0..tree.len() as u32).rev().map(NodeId) {
            let at = node.0 as usize;
            layout.sizes[at] += u32::from(layout.children[at] > 1);
            let size = layout.sizes[at];
            let (children, sizes, above) = match tree.parent(node) {
                Some(parent) => (&mut layout.children, &mut layout.sizes, parent.0),
                None => {
                    let input = input_of[tree.first_member(node).0 as usize];
                    (&mut layout.input_children, &mut layout.input_sizes, input)
                }
            };
            count(&mut children[above as usize]);
            sizes[above as usize] += size;
        }
        for (size, children) in layout.input_sizes.iter_mut().zip(&layout.input_children) {
            *size += u32::from(*children > 1);
        }
        layout
    }

    /// Numbers every node. An only child gets its parent's number, any other node the next free one in the range of
    /// its parent's children.
    fn place(&self, problem: &MergeProblem, tree: &ReuseTree, input_of: Vec<u32>) -> (Forest, ForestIndex) {
        let nodes = self.input_sizes.iter().map(|size| *size as usize).sum();
        let mut forest = Forest {
            parents: vec![NONE; nodes],
            ends: vec![0; nodes],
            children: vec![0; nodes],
            tasks: vec![0; nodes],
            leaves: vec![0; nodes],
            members: vec![Member(NONE); nodes],
            costs: vec![0; nodes],
            subtree_costs: vec![0; nodes],
            path_costs: vec![0; nodes],
        };
        let free = |place: u32, children: u8| place + u32::from(children > 1);
        let mut places = ForestIndex {
            of_node: vec![0; tree.len()],
            of_member: vec![0; problem.len()],
            of_input: Vec::with_capacity(self.input_sizes.len()),
            input_of,
        };
        let mut next_place = 0;
        for size in &self.input_sizes {
            places.of_input.push(next_place);
            next_place += size;
        }
        let of_input = places.of_input.iter().zip(&self.input_children);
        let mut free_in_input: Vec<u32> = of_input.map(|(place, children)| free(*place, *children)).collect();
        let mut free_in_node = vec![0; tree.len()];
        let ticks = FixedPointCost::of(problem, tree);
        for node in (0..tree.len() as u32).map(NodeId) {
            let at = node.0 as usize;
            let (above, next) = match tree.parent(node) {
                Some(parent) => (places.of_node[parent.0 as usize], &mut free_in_node[parent.0 as usize]),
                None => {
                    let input = places.input_of[tree.first_member(node).0 as usize] as usize;
                    (places.of_input[input], &mut free_in_input[input])
                }
            };
            let place = *next;
            *next += self.sizes[at];
            places.of_node[at] = place;
            free_in_node[at] = free(place, self.children[at]);
            forest.attach(place, above);
            if self.sizes[at] > 1 {
                forest.tasks[place as usize] += 1;
                forest.costs[place as usize] += ticks.of_cost(tree.cost(node));
            }
        }
        for member in problem.members() {
            let leaf = tree.leaf(member).0 as usize;
            let place = free_in_node[leaf];
            free_in_node[leaf] += 1;
            places.of_member[member.0 as usize] = place;
            forest.attach(place, places.of_node[leaf]);
            forest.members[place as usize] = member;
            forest.leaves[place as usize] = 1;
            // Adds the tasks that only one instance needs. They are most tasks of a large tree, and are
            // stored in the order of instances.
            for node in tree.upwards(member).take_while(|node| self.sizes[node.0 as usize] == 1) {
                forest.tasks[place as usize] += 1;
                forest.costs[place as usize] += ticks.of_cost(tree.cost(node));
            }
        }
        (forest, places)
    }
}

impl Forest {
    fn attach(&mut self, place: u32, above: u32) {
        // An only child shares the place of its parent, and a node must not be its own parent.
        if place != above {
            self.parents[place as usize] = above;
        }
    }
}

/// Costs as integers. Sums then depend neither on their order nor on earlier moves, so every step of the
/// balancing makes progress.
#[derive(Debug, Clone, Copy)]
pub(super) struct FixedPointCost {
    per_unit: f64,
}

impl FixedPointCost {
    /// Selects a power of two that keeps the sum over all instances and tasks below 2⁶¹ (the search adds two
    /// such sums). Whole costs stay exact. Other costs keep as many bits as fit.
    fn of(problem: &MergeProblem, tree: &ReuseTree) -> Self {
        let nodes = (0..tree.len() as u32).map(NodeId);
        let dearest = nodes.map(|node| tree.cost(node)).fold(0.0, f64::max);
        // A sum of 2^additions costs of at most 2^exponent units stays below 2^60 plus its roundings.
        let additions = (problem.len() * problem.levels()).max(1).ilog2() as i32 + 1;
        let exponent = if dearest > 0.0 { dearest.log2().ceil() as i32 } else { 0 };
        // At most 2^1000, which is still finite. Costs below 2^-1000 count as 0.
        let per_unit = 2_f64.powi((60 - additions - exponent).min(1000));
        Self { per_unit }
    }

    fn of_cost(self, cost: f64) -> u64 {
        (cost * self.per_unit).round() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::merge_problem::TaskCosts;

    fn forest(levels: usize, inputs: &[u32], keys: &[u32], costs: TaskCosts) -> (Forest, ForestIndex) {
        let problem = MergeProblem::new(levels, inputs.to_vec(), keys.to_vec(), costs).unwrap();
        Forest::build(&problem, &ReuseTree::build(&problem))
    }

    #[test]
    fn chains_are_one_node_and_branches_are_ranges() {
        // Input 5 has a first task 1 with two instances that differ in the second task, and one instance
        // alone. Input 9 has one instance, a chain from the input on.
        let keys = [[1, 1, 1], [2, 1, 1], [1, 2, 1], [1, 1, 1]];
        let (forest, places) = forest(3, &[5, 5, 5, 9], keys.as_flattened(), TaskCosts::Count);
        let unit = forest.cost(1);
        assert_eq!(places.of_input, [0, 5]);
        assert_eq!(places.of_member, [2, 4, 3, 5]);
        assert_eq!(forest.parents, [NONE, 0, 1, 1, 0, NONE]);
        assert_eq!(forest.ends, [5, 4, 3, 4, 5, 6]);
        assert_eq!(forest.tasks, [0, 1, 2, 2, 3, 3]);
        assert_eq!(forest.leaves, [3, 2, 1, 1, 1, 1]);
        assert_eq!(forest.subtree_costs, [8, 5, 2, 2, 3, 3].map(|tasks| tasks * unit));
        assert_eq!(forest.path_costs, [0, 1, 3, 3, 3, 3].map(|tasks| tasks * unit));
        assert_eq!(forest.members(1).collect::<Vec<_>>(), [Member(0), Member(2)]);
    }

    #[test]
    fn equal_instances_are_leaves_that_cost_nothing() {
        let (forest, places) = forest(2, &[0; 3], &[1, 1, 1, 1, 1, 1], TaskCosts::Count);
        assert_eq!(places.of_member, [1, 2, 3]);
        assert_eq!(forest.subtree_costs[1..], [0, 0, 0]);
        assert_eq!(forest.tasks, [2, 0, 0, 0]);
    }

    #[test]
    fn any_finite_costs_become_whole_numbers() {
        for dearest in [0.0, f64::MIN_POSITIVE / 4.0, 2_f64.powi(-950), 1.0, 2_f64.powi(950), f64::MAX] {
            let costs = TaskCosts::PerLevel(vec![dearest, dearest / 2.0]);
            let (forest, _) = forest(2, &[0; 2], &[1, 1, 1, 2], costs);
            assert_eq!(forest.cost(0), 2 * forest.cost(1), "{dearest}");
            assert_eq!(forest.cost(0) > 0, dearest > f64::MIN_POSITIVE, "{dearest}");
        }
    }
}
