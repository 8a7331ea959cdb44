//! The Task-Balanced Reuse-Tree Merging Algorithm (thesis §3.3.4, paper 001 §4.2.4): at most so many buckets, as
//! even as can be.
//!
//! [`full_merge`] cuts the reuse tree into branches, [`fold_merge`] joins them until they are few enough, and
//! [`balance`] moves branches from the dearest bucket to the cheapest. `forest` is the tree they work on.
//!
//! What a bucket costs is the problem's business (task counts, or measured costs). A limit of as many buckets as
//! inputs or more is divided among the inputs, and no bucket reads several; below that, whole inputs are folded
//! together, share nothing, and [`TrtmaReport::mixed_buckets`] says how many buckets that made. Workers and
//! memory are unknown here.

mod balance;
mod fold_merge;
mod forest;
mod full_merge;

use std::num::NonZeroUsize;

use serde::{Deserialize, Serialize};

pub use self::balance::replan::{Previous, Replanned, replan};
use self::forest::{Forest, RankedForest};
use crate::buckets::Buckets;
use crate::merge_problem::{Member, MergeProblem};
use crate::tree::ReuseTree;

/// How TRTMA balances. The default is what the journal describes, with the thesis's pruning among all nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct TrtmaOptions {
    /// Which move a search prefers.
    pub search: MoveSearch,
    /// Which bucket the dearest one is balanced with.
    pub small_bucket: PartnerRule,
    /// Which branches count as the same.
    pub pruning: Pruning,
    /// Whether the nodes of a chain, which all move the same branch, are tried once.
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

/// Which move a search prefers. The published versions differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MoveSearch {
    /// The journal: the least imbalance among the moves that lower the makespan.
    #[default]
    MakespanInside,
    /// The thesis: the least imbalance of all; when that does not lower the makespan, balancing ends.
    BestImbalanceFirst,
}

/// Which bucket the dearest one is balanced with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PartnerRule {
    /// The last in the order of costs: one of the cheapest.
    #[default]
    Last,
    /// Of the cheapest, the one that has most in common with the dearest (thesis Fig. 3.14a). Looks into each of
    /// those at every step.
    MostReuse,
    /// Every other one, for the best move of all (thesis Fig. 3.14b). Takes a search per bucket and step.
    Exhaustive,
}

/// Which branches of the dearest bucket count as the same: those of equal leaf count and equal costs, in the
/// bucket and beyond it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pruning {
    /// None: each node is tried, in time linear in the bucket for each step.
    None,
    /// Siblings; what is below the others is not tried either. As slow as `None`.
    Siblings,
    /// All nodes of the bucket. A step takes logarithmic time where buckets share nothing.
    #[default]
    All,
}

/// What TRTMA did.
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
    /// How often Balance ended with a move that would not have lowered the makespan: once an input at most.
    pub false_improvements: usize,
    /// Buckets that read different inputs: what is in them shares nothing. None when the limit leaves each input
    /// a bucket.
    pub mixed_buckets: usize,
}

/// Groups the instances of a problem into at most `max_buckets` buckets.
///
/// Every instance is in exactly one bucket; instances of different inputs are together only where there are more
/// inputs than buckets. Buckets come in the order of the tree, members in depth-first order. Deterministic.
/// O(kn log n) for sampled designs; memory O(kn).
pub fn trtma(
    problem: &MergeProblem,
    tree: &ReuseTree,
    max_buckets: NonZeroUsize,
    options: TrtmaOptions,
) -> (Buckets, TrtmaReport) {
    let (forest, places) = Forest::build(problem, tree);
    let mut report = TrtmaReport::default();
    let mut buckets = Buckets::default();
    // What is folded and balanced together, and into how many buckets.
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
        debug_assert!(groups.len() <= limit.get());
        debug_assert_eq!(groups.iter().map(|group| group.heads.len()).sum::<usize>(), heads.len());
        report.fold_merge_buckets += groups.len();
        let (members, balanced) = balance::balance(ranked, groups, options);
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
    debug_assert!(buckets.len() <= max_buckets.get());
    debug_assert_eq!(buckets.check_partition(problem), Ok(()));
    (buckets, report)
}
