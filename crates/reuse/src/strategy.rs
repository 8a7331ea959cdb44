//! Task-level merging: a [`Problem`] becomes [`Buckets`]. One file per strategy, all of them pure.
//!
//! `strategy/README.md` states what every strategy promises; the laws are checked in `tests/laws.rs`. A strategy
//! groups, and nothing more: what the groups are worth, how long they take and where they run is decided
//! elsewhere.

mod naive;
mod rtma;

use std::num::NonZeroUsize;

use serde::{Deserialize, Serialize};

use crate::buckets::Buckets;
use crate::problem::Problem;
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
    /// The Reuse-Tree Merging Algorithm (thesis §3.3.3, Algorithm 3).
    Rtma {
        /// The most instances a bucket may have.
        max_bucket_size: NonZeroUsize,
        /// What becomes of instances that found no full bucket.
        ending: Ending,
    },
}

/// What RTMA does with the instances left over once no node has enough of them to fill a bucket. The published
/// descriptions differ; only the default reproduces the published reuse.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ending {
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
    /// Every instance ends up in exactly one bucket, none of them larger than the limit, and a bucket's members
    /// have the same inputs. Buckets come in the order in which the strategy closed them. Takes O(kn) look-ups
    /// and O(k n log n) comparisons for n instances of k tasks.
    pub fn solve(self, problem: &Problem, tree: &ReuseTree) -> Buckets {
        let (buckets, limit) = match self {
            Self::Stage => (naive::solve(problem, NonZeroUsize::MIN), NonZeroUsize::MIN),
            Self::Naive { max_bucket_size } => (naive::solve(problem, max_bucket_size), max_bucket_size),
            Self::Rtma { max_bucket_size, ending } => {
                (rtma::solve(problem, tree, max_bucket_size, ending), max_bucket_size)
            }
        };
        debug_assert_eq!(buckets.check_partition(problem), Ok(()));
        debug_assert!(buckets.max_size() <= limit.get());
        debug_assert!(one_input_each(problem, &buckets));
        buckets
    }
}

/// Post-condition: what reads different things shares nothing, and no strategy here puts it together.
fn one_input_each(problem: &Problem, buckets: &Buckets) -> bool {
    buckets
        .iter()
        .all(|members| members.windows(2).all(|pair| problem.inputs(pair[0]) == problem.inputs(pair[1])))
}
