//! Task-level merging: groups the instances of a [`MergeProblem`] into [`Buckets`]. One file per strategy, all
//! pure.
//!
//! `strategy/README.md` lists the guarantees of every strategy, and `tests/laws/plans.rs` checks them. A strategy only
//! groups instances. Other modules compute savings and durations, and the scheduler places the buckets.

mod hrb;
mod naive;
mod ranges;
mod rtma;
mod sca;
mod trtma;

use std::num::NonZeroUsize;

use serde::{Deserialize, Serialize};
use thiserror::Error;

pub use self::ranges::{adjust_ranges, cut_ranges, even_out_ranges, tree_order};
pub use self::sca::MAX_INSTANCES as MAX_INSTANCES_TO_CUT;
pub use self::trtma::{
    MoveSearch, PartnerRule, PreviousPlan, Pruning, Replanned, TrtmaOptions, TrtmaReport, replan, trtma,
};
use crate::buckets::Buckets;
use crate::cost::dataflow::Dataflow;
use crate::graph::interner::Interner;
use crate::graph::task_graph::TaskGraph;
use crate::graph::tree::ReuseTree;
use crate::merge_problem::MergeProblem;

/// Strategy that groups stage instances into buckets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Strategy {
    /// One bucket per instance: stage-level merging only, without shared tasks.
    Stage,
    /// Consecutive instances in one bucket (thesis §3.3.2).
    Naive {
        /// Maximum number of instances per bucket.
        max_bucket_size: NonZeroUsize,
    },
    /// The Smart Cut Algorithm (thesis §3.3.2, Algorithm 2), for at most [`MAX_INSTANCES_TO_CUT`] instances of an
    /// input.
    Sca {
        /// Maximum number of instances per bucket.
        max_bucket_size: NonZeroUsize,
    },
    /// The Reuse-Tree Merging Algorithm (thesis §3.3.3, Algorithm 3).
    Rtma {
        /// Maximum number of instances per bucket.
        max_bucket_size: NonZeroUsize,
        /// Rule for instances left without a full bucket.
        ending: LeftoverRule,
    },
    /// The Task-Balanced Reuse-Tree Merging Algorithm (thesis §3.3.4; paper 001 §4.2.4). [`fn@trtma`] runs the same
    /// algorithm and also reports statistics.
    Trtma {
        /// Maximum number of buckets for the whole problem.
        max_buckets: NonZeroUsize,
        /// Balancing options.
        options: TrtmaOptions,
    },
    /// Contiguous ranges of the tree order, of even dataflow cost. See [`cut_ranges`].
    Ranges {
        /// Maximum number of buckets for the whole problem.
        max_buckets: NonZeroUsize,
    },
    /// Horizontal Runtime Balancing (paper 002, Algorithm 1): even costs without reuse, and even numbers of instances.
    /// The baseline that balances only.
    Hrb {
        /// Maximum number of buckets for the whole problem.
        max_buckets: NonZeroUsize,
    },
}

/// Cause of an unsolved problem.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum SolveError {
    /// SCA would take longer than the study.
    #[error("cut {instances} stage instances of one input; SCA takes at most {limit}")]
    TooManyToCut {
        /// Instances of the first input over the limit.
        instances: usize,
        /// Maximum number of instances.
        limit: usize,
    },
}

/// RTMA's rule for the instances left over once no node has enough of them to fill a bucket. The published
/// descriptions differ. Only the default reproduces the published reuse.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LeftoverRule {
    /// Leftover instances that share the first task form one bucket below the limit: the authors' code.
    #[default]
    WholeGroups,
    /// Each leftover instance forms its own bucket: Algorithm 3 of the thesis as printed.
    Single,
    /// Leftover instances with the same inputs fill buckets in order, even without shared tasks: the journal's
    /// version.
    ChunkUnderRoot,
}

