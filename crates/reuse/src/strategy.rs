//! Task-level merging: a [`MergeProblem`] becomes [`Buckets`]. One file per strategy, all of them pure.
//!
//! `strategy/README.md` states what every strategy promises; the laws are checked in `tests/laws.rs`. A strategy
//! groups, and nothing more: what the groups are worth, how long they take and where they run is decided
//! elsewhere.

mod naive;
mod rtma;
mod sca;
mod trtma;

use std::num::NonZeroUsize;

use serde::{Deserialize, Serialize};
use thiserror::Error;

pub use self::sca::MAX_INSTANCES as MAX_INSTANCES_TO_CUT;
pub use self::trtma::{
    MoveSearch, PartnerRule, Previous, Pruning, Replanned, TrtmaOptions, TrtmaReport, replan, trtma,
};
use crate::buckets::Buckets;
use crate::interner::Interner;
use crate::merge_problem::MergeProblem;
use crate::tree::ReuseTree;

/// How stage instances are grouped into buckets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Strategy {
    /// Every instance by itself: what stage-level merging leaves, with no task shared.
    Stage,
    /// Consecutive instances together (thesis §3.3.1).
    Naive {
        /// The most instances a bucket may have.
        max_bucket_size: NonZeroUsize,
    },
    /// The Smart Cut Algorithm (thesis §3.3.2, Algorithm 2), for at most [`MAX_INSTANCES_TO_CUT`] instances of
    /// an input.
    Sca {
        /// The most instances a bucket may have.
        max_bucket_size: NonZeroUsize,
    },
    /// The Reuse-Tree Merging Algorithm (thesis §3.3.3, Algorithm 3).
    Rtma {
        /// The most instances a bucket may have.
        max_bucket_size: NonZeroUsize,
        /// What becomes of instances that found no full bucket.
        ending: LeftoverRule,
    },
    /// The Task-Balanced Reuse-Tree Merging Algorithm (thesis §3.3.4; paper 001 §4.2.4). [`fn@trtma`] does the same
    /// and reports what it did.
    Trtma {
        /// The most buckets there may be, for the whole problem.
        max_buckets: NonZeroUsize,
        /// How buckets are balanced.
        options: TrtmaOptions,
    },
}

/// Why a strategy does not solve a problem.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum SolveError {
    /// SCA would take longer than the study.
    #[error("cut {instances} stage instances of one input; SCA takes at most {limit}")]
    TooManyToCut {
        /// Instances of the first input that has too many.
        instances: usize,
        /// How many there may be.
        limit: usize,
    },
}

/// What RTMA does with the instances left over once no node has enough of them to fill a bucket. The published
/// descriptions differ; only the default reproduces the published reuse.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LeftoverRule {
    /// Those that share the first task form one bucket, smaller than the limit: the authors' code.
    #[default]
    WholeGroups,
    /// Each forms a bucket of its own: Algorithm 3 of the thesis as printed.
    Single,
    /// They are filled into buckets in order, whether they share a task or not, as long as they have the same
    /// inputs: the journal's version.
    ChunkUnderRoot,
}

impl Strategy {
    /// Groups the instances of a problem, given its reuse tree.
    ///
    /// Every instance ends up in exactly one bucket, the limit holds, and a bucket's members have the same inputs
    /// (unless TRTMA was given fewer buckets than there are inputs). Buckets come in the order in which the
    /// strategy closed them. Takes O(kn) look-ups and O(k n log n) comparisons for n instances of k tasks, but for
    /// SCA.
    ///
    /// # Errors
    /// When SCA is given more than it can cut.
    pub fn solve(self, problem: &MergeProblem, tree: &ReuseTree) -> Result<Buckets, SolveError> {
        let buckets = match self {
            Self::Stage => naive::solve(problem, NonZeroUsize::MIN),
            Self::Naive { max_bucket_size } => naive::solve(problem, max_bucket_size),
            Self::Sca { max_bucket_size } => sca::solve(problem, tree, max_bucket_size)?,
            Self::Rtma { max_bucket_size, ending } => rtma::solve(problem, tree, max_bucket_size, ending),
            Self::Trtma { max_buckets, options } => trtma(problem, tree, max_buckets, options).0,
        };
        debug_assert_eq!(buckets.check_partition(problem), Ok(()));
        debug_assert!(self.limit_holds(&buckets));
        debug_assert!(self.may_mix(problem) || one_input_each(problem, &buckets));
        Ok(buckets)
    }

    /// Post-condition: the limit, of whichever kind it is.
    fn limit_holds(self, buckets: &Buckets) -> bool {
        match self {
            Self::Stage => buckets.max_size() <= 1,
            Self::Naive { max_bucket_size }
            | Self::Sca { max_bucket_size }
            | Self::Rtma { max_bucket_size, .. } => buckets.max_size() <= max_bucket_size.get(),
            Self::Trtma { max_buckets, .. } => buckets.len() <= max_buckets.get(),
        }
    }

    /// Whether there are more inputs than buckets allowed.
    fn may_mix(self, problem: &MergeProblem) -> bool {
        let Self::Trtma { max_buckets, .. } = self else { return false };
        let mut inputs = Interner::default();
        problem.members().for_each(|member| _ = inputs.intern(problem.inputs(member)));
        inputs.len() > max_buckets.get()
    }
}

/// Post-condition: what reads different things shares nothing, and is not put together.
fn one_input_each(problem: &MergeProblem, buckets: &Buckets) -> bool {
    buckets
        .iter()
        .all(|members| members.windows(2).all(|pair| problem.inputs(pair[0]) == problem.inputs(pair[1])))
}
