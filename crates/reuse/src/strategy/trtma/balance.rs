//! Balance, the third phase of TRTMA (paper 001, Algorithm 4; thesis, Algorithms 4 and 5): moves a branch of
//! the most expensive bucket to the cheapest, as long as that makes the former cheaper.
//!
//! After every step both buckets cost less than the more expensive one did, so the descending list of costs
//! falls lexicographically, and the loop terminates. The journal claims that the sum of imbalances (the most
//! expensive bucket paired with the cheapest, and so on inward) falls by 2 or more. This holds for the two
//! buckets if the moved branch shares nothing with either, but not always for the sum over all buckets. Costs
//! 10, 5, 5, 5 with a branch that costs 1 in the first bucket and 4 in the second become 9, 9, 5, 5, and the
//! sum rises from 5 to 8.

mod bucket;
pub(super) mod replan;
mod search;

use std::cmp::Reverse;
use std::collections::BTreeSet;

use self::bucket::BalancedBucket;
use self::search::{Improvement, SingleBalance, max_tries};
use super::fold_merge::Group;
use super::forest::{Forest, RankedForest};
use super::{MoveSearch, PartnerRule, TrtmaOptions};
use crate::merge_problem::Member;

/// Returns the rank of each node in the visiting order of a search. `None` means preorder.
pub(super) fn ranks(forest: &Forest, search: MoveSearch) -> Option<Vec<u32>> {
    match search {
        MoveSearch::MakespanInside => None,
        MoveSearch::BestImbalanceFirst => Some(bottom_up(forest)),
    }
}

/// Result of the balancing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Balanced {
    /// Branches moved.
    pub(super) steps: u64,
    /// Nodes tried.
    pub(super) tried: u64,
    /// Whether it ended with a move that would not have lowered the makespan.
    pub(super) ended_falsely: bool,
}

/// Moves branches between groups. Returns the instances of each group.
pub(super) fn balance(
    ranked: RankedForest<'_>,
    groups: Vec<Group>,
    options: TrtmaOptions,
) -> (Vec<Vec<Member>>, Balanced) {
    let mut pool = Pool::new(ranked, groups);
    let mut done = Balanced::default();
    while let Some((big, small, improvement)) = pool.best_move(options, &mut done) {
        if improvement.makespan >= pool.costs[big] {
            done.ended_falsely = true;
            break;
        }
        pool.transfer(big, small, improvement);
        done.steps += 1;
    }
    (pool.into_members(), done)
}

/// All groups, most of them untouched, in the order of their costs.
struct Pool<'a> {
    ranked: RankedForest<'a>,
    groups: Vec<Group>,
    /// Buckets of the groups, each built on first use.
    buckets: Vec<Option<BalancedBucket>>,
    costs: Vec<u64>,
    /// Most expensive first. On ties, the bucket with the oldest cost is first.
    order: BTreeSet<(Reverse<u64>, u64, usize)>,
    positions: Vec<u64>,
    next_position: u64,
    /// Number of nodes to balance.
    nodes: u64,
}

impl<'a> Pool<'a> {
    fn new(ranked: RankedForest<'a>, groups: Vec<Group>) -> Self {
        let costs: Vec<u64> = groups.iter().map(|group| group.cost).collect();
        let positions: Vec<u64> = (0..groups.len() as u64).collect();
        let order =
            costs.iter().zip(0..).map(|(cost, group)| (Reverse(*cost), group as u64, group)).collect();
        let buckets = groups.iter().map(|_| None).collect();
        let next_position = groups.len() as u64;
        let heads = groups.iter().flat_map(|group| &group.heads);
        let nodes = heads.map(|head| u64::from(ranked.forest.end(*head) - head)).sum();
        Self { ranked, groups, buckets, costs, order, positions, next_position, nodes }
    }

    /// Returns the best move between the most expensive bucket and a cheaper one.
    fn best_move(
        &mut self,
        options: TrtmaOptions,
        done: &mut Balanced,
    ) -> Option<(usize, usize, Improvement)> {
        let (_, _, big) = *self.order.first()?;
        let smalls = match options.small_bucket {
            PartnerRule::Last => vec![self.order.last()?.2],
            PartnerRule::MostReuse => vec![self.closest_of_the_cheapest(big)?],
            PartnerRule::Exhaustive => self.order.iter().rev().map(|(_, _, group)| *group).collect(),
        };
        let mut best: Option<(usize, usize, Improvement)> = None;
        let (ranked, most_tried) = (self.ranked, max_tries(done.tried, self.nodes));
        for small in smalls {
            if self.costs[small] == self.costs[big] {
                continue; // Itself, or one with which nothing is left to balance.
            }
            let (dear, cheap) = self.pair(big, small)?;
            let (found, tried) = SingleBalance::search(ranked, options, dear, cheap, most_tried);
            done.tried += tried;
            let worth = |improvement: &Improvement| (improvement.makespan, improvement.imbalance);
            if let Some(found) = found
                && best.is_none_or(|(_, _, best)| worth(&found) < worth(&best))
            {
                best = Some((big, small, found));
            }
        }
        best
    }

