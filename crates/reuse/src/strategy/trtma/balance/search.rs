//! `SingleBalance`: selects the branch to move from the more expensive bucket to the cheaper one.
//!
//! Without pruning, or with pruning among siblings, the search walks the more expensive bucket. With pruning
//! among all nodes the bucket keeps its moves in order, and the search proceeds outward from the weight that
//! would make both buckets equal. If buckets share nothing, it finds the same move as the walk, without
//! walking. Otherwise it finds a move as good as the first of each shape.

use std::collections::{BTreeMap, BTreeSet};

use super::bucket::{BalancedBucket, BranchMove};
use crate::strategy::trtma::forest::RankedForest;
use crate::strategy::trtma::{MoveSearch, Pruning, TrtmaOptions};

/// Maximum number of shapes that a search tries on either side of the imbalance, nearest first: `AT_FIRST`,
/// and `LATER` after `A_NODE` tries per node to balance. A search needs two if buckets share nothing. If they
/// share tasks and every task has a distinct cost, it would need as many as the bucket has nodes, for a
/// negligibly better move. These limits keep the whole balancing linear.
const AT_FIRST: u64 = 512;
const LATER: u64 = 2;
const A_NODE: u64 = 2;

/// Returns the maximum number of shapes for the next search, after `tried` tries among `nodes` nodes.
pub(super) fn max_tries(tried: u64, nodes: u64) -> u64 {
    if tried < A_NODE * nodes { AT_FIRST } else { LATER }
}

/// Branch to move and the resulting costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Improvement {
    /// Topmost node of the branch.
    pub(super) top: u32,
    /// Cost of the more expensive of the two buckets after the move.
    pub(super) makespan: u64,
    /// Cost difference of the two buckets after the move.
    pub(super) imbalance: u64,
}

/// Search between two buckets.
pub(super) struct SingleBalance<'a> {
    ranked: RankedForest<'a>,
    options: TrtmaOptions,
    big: &'a BalancedBucket,
    small: &'a BalancedBucket,
    max_tries: u64,
    best: Option<(u64, u32, Improvement)>,
    /// Nodes tried.
    pub(super) tried: u64,
}

impl<'a> SingleBalance<'a> {
    pub(super) fn new(
        ranked: RankedForest<'a>,
        options: TrtmaOptions,
        big: &'a BalancedBucket,
        small: &'a BalancedBucket,
        max_tries: u64,
    ) -> Self {
        Self { ranked, options, big, small, max_tries, best: None, tried: 0 }
    }

    /// Finds the move with the least imbalance, on ties the first visited. In the journal's order only moves that
    /// also lower the makespan count.
    pub(super) fn search(
        ranked: RankedForest<'a>,
        options: TrtmaOptions,
        big: &'a mut BalancedBucket,
        small: &'a BalancedBucket,
        max_tries: u64,
    ) -> (Option<Improvement>, u64) {
        if options.pruning == Pruning::All {
            big.list_moves(ranked);
        }
        let mut search = Self::new(ranked, options, big, small, max_tries);
        match options.pruning {
            Pruning::All => search.search_outwards(),
            Pruning::None | Pruning::Siblings => search.walk(),
        }
        (search.best.map(|(_, _, improvement)| improvement), search.tried)
    }

    fn imbalance(&self) -> u64 {
        self.big.cost.abs_diff(self.small.cost)
    }

    /// Returns the upper bound of the imbalance after an acceptable move.
    fn bound(&self) -> u64 {
        self.best.map_or(self.imbalance(), |(imbalance, _, _)| imbalance)
    }

    /// Tries the move of the chain with this deepest node.
    fn consider(&mut self, node: u32) {
        let forest = self.ranked.forest;
        if self.big.parts[&node].leaves == self.big.leaves {
            return; // All of the bucket: its costs would change owners.
        }
        let top = self.big.top(forest, node);
        let chain = std::iter::once(node).chain(forest.ancestors(node).take_while(|above| *above >= top));
        let tasks = || chain.map(|node| forest.tasks(node)).sum::<u32>().max(1);
        // Every node of a chain moves the same branch (thesis 3.3.4, single child pruning): repeats cost time only.
        let times = if self.options.skip_chains { 1 } else { tasks() };
        for _ in 0..times {
            self.tried += 1;
            let big = self.big.cost - self.big.parts[&top].cost;
            let small = self.small.cost + self.small.added(forest, self.big, top);
            let (imbalance, makespan) = (big.abs_diff(small), big.max(small));
            let lowers = self.options.search == MoveSearch::BestImbalanceFirst || makespan < self.big.cost;
            let rank = self.ranked.rank(top);
            let better = match self.best {
                Some((least, first, _)) => (imbalance, rank) < (least, first),
                None => imbalance < self.imbalance(),
            };
            if lowers && better {
                self.best = Some((imbalance, rank, Improvement { top, makespan, imbalance }));
            }
        }
    }

