//! A bucket's share of the forest, and moves of branches between buckets.
//!
//! A move changes only the branch, the nodes above it and the move of an adjacent chain, in O(log n) per
//! node. The search selects the branch.

use std::collections::{BTreeMap, BTreeSet};

use crate::merge_problem::Member;
use crate::strategy::trtma::fold_merge::Group;
use crate::strategy::trtma::forest::{Forest, RankedForest};

/// A bucket's share of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NodeShare {
    /// Number of instances in the branch.
    pub(super) leaves: u32,
    /// Number of children in the bucket.
    pub(super) children: u32,
    /// Cost of the branch, the node included.
    pub(super) cost: u64,
}

/// A branch that can leave a bucket, described by its effect. Moving a node moves its whole chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct BranchMove {
    /// Decrease of the cost difference between two buckets that share nothing: the loss of one plus the gain
    /// of the other.
    pub(super) weight: u64,
    /// Cost that the bucket loses.
    pub(super) removed: u64,
    /// Number of instances that move.
    pub(super) leaves: u32,
    /// Position in the visiting order of a search.
    pub(super) rank: u32,
    /// Deepest node of the chain.
    pub(super) node: u32,
}

impl BranchMove {
    /// Returns the shape. Moves of equal shape are interchangeable between buckets that share nothing.
    pub(super) fn shape(self) -> (u64, u64, u32) {
        (self.weight, self.removed, self.leaves)
    }

    /// Returns a bound for the moves of a shape: rank 0 precedes all of them, `u32::MAX` follows them.
    pub(super) fn of_shape((weight, removed, leaves): (u64, u64, u32), rank: u32) -> Self {
        Self { weight, removed, leaves, rank, node: rank }
    }
}

/// A bucket under balance.
#[derive(Debug, Default)]
pub(super) struct BalancedBucket {
    pub(super) parts: BTreeMap<u32, NodeShare>,
    /// Nodes of this bucket that also have instances in other buckets.
    partial: BTreeSet<u32>,
    /// Moves in order. `None` until requested: only buckets that were once the most expensive are searched.
    moves: Option<BTreeSet<BranchMove>>,
    pub(super) cost: u64,
    pub(super) leaves: u32,
}

impl BalancedBucket {
    pub(super) fn new(forest: &Forest, group: &Group) -> Self {
        let bucket = Self::of_branches(forest, &group.heads);
        debug_assert_eq!(bucket.cost, group.cost);
        bucket
    }

    /// Creates the bucket of these branches, given their topmost nodes.
    pub(super) fn of_branches(forest: &Forest, heads: &[u32]) -> Self {
        let mut above: BTreeMap<u32, NodeShare> = BTreeMap::new();
        let mut bucket = Self::default();
        for head in heads {
            let leaves = forest.leaves(*head);
            let (mut cost, mut children) = (forest.subtree_cost(*head), 1);
            for node in forest.ancestors(*head) {
                let part = above.entry(node).or_insert(NodeShare { leaves: 0, children: 0, cost: 0 });
                if part.leaves == 0 {
                    cost += forest.cost(node);
                }
                part.cost += cost;
                part.leaves += leaves;
                part.children += children;
                // An ancestor seen for the first time is a new child of the next one.
                children = u32::from(part.leaves == leaves);
            }
            bucket.cost += cost;
            bucket.leaves += leaves;
        }
        bucket.partial = above
            .iter()
            .filter(|(node, part)| part.leaves < forest.leaves(**node))
            .map(|(node, _)| *node)
            .collect();
        let whole = |node: u32| {
            let (leaves, children) = (forest.leaves(node), forest.children(node));
            (node, NodeShare { leaves, children, cost: forest.subtree_cost(node) })
        };
        let branches = heads.iter().flat_map(|head| *head..forest.end(*head)).map(whole);
        bucket.parts = branches.chain(above).collect();
        bucket
    }

