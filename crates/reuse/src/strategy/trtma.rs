//! The Task-Balanced Reuse-Tree Merging Algorithm (thesis §3.3.4, paper 001 §4.2.4): balanced buckets, at most a
//! given number.
//!
//! [`full_merge`] cuts the reuse tree into branches, [`fold_merge`] joins them down to the limit, and [`balance`]
//! moves branches from the most expensive bucket to the cheapest. `forest` is the tree that all three use.
//!
//! The problem defines costs (task counts, or measured costs). If the limit is at least the number of inputs,
//! it is divided among the inputs, and no bucket reads several. Below that, whole inputs without shared tasks
//! are folded together, and [`TrtmaReport::mixed_buckets`] counts the resulting buckets. The limit is the
//! only influence of workers and memory.

mod balance;
mod fold_merge;
mod forest;
mod full_merge;

use std::num::NonZeroUsize;

use serde::{Deserialize, Serialize};

pub use self::balance::replan::{PreviousPlan, Replanned, replan};
use self::forest::{Forest, RankedForest};
use crate::buckets::Buckets;
use crate::graph::tree::ReuseTree;
use crate::merge_problem::{Member, MergeProblem};

/// TRTMA's balancing options. The default is the journal's description with the thesis's pruning among all nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct TrtmaOptions {
    /// Preferred move of a search.
    pub search: MoveSearch,
    /// Rule for the partner of the most expensive bucket.
    pub small_bucket: PartnerRule,
    /// Branches that count as equal.
    pub pruning: Pruning,
    /// Whether a chain is tried once. All of its nodes move the same branch.
    pub skip_chains: bool,
}

impl Default for TrtmaOptions {
    fn default() -> Self {
        Self {
            search: MoveSearch::default(),
            small_bucket: PartnerRule::default(),
            pruning: Pruning::default(),
            skip_chains: true,
        }
    }
}

/// Preferred move of a search. The published versions differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MoveSearch {
    /// The journal's version: the least imbalance among the moves that lower the makespan.
    #[default]
    MakespanInside,
    /// The thesis's version: the least imbalance of all moves. Balancing ends once this move does not lower
    /// the makespan.
    BestImbalanceFirst,
}

/// Rule for the bucket that balances with the most expensive one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PartnerRule {
    /// The last bucket in the order of costs, one of the cheapest.
    #[default]
    Last,
    /// The cheapest bucket that shares most with the most expensive one (thesis Fig. 3.14a). Inspects all
    /// cheapest buckets at every step.
    MostReuse,
    /// The bucket with the best move, among all others (thesis Fig. 3.14b). Takes a search per bucket and
    /// step.
    Exhaustive,
}

/// Branches of the most expensive bucket that count as equal: those with equal leaf counts and equal costs,
/// in the bucket and in the tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pruning {
    /// No pruning: each node is tried, in time linear in the bucket for each step.
    None,
    /// Among siblings: branches below a skipped sibling are skipped too. As slow as `None`.
    Siblings,
    /// Among all nodes of the bucket. A step takes logarithmic time if buckets share nothing.
    #[default]
    All,
}

/// Statistics of a TRTMA run.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct TrtmaReport {
    /// Buckets that Full-Merge made.
    pub full_merge_buckets: usize,
    /// Buckets left after Fold-Merge.
    pub fold_merge_buckets: usize,
    /// Branches that Balance moved.
    pub balance_steps: u64,
    /// Nodes that Balance tried.
    pub nodes_tried: u64,
    /// Number of balancings that ended with a move that would not have lowered the makespan, at most one per
    /// input.
    pub false_improvements: usize,
    /// Buckets that read different inputs, which share no tasks. 0 if the limit leaves each input a bucket.
    pub mixed_buckets: usize,
}

/// Groups the instances of a problem into at most `max_buckets` buckets.
///
/// Every instance is in exactly one bucket. Instances of different inputs share a bucket only if inputs outnumber
/// buckets. Buckets follow the order of the tree, members are in depth-first order. Deterministic. Takes O(kn log
/// n) for sampled designs, and O(kn) memory.
pub fn trtma(
    problem: &MergeProblem,
    tree: &ReuseTree,
    max_buckets: NonZeroUsize,
    options: TrtmaOptions,
) -> (Buckets, TrtmaReport) {
    let (forest, places) = Forest::build(problem, tree);
    let mut report = TrtmaReport::default();
    let mut buckets = Buckets::default();
    // Sets of branches that are folded and balanced together, with their numbers of buckets.
    let parts: Vec<(Vec<u32>, NonZeroUsize)> = match full_merge::shares(&forest, &places, max_buckets.get()) {
        Some(shares) => {
            let heads = full_merge::merge(problem, tree, &places, &shares);
            let shares =
                shares.into_iter().map(|share| NonZeroUsize::new(share).unwrap_or(NonZeroUsize::MIN));
            heads.into_iter().zip(shares).collect()
        }
        None => vec![(places.of_input.clone(), max_buckets)],
    };
    let input_of = places.input_of;
    debug_assert!(full_merge::covers(&forest, parts.iter().flat_map(|part| &part.0), problem.len()));
    let ranks = balance::ranks(&forest, options.search);
    let ranked = RankedForest { forest: &forest, ranks: ranks.as_deref() };
    for (heads, limit) in parts {
        report.full_merge_buckets += heads.len();
        let groups = fold_merge::fold(&forest, &heads, limit);
        assert!(groups.len() <= limit.get(), "{} groups are left, {limit} may be", groups.len());
        debug_assert_eq!(groups.iter().map(|group| group.heads.len()).sum::<usize>(), heads.len());
        report.fold_merge_buckets += groups.len();
        let before = groups.len();
        let (members, balanced) = balance::balance(ranked, groups, options);
        assert!(members.len() == before, "{before} groups are balanced into {} buckets", members.len());
        report.balance_steps += balanced.steps;
        report.nodes_tried += balanced.tried;
        report.false_improvements += usize::from(balanced.ended_falsely);
        for members in members {
            let inputs = |pair: &[Member]| [0, 1].map(|side| input_of[pair[side].0 as usize]);
            report.mixed_buckets +=
                usize::from(members.windows(2).map(inputs).any(|[left, right]| left != right));
            buckets.push(members);
        }
    }
    assert!(buckets.len() <= max_buckets.get(), "{} buckets are made, {max_buckets} may be", buckets.len());
    debug_assert_eq!(buckets.check_partition(problem), Ok(()));
    (buckets, report)
}
