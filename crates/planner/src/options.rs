//! Options of planning: strategy, reuse scope, limits of buckets.

use crate::{PlanBuilder, PlanningError};
use pleach_dispatch::plan::ReuseScope;
use pleach_reuse::{LeftoverRule, Merging, OverheadChoice, Strategy, TrtmaOptions};
use serde::{Deserialize, Serialize};
use std::num::{NonZeroU32, NonZeroUsize};

/// Merging strategy, without its limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StrategyName {
    /// Executes every run, without reuse.
    None,
    /// Merges equal stage instances only.
    Stage,
    /// Consecutive instances in buckets.
    Naive,
    /// Smart Cut Algorithm.
    Sca,
    /// Reuse-Tree Merging Algorithm.
    Rtma,
    /// Task-balanced RTMA.
    Trtma,
    /// Contiguous ranges of the tree order.
    Ranges,
    /// Horizontal Runtime Balancing: the baseline that balances without regard to reuse.
    Hrb,
}

impl StrategyName {
    /// All strategies.
    pub const ALL: [Self; 8] =
        [Self::None, Self::Stage, Self::Naive, Self::Sca, Self::Rtma, Self::Trtma, Self::Ranges, Self::Hrb];

    /// Returns the strategy for a reuse scope where the user names none: the one that balances by the costs of the scope.
    #[must_use]
    pub fn default_of(scope: ReuseScope) -> Self {
        match scope {
            ReuseScope::Tree => Self::Trtma,
            ReuseScope::Dataflow | ReuseScope::Value => Self::Ranges,
        }
    }

    /// Returns the name in lower case, as in `plan.json`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Stage => "stage",
            Self::Naive => "naive",
            Self::Sca => "sca",
            Self::Rtma => "rtma",
            Self::Trtma => "trtma",
            Self::Ranges => "ranges",
            Self::Hrb => "hrb",
        }
    }
}

/// Limits of buckets that the user sets. `None`: the planner chooses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BucketLimitOptions {
    /// Maximum number of stage instances in a bucket (naive, SCA, RTMA).
    pub max_bucket_size: Option<NonZeroUsize>,
    /// Maximum number of buckets of a stage (TRTMA, ranges, HRB).
    pub max_buckets: Option<NonZeroUsize>,
}

/// Reuse mode of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReuseMode {
    /// No reuse: every run is replicated.
    None,
    /// Merges equal stage instances, and tasks.
    Merged {
        /// Strategy that builds the buckets.
        strategy: Strategy,
        /// Reuse scope of tasks. Without effect where every instance is a bucket.
        sharing: ReuseScope,
    },
}

impl ReuseMode {
    /// Returns the strategy that builds the buckets. `None` without reuse.
    #[must_use]
    pub fn strategy(self) -> Option<Strategy> {
        match self {
            Self::None => None,
            Self::Merged { strategy, .. } => Some(strategy),
        }
    }

    /// Returns the reuse scope of tasks. `None` if tasks share nothing.
    pub(crate) fn sharing(self) -> Option<ReuseScope> {
        match self {
            Self::None | Self::Merged { strategy: Strategy::Stage, .. } => None,
            Self::Merged { sharing, .. } => Some(sharing),
        }
    }

    /// Returns whether two modes have the same buckets. Only ranges depend on the reuse scope.
    pub(crate) fn same_buckets(self, other: Self) -> bool {
        let by_scope = matches!(self.strategy(), Some(Strategy::Ranges { .. }));
        self.strategy() == other.strategy() && (!by_scope || self.is_dataflow() == other.is_dataflow())
    }

    /// Tasks of different buckets may share.
    pub(crate) fn is_dataflow(self) -> bool {
        self.sharing().is_some_and(|sharing| sharing != ReuseScope::Tree)
    }
}

/// Default maximum of instances in a bucket where memory is ample and buckets have no overhead. Beyond 16, RTMA on MOAT
/// studies of the reference application saves nothing more (`benches/RESULTS.md`), and larger buckets leave less to
/// balance.
const MAX_BUCKET_SIZE: NonZeroUsize = NonZeroUsize::new(16).expect("16 is not 0");

/// Instances of a bucket up to which it is one message to its worker: the manager builds the message in about 1 ms. Only a
/// number of buckets that the user sets makes larger ones.
const MAX_GRANTED_INSTANCES: NonZeroUsize = NonZeroUsize::new(1024).expect("1,024 is not 0");

/// Strategy and reuse scope of a plan. [`BucketLimits`] complete them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlanOptions {
    strategy: StrategyName,
    /// Reuse scope of tasks. `None` for strategies without buckets.
    sharing: Option<ReuseScope>,
}

