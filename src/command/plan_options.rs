//! How a study is to be planned, as asked for on the command line: a strategy, what tasks share, limits of buckets.
//!
//! What follows from such a way is `weave`'s.

pub(crate) mod fit;

use crate::cli::{BucketArgs, ReuseName, StrategyName};
use crate::planning::{PlanBuilder, PlanningError, ReuseMode};
use pleach_dispatch::plan::ReuseScope;
use pleach_reuse::{LeftoverRule, Merging, Strategy, TrtmaOptions};
use std::num::{NonZeroU32, NonZeroUsize};

/// Instances in a bucket where nobody says and memory does not matter. Beyond 16, RTMA on MOAT studies of the reference
/// application gains nothing (`benches/RESULTS.md`), while larger buckets leave less to balance.
const MAX_BUCKET_SIZE: NonZeroUsize = NonZeroUsize::new(16).expect("16 is not 0");

/// A way to plan a study, but for the limits of buckets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PlanOptions {
    strategy: StrategyName,
    /// What tasks share; `None`: nothing is shared between tasks without buckets.
    sharing: Option<ReuseScope>,
}

/// The limits that strategies keep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BucketLimits {
    max_bucket_size: NonZeroUsize,
    max_buckets: NonZeroUsize,
}

impl BucketLimits {
    /// Those that were asked for; the others follow from the study: enough buckets for the workers, none too large for
    /// the memory.
    ///
    /// # Errors
    /// [`PlanningError`] when the study is too large to be planned.
    pub(crate) fn choose(
        args: BucketArgs,
        loom: &PlanBuilder<'_>,
        workers: NonZeroU32,
        memory_bytes: u64,
    ) -> Result<Self, PlanningError> {
        if let Some((max_bucket_size, max_buckets)) = args.max_bucket_size.zip(args.max_buckets) {
            return Ok(Self { max_bucket_size, max_buckets });
        }
        let limits = loom.limits(workers, memory_bytes)?;
        Ok(Self {
            max_bucket_size: args.max_bucket_size.unwrap_or(MAX_BUCKET_SIZE.min(limits.max_bucket_size)),
            max_buckets: args.max_buckets.unwrap_or(limits.max_buckets),
        })
    }
}

impl PlanOptions {
    pub(crate) fn new(strategy: StrategyName, reuse: ReuseName) -> Self {
        let has_buckets = !matches!(strategy, StrategyName::None | StrategyName::Stage);
        let sharing = has_buckets.then_some(match reuse {
            ReuseName::Tree => ReuseScope::Tree,
            ReuseName::Dataflow => ReuseScope::Dataflow,
            ReuseName::Value => ReuseScope::Value,
        });
        Self { strategy, sharing }
    }

    /// The same with tasks shared as in trees, if they are shared otherwise.
    pub(crate) fn as_tree(self) -> Option<Self> {
        let other = self.sharing.filter(|sharing| *sharing != ReuseScope::Tree);
        other.map(|_| Self { sharing: Some(ReuseScope::Tree), ..self })
    }

    /// What is merged before there are buckets.
    pub(crate) fn merging(self) -> Merging {
        if self.strategy == StrategyName::None { Merging::None } else { Merging::Merged }
    }

    pub(crate) fn level(self, limits: BucketLimits) -> ReuseMode {
        let BucketLimits { max_bucket_size, max_buckets } = limits;
        let strategy = match self.strategy {
            StrategyName::None => return ReuseMode::None,
            StrategyName::Stage => Strategy::Stage,
            StrategyName::Naive => Strategy::Naive { max_bucket_size },
            StrategyName::Sca => Strategy::Sca { max_bucket_size },
            StrategyName::Rtma => Strategy::Rtma { max_bucket_size, ending: LeftoverRule::default() },
            StrategyName::Trtma => Strategy::Trtma { max_buckets, options: TrtmaOptions::default() },
        };
        ReuseMode::Merged { strategy, sharing: self.sharing.unwrap_or_default() }
    }

    pub(crate) fn strategy_name(self) -> &'static str {
        match self.strategy {
            StrategyName::None => "none",
            StrategyName::Stage => "stage",
            StrategyName::Naive => "naive",
            StrategyName::Sca => "sca",
            StrategyName::Rtma => "rtma",
            StrategyName::Trtma => "trtma",
        }
    }

    /// The level of reuse, where there is a choice.
    pub(crate) fn reuse_name(self) -> Option<&'static str> {
        self.sharing.map(|sharing| match sharing {
            ReuseScope::Tree => "tree",
            ReuseScope::Dataflow => "dataflow",
            ReuseScope::Value => "value",
        })
    }

    /// Of the limits, that of a bucket's size, where it counts.
    pub(crate) fn max_bucket_size(self, limits: BucketLimits) -> Option<usize> {
        let has = matches!(self.strategy, StrategyName::Naive | StrategyName::Sca | StrategyName::Rtma);
        has.then_some(limits.max_bucket_size.get())
    }

    /// Of the limits, that of the number of a stage's buckets, where it counts.
    pub(crate) fn max_buckets(self, limits: BucketLimits) -> Option<usize> {
        (self.strategy == StrategyName::Trtma).then_some(limits.max_buckets.get())
    }
}