    /// Returns the imbalance after the best move found.
    #[cfg(test)]
    pub(super) fn least_imbalance(&self) -> u64 {
        self.bound()
    }

    /// Walks the bucket as the papers do. With pruning, tries one branch per shape. With pruning among
    /// siblings, also skips the nodes below a skipped branch.
    pub(super) fn walk(&mut self) {
        let big = self.big;
        let mut shapes: BTreeMap<u32, BTreeSet<(u64, u64, u32)>> = BTreeMap::new();
        let mut from = 0;
        while let Some((node, part)) = big.parts.range(from..).next() {
            from = node + 1;
            let parent = self.ranked.forest.parent(*node);
            let is_top = parent.is_none_or(|parent| big.parts[&parent].children != 1);
            if self.options.pruning != Pruning::None && is_top {
                let among = if self.options.pruning == Pruning::All { None } else { parent };
                // A shape has cost and leaf count: thesis 3.3.4 shows that either alone prunes a necessary branch.
                let shape = big.move_of(self.ranked, big.bottom(*node)).shape();
                if !shapes.entry(among.unwrap_or(u32::MAX)).or_default().insert(shape) {
                    if self.options.pruning == Pruning::Siblings {
                        from = self.ranked.forest.end(*node);
                    } else {
                        from = big.bottom(*node) + 1;
                    }
                    continue;
                }
            }
            if part.children != 1 {
                self.consider(*node);
            }
        }
    }

    /// Tries the moves by their distance from the imbalance, one of each shape.
    pub(super) fn search_outwards(&mut self) {
        let shared = self.big.shared(self.small);
        let forest = self.ranked.forest;
        // Upper bound of the cost of shared ancestors, which a move does not add to the small bucket.
        let most_shared = shared.iter().map(|node| forest.path_cost(*node)).max().unwrap_or(0);
        // That bound fails for branches with nodes in both buckets, so these are tried separately.
        for node in shared {
            let parent = forest.parent(node);
            if parent.is_none_or(|parent| self.big.parts[&parent].children != 1) {
                self.consider(self.big.bottom(node));
            }
        }
        let target = self.imbalance();
        // Lighter moves: shared ancestors only lower the effect, so the weight gives the least imbalance.
        self.look(|this, from: Option<BranchMove>| {
            let end = from.unwrap_or(BranchMove::of_shape((target, u64::MAX, u32::MAX), u32::MAX));
            let moves = this.big.moves()?;
            let shape = moves.range(..end).next_back()?.shape();
            let first = moves.range(BranchMove::of_shape(shape, 0)..).next()?;
            // No underflow: the range ends at the target weight.
            (target - first.weight <= this.bound()).then_some((*first, BranchMove::of_shape(shape, 0)))
        });
        // Heavier moves: shared ancestors lower the effect by at most `most_shared`.
        self.look(|this, from: Option<BranchMove>| {
            let start = from.unwrap_or(BranchMove::of_shape((target, u64::MAX, u32::MAX), u32::MAX));
            let first = this.big.moves()?.range(start..).next()?;
            let nearest = first.weight.saturating_sub(most_shared).saturating_sub(target);
            (nearest <= this.bound()).then_some((*first, BranchMove::of_shape(first.shape(), u32::MAX)))
        });
    }

    /// Tries moves while `next` returns one, at most `max_tries`. `next` maps the current position to a move
    /// and the next position.
    fn look(&mut self, next: impl Fn(&Self, Option<BranchMove>) -> Option<(BranchMove, BranchMove)>) {
        let (mut from, mut shapes) = (None, 0);
        while shapes < self.max_tries
            && let Some((candidate, go_on)) = next(self, from)
        {
            self.consider(candidate.node);
            from = Some(go_on);
            shapes += 1;
        }
    }
}