/// Limits of a strategy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BucketLimits {
    pub(crate) max_bucket_size: NonZeroUsize,
    pub(crate) max_buckets: NonZeroUsize,
}

impl BucketLimits {
    /// Takes the limits that the user set and derives the others from the study: enough buckets for the slots, none too
    /// large for the memory or for a message. The greater the overhead of a bucket, the fewer and larger they are.
    ///
    /// # Errors
    /// [`PlanningError`] if the study is too large to be planned.
    pub(crate) fn choose(
        set: BucketLimitOptions,
        builder: &PlanBuilder<'_>,
        slots: NonZeroU32,
        memory_bytes: u64,
    ) -> Result<Self, PlanningError> {
        // With both limits set, `limits` would build buckets for nothing.
        if let Some((max_bucket_size, max_buckets)) = set.max_bucket_size.zip(set.max_buckets) {
            return Ok(Self { max_bucket_size, max_buckets });
        }
        let OverheadChoice { buckets_per_core, bucket_size } = builder.weigh_overhead(slots);
        let limits = builder.limits(slots, buckets_per_core, memory_bytes)?;
        let usual_size = bucket_size.clamp(MAX_BUCKET_SIZE, MAX_GRANTED_INSTANCES);
        let in_messages = builder.max_instances().get().div_ceil(MAX_GRANTED_INSTANCES.get());
        let max_buckets =
            NonZeroUsize::new(in_messages).map_or(limits.max_buckets, |all| all.max(limits.max_buckets));
        Ok(Self {
            max_bucket_size: set.max_bucket_size.unwrap_or(usual_size.min(limits.max_bucket_size)),
            max_buckets: set.max_buckets.unwrap_or(max_buckets),
        })
    }
}

impl PlanOptions {
    /// Creates options. Strategies without buckets ignore the scope.
    #[must_use]
    pub fn new(strategy: StrategyName, scope: ReuseScope) -> Self {
        let has_buckets = !matches!(strategy, StrategyName::None | StrategyName::Stage);
        Self { strategy, sharing: has_buckets.then_some(scope) }
    }

    /// Returns the same options with the tree scope. `None` if they have it already, or no scope at all.
    pub(crate) fn as_tree(self) -> Option<Self> {
        let other = self.sharing.filter(|sharing| *sharing != ReuseScope::Tree);
        other.map(|_| Self { sharing: Some(ReuseScope::Tree), ..self })
    }

    /// Returns the merging of stage instances.
    pub(crate) fn merging(self) -> Merging {
        if self.strategy == StrategyName::None { Merging::None } else { Merging::Merged }
    }

    /// Returns the reuse mode with these limits.
    pub(crate) fn mode(self, limits: BucketLimits) -> ReuseMode {
        let BucketLimits { max_bucket_size, max_buckets } = limits;
        let strategy = match self.strategy {
            StrategyName::None => return ReuseMode::None,
            StrategyName::Stage => Strategy::Stage,
            StrategyName::Naive => Strategy::Naive { max_bucket_size },
            StrategyName::Sca => Strategy::Sca { max_bucket_size },
            StrategyName::Rtma => Strategy::Rtma { max_bucket_size, ending: LeftoverRule::default() },
            StrategyName::Trtma => Strategy::Trtma { max_buckets, options: TrtmaOptions::default() },
            StrategyName::Ranges => Strategy::Ranges { max_buckets },
            StrategyName::Hrb => Strategy::Hrb { max_buckets },
        };
        ReuseMode::Merged { strategy, sharing: self.sharing.unwrap_or_default() }
    }

    /// Returns the strategy's name in lower case.
    #[must_use]
    pub fn strategy_name(self) -> &'static str {
        self.strategy.as_str()
    }

    /// Returns the reuse scope's name in lower case. `None` for strategies without buckets.
    #[must_use]
    pub fn reuse_name(self) -> Option<&'static str> {
        self.sharing.map(ReuseScope::as_str)
    }

    /// Returns the limit of a bucket's size, if the strategy has one.
    pub(crate) fn max_bucket_size(self, limits: BucketLimits) -> Option<usize> {
        let has = matches!(self.strategy, StrategyName::Naive | StrategyName::Sca | StrategyName::Rtma);
        has.then_some(limits.max_bucket_size.get())
    }

    /// Returns the limit of a stage's number of buckets, if the strategy has one.
    pub(crate) fn max_buckets(self, limits: BucketLimits) -> Option<usize> {
        let has = matches!(self.strategy, StrategyName::Trtma | StrategyName::Ranges | StrategyName::Hrb);
        has.then_some(limits.max_buckets.get())
    }
}