    /// Returns the instances, in preorder.
    pub(super) fn members(&self, forest: &Forest) -> impl Iterator<Item = Member> + '_ {
        let leaves: Vec<Member> = self
            .parts
            .iter()
            .filter(|(_, part)| part.children == 0)
            .map(|(node, _)| forest.member(*node))
            .collect();
        leaves.into_iter()
    }

    /// Returns the children of a node.
    pub(super) fn children(&self, forest: &Forest, node: u32) -> Vec<u32> {
        let next = |from: u32| self.parts.range(from..forest.end(node)).next().map(|(child, _)| *child);
        std::iter::successors(next(node + 1), |child| next(forest.end(*child))).collect()
    }

    /// Returns the nodes that both buckets have, in preorder.
    pub(super) fn shared(&self, other: &Self) -> Vec<u32> {
        // A node in both buckets is complete in neither.
        self.partial.intersection(&other.partial).copied().collect()
    }

    /// Returns the topmost node of the chain of a node.
    pub(super) fn top(&self, forest: &Forest, node: u32) -> u32 {
        let only_child = |parent: &u32| self.parts[parent].children == 1;
        forest.ancestors(node).take_while(only_child).last().unwrap_or(node)
    }

    /// Returns the deepest node of the chain of a node.
    pub(super) fn bottom(&self, node: u32) -> u32 {
        // In preorder the first child follows its parent.
        self.parts.range(node..).find(|(_, part)| part.children != 1).map_or(node, |(node, _)| *node)
    }

    /// Returns the move of a chain, given its deepest node.
    pub(super) fn move_of(&self, ranked: RankedForest<'_>, node: u32) -> BranchMove {
        let top = self.top(ranked.forest, node);
        let removed = self.parts[&top].cost;
        BranchMove {
            weight: 2 * removed + ranked.forest.cost_above(top),
            removed,
            leaves: self.parts[&node].leaves,
            rank: ranked.rank(top),
            node,
        }
    }

    /// Lists the moves if they are not yet listed. Later changes of the bucket update the list.
    pub(super) fn list_moves(&mut self, ranked: RankedForest<'_>) {
        if self.moves.is_none() {
            let bottoms = self.parts.iter().filter(|(_, part)| part.children != 1);
            let moves = bottoms.map(|(node, _)| self.move_of(ranked, *node)).collect();
            self.moves = Some(moves);
        }
    }

    /// Returns one move per chain. `None` before [`list_moves`](Self::list_moves).
    pub(super) fn moves(&self) -> Option<&BTreeSet<BranchMove>> {
        self.moves.as_ref()
    }

    /// Returns the additional cost of `self` with a branch of `other`, given the branch's topmost node.
    pub(super) fn added(&self, forest: &Forest, other: &Self, top: u32) -> u64 {
        if !self.parts.contains_key(&top) {
            let missing = forest.ancestors(top).take_while(|node| !self.parts.contains_key(node));
            return other.parts[&top].cost + missing.map(|node| forest.cost(node)).sum::<u64>();
        }
        let (mut node, mut added) = (top, 0);
        while let Some((next, part)) = other.parts.range(node..forest.end(top)).next() {
            node = next + 1;
            if !self.parts.contains_key(next) {
                added += part.cost;
                node = forest.end(*next);
            }
        }
        added
    }

    /// Removes a branch, given the topmost node of its chain. Returns its nodes in preorder, the topmost node
    /// first.
    pub(super) fn take(&mut self, ranked: RankedForest<'_>, top: u32) -> Vec<(u32, NodeShare)> {
        let forest = ranked.forest;
        let branch: Vec<(u32, NodeShare)> =
            self.parts.range(top..forest.end(top)).map(|(node, part)| (*node, *part)).collect();
        let above: Vec<u32> = forest.ancestors(top).collect();
        // A parent left with one child joins the chain of that child, whose move then changes.
        let left_alone = above.first().filter(|parent| self.parts[parent].children == 2).map(|parent| {
            let first = self.parts.range(parent + 1..).next().map_or(top, |(node, _)| *node);
            let next = || self.parts.range(forest.end(top)..).next().map_or(top, |(node, _)| *node);
            self.bottom(if first == top { next() } else { first })
        });
        let moving = branch.iter().map(|(node, _)| *node);
        self.forget_moves(ranked, moving.chain(above.iter().copied()).chain(left_alone));

        for (node, _) in &branch {
            self.parts.remove(node);
            self.partial.remove(node);
        }
        // The topmost node comes first in preorder, and its share sums up the branch.
        let gone = branch[0].1;
        for (steps, node) in above.iter().enumerate() {
            if let Some(part) = self.parts.get_mut(node) {
                part.leaves -= gone.leaves;
                part.cost -= gone.cost;
                // Only the nearest ancestor loses a child. No ancestor stays complete: the branch leaves the bucket.
                part.children -= u32::from(steps == 0);
                self.partial.insert(*node);
            }
        }
        self.cost -= gone.cost;
        self.leaves -= gone.leaves;
        self.learn_moves(ranked, above.into_iter().chain(left_alone));
        branch
    }

    /// Adds a branch that was taken out of another bucket.
    pub(super) fn add_branch(&mut self, ranked: RankedForest<'_>, branch: &[(u32, NodeShare)]) {
        let mut at = 0;
        while at < branch.len() {
            let (node, _) = branch[at];
            let mut next = at + 1;
            if !self.parts.contains_key(&node) {
                // The bucket has no node of the branch below, so it is attached whole.
                next = at + branch[at..].partition_point(|(below, _)| *below < ranked.forest.end(node));
                self.attach(ranked, &branch[at..next]);
            }
            at = next;
        }
    }

    /// Adds a branch without any node in this bucket.
    fn attach(&mut self, ranked: RankedForest<'_>, branch: &[(u32, NodeShare)]) {
        let forest = ranked.forest;
        let (top, new) = branch[0];
        let (here, missing): (Vec<u32>, Vec<u32>) =
            forest.ancestors(top).partition(|node| self.parts.contains_key(node));
        // A second child splits the chain of the parent and its only child, whose move then changes.
        let until_now_alone = here.first().filter(|parent| self.parts[parent].children == 1);
        let until_now_alone = until_now_alone.map(|parent| self.bottom(*parent));
        self.forget_moves(ranked, here.iter().copied().chain(until_now_alone));

        let mut cost = new.cost;
        for node in &missing {
            cost += forest.cost(*node);
            self.insert(forest, *node, NodeShare { leaves: new.leaves, children: 1, cost });
        }
        for (node, part) in branch {
            self.insert(forest, *node, *part);
        }
        for (steps, node) in here.iter().enumerate() {
            if let Some(part) = self.parts.get_mut(node) {
                part.leaves += new.leaves;
                part.cost += cost;
                part.children += u32::from(steps == 0);
                if part.leaves == forest.leaves(*node) {
                    self.partial.remove(node);
                }
            }
        }
        self.cost += cost;
        self.leaves += new.leaves;
        let branch = branch.iter().map(|(node, _)| *node);
        self.learn_moves(ranked, branch.chain(here).chain(until_now_alone));
    }

    fn insert(&mut self, forest: &Forest, node: u32, part: NodeShare) {
        self.parts.insert(node, part);
        if part.leaves < forest.leaves(node) {
            self.partial.insert(node);
        }
    }

    /// Removes the listed moves of these nodes. Must precede the change, because a move is found by its
    /// former values. Only the deepest node of a chain has a move.
    fn forget_moves(&mut self, ranked: RankedForest<'_>, nodes: impl Iterator<Item = u32>) {
        if let Some(mut moves) = self.moves.take() {
            for node in nodes.filter(|node| self.parts[node].children != 1) {
                moves.remove(&self.move_of(ranked, node));
            }
            self.moves = Some(moves);
        }
    }

    /// Lists the moves of these nodes again after the change.
    fn learn_moves(&mut self, ranked: RankedForest<'_>, nodes: impl Iterator<Item = u32>) {
        if let Some(mut moves) = self.moves.take() {
            for node in nodes.filter(|node| self.parts[node].children != 1) {
                moves.insert(self.move_of(ranked, node));
            }
            self.moves = Some(moves);
        }
    }

    /// Returns whether all maintained state equals a recomputation from the parts.
    #[cfg(test)]
    pub(super) fn is_consistent(&self, ranked: RankedForest<'_>) -> bool {
        let forest = ranked.forest;
        let mut seen = Self { parts: BTreeMap::new(), ..Self::default() };
        for (leaf, _) in self.parts.iter().filter(|(_, part)| part.children == 0) {
            seen.attach(ranked, &[(*leaf, NodeShare { leaves: 1, children: 0, cost: forest.cost(*leaf) })]);
        }
        if self.moves.is_some() {
            seen.list_moves(ranked);
        }
        self.moves == seen.moves
            && (&seen.parts, &seen.partial) == (&self.parts, &self.partial)
            && (seen.cost, seen.leaves) == (self.cost, self.leaves)
    }
}