    /// Returns the cheapest bucket that shares most with `big`.
    fn closest_of_the_cheapest(&mut self, big: usize) -> Option<usize> {
        let (least, _, last) = *self.order.last()?;
        let cheapest: Vec<usize> = self
            .order
            .range((least, 0, 0)..)
            .map(|(_, _, group)| *group)
            .filter(|group| *group != big)
            .collect();
        let (mut best, forest) = ((0, last), self.ranked.forest);
        for small in cheapest {
            let (dear, cheap) = self.pair(big, small)?;
            let reuse: u64 = dear.shared(cheap).into_iter().map(|node| forest.cost(node)).sum();
            // On ties the later bucket counts, as for `PartnerRule::Last`.
            if reuse >= best.0 {
                best = (reuse, small);
            }
        }
        Some(best.1)
    }

    /// Returns two buckets, building them on first use. `None` if they are the same.
    fn pair(&mut self, big: usize, small: usize) -> Option<(&mut BalancedBucket, &mut BalancedBucket)> {
        for group in [big, small] {
            if self.buckets[group].is_none() {
                self.buckets[group] = Some(BalancedBucket::new(self.ranked.forest, &self.groups[group]));
                // The bucket replaces the heads: `into_members` reads them only for groups that were never built.
                self.groups[group].heads = Vec::new();
            }
        }
        let [big, small] = self.buckets.get_disjoint_mut([big, small]).ok()?;
        Some((big.as_mut()?, small.as_mut()?))
    }

    fn transfer(&mut self, big: usize, small: usize, improvement: Improvement) {
        let ranked = self.ranked;
        let Some((dear, cheap)) = self.pair(big, small) else { return };
        let dearest = dear.cost;
        let branch = dear.take(ranked, improvement.top);
        cheap.add_branch(ranked, &branch);
        debug_assert_eq!(dear.cost.max(cheap.cost), improvement.makespan);
        debug_assert!(dear.cost.max(cheap.cost) < dearest, "the makespan falls");
        debug_assert!(dear.cost.abs_diff(cheap.cost) == improvement.imbalance);
        let costs = [(big, dear.cost), (small, cheap.cost)];
        for (group, cost) in costs {
            let was_in_order = self.order.remove(&(Reverse(self.costs[group]), self.positions[group], group));
            assert!(was_in_order, "group {group} of cost {} was not in order", self.costs[group]);
            self.costs[group] = cost;
            // A new position puts the bucket behind its equals, like the multiset of thesis Algorithm 5 (lines 15-16).
            self.positions[group] = self.next_position;
            let is_new = self.order.insert((Reverse(cost), self.next_position, group));
            assert!(is_new, "group {group} is in order twice at cost {cost}");
            self.next_position += 1;
        }
    }

    fn into_members(self) -> Vec<Vec<Member>> {
        let forest = self.ranked.forest;
        let (buckets, groups) = (self.buckets.len(), self.groups.len());
        assert!(buckets == groups, "{groups} groups are balanced into {buckets} buckets");
        let members = |(bucket, group): (Option<BalancedBucket>, Group)| match bucket {
            Some(bucket) => bucket.members(forest).collect(),
            None => group.heads.iter().flat_map(|head| forest.members(*head)).collect(),
        };
        self.buckets.into_iter().zip(self.groups).map(members).collect()
    }
}

/// Returns the ranks of thesis Algorithm 4: the descendants of a level's nodes precede the level.
fn bottom_up(forest: &Forest) -> Vec<u32> {
    let mut ranks = vec![0; forest.len()];
    let mut next = forest.len() as u32;
    // Assigns ranks in reverse: the nodes of a level from the last to the first, then their children from the
    // last to the first.
    let mut levels: Vec<Vec<u32>> = vec![siblings(forest, 0, forest.len() as u32)];
    while let Some(level) = levels.pop() {
        for node in level.iter().rev() {
            next -= 1;
            ranks[*node as usize] = next;
        }
        let below = |node: u32| siblings(forest, node + 1, forest.end(node));
        levels.extend(level.into_iter().filter(|node| forest.children(*node) > 0).map(below));
    }
    ranks
}

/// Returns the sibling nodes in `start..end`.
fn siblings(forest: &Forest, start: u32, end: u32) -> Vec<u32> {
    let next = |node: &u32| Some(forest.end(*node)).filter(|node| *node < end);
    std::iter::successors(Some(start).filter(|start| *start < end), next).collect()
}

#[cfg(test)]
mod tests;