impl Strategy {
    /// Groups the instances of a problem by its reuse tree.
    /// Every instance ends up in exactly one bucket, the limit holds, and the members of a bucket have the
    /// same inputs (unless TRTMA, ranges or HRB got fewer buckets than inputs exist). Buckets appear in the order of their
    /// completion. Takes O(kn) look-ups and O(k n log n) comparisons for n instances of k tasks, except for
    /// SCA.
    ///
    /// # Errors
    /// Fails if SCA gets more instances than it can cut.
    pub fn solve(self, problem: &MergeProblem, tree: &ReuseTree) -> Result<Buckets, SolveError> {
        let buckets = match self {
            Self::Stage => naive::solve(problem, NonZeroUsize::MIN),
            Self::Naive { max_bucket_size } => naive::solve(problem, max_bucket_size),
            Self::Sca { max_bucket_size } => sca::solve(problem, tree, max_bucket_size)?,
            Self::Rtma { max_bucket_size, ending } => rtma::solve(problem, tree, max_bucket_size, ending),
            Self::Trtma { max_buckets, options } => trtma(problem, tree, max_buckets, options).0,
            Self::Ranges { max_buckets } => {
                // A reuse tree is the dataflow graph of tasks that each read the one before.
                let chain = TaskGraph::chain(problem.levels());
                let dataflow = Dataflow::build(problem, &chain);
                cut_ranges(problem, &dataflow, &ranges::walk(problem, tree), max_buckets)
            }
            Self::Hrb { max_buckets } => hrb::solve(problem, max_buckets),
        };
        self.check(problem, &buckets);
        Ok(buckets)
    }

    /// As [`solve`](Self::solve), for the reuse scopes beyond trees. [`Ranges`](Self::Ranges) are cut from the
    /// [`tree_order`] by the costs of `dataflow`. The other strategies do not depend on the graph.
    ///
    /// # Errors
    /// As [`solve`](Self::solve).
    pub fn solve_dataflow(
        self,
        problem: &MergeProblem,
        tree: &ReuseTree,
        graph: &TaskGraph,
        dataflow: &Dataflow,
    ) -> Result<Buckets, SolveError> {
        let Self::Ranges { max_buckets } = self else { return self.solve(problem, tree) };
        let buckets = cut_ranges(problem, dataflow, &tree_order(problem, graph), max_buckets);
        self.check(problem, &buckets);
        Ok(buckets)
    }

    /// Checks the guarantees of every strategy.
    fn check(self, problem: &MergeProblem, buckets: &Buckets) {
        let (members, instances) = (buckets.members(), problem.len());
        assert!(members == instances, "{self:?} puts {members} of {instances} instances into buckets");
        assert!(
            self.limit_holds(buckets),
            "{self:?} makes {} buckets of up to {}",
            buckets.len(),
            buckets.max_size()
        );
        debug_assert_eq!(buckets.check_partition(problem), Ok(()));
        debug_assert!(self.may_mix(problem) || one_input_each(problem, buckets));
    }

    /// Post-condition: the limit of the strategy holds, on bucket size or bucket count.
    fn limit_holds(self, buckets: &Buckets) -> bool {
        match self {
            Self::Stage => buckets.max_size() <= 1,
            Self::Naive { max_bucket_size }
            | Self::Sca { max_bucket_size }
            | Self::Rtma { max_bucket_size, .. } => buckets.max_size() <= max_bucket_size.get(),
            Self::Trtma { max_buckets, .. } | Self::Ranges { max_buckets } | Self::Hrb { max_buckets } => {
                buckets.len() <= max_buckets.get()
            }
        }
    }

    /// Returns whether the problem has more inputs than the strategy may form buckets.
    fn may_mix(self, problem: &MergeProblem) -> bool {
        let (Self::Trtma { max_buckets, .. } | Self::Ranges { max_buckets } | Self::Hrb { max_buckets }) =
            self
        else {
            return false;
        };
        let mut inputs = Interner::default();
        problem.members().for_each(|member| _ = inputs.intern(problem.inputs(member)));
        inputs.len() > max_buckets.get()
    }
}

/// Post-condition: instances with different inputs share no task and no bucket.
fn one_input_each(problem: &MergeProblem, buckets: &Buckets) -> bool {
    buckets
        .iter()
        .all(|members| members.windows(2).all(|pair| problem.inputs(pair[0]) == problem.inputs(pair[1])))
}
