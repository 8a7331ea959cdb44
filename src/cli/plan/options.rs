//! Planning options on the command line: strategy, reuse scope, limits of buckets, order of tasks.

use crate::cli::at_least_one;
use clap::{Args, ValueEnum};
use pleach_api::submission::MAX_OVERHEAD_SECONDS;
use pleach_dispatch::cost_model::CostModel;
use pleach_dispatch::plan::ReuseScope;
use pleach_planner::{BucketLimitOptions, PlanOptions, StrategyName};
use serde::Deserialize;
use std::fs;
use std::num::NonZeroUsize;
use std::str::FromStr;

/// Text on the allowed values of `--overhead`.
const ALLOWED_OVERHEADS: &str =
    "a number of seconds from 0 to 1000000, auto, or the run.json of a study on a cluster is allowed";

/// Planning options of a study.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct PlanOptionArgs {
    /// Strategy that merges stage instances into buckets [default: ranges, or trtma with --reuse tree]
    #[arg(long, value_enum)]
    pub(crate) strategy: Option<StrategyArg>,
    /// Reuse scope of tasks, for strategies that make buckets
    #[arg(long, value_enum, default_value_t = ScopeArg::Value)]
    pub(crate) reuse: ScopeArg,
    #[command(flatten)]
    pub(crate) buckets: BucketArgs,
}

#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct BucketArgs {
    /// Maximum stage instances in a bucket (naive, sca and rtma) [default: 16, or fewer to fit the memory]
    #[arg(long, value_name = "N", value_parser = at_least_one::<NonZeroUsize>)]
    pub(crate) max_bucket_size: Option<NonZeroUsize>,
    /// Maximum buckets of a stage (trtma, ranges and hrb) [default: 3 per worker, or more to fit the memory]
    #[arg(long, value_name = "N", value_parser = at_least_one::<NonZeroUsize>)]
    pub(crate) max_buckets: Option<NonZeroUsize>,
    /// Overhead of a bucket: in seconds, as measured (auto), or that of a run.json
    #[arg(long, value_name = "SECONDS|auto|FILE", default_value = "auto", allow_negative_numbers = true)]
    pub(crate) overhead: OverheadArg,
    /// Order of a stage's tasks; the first ones are shared most
    #[arg(long, value_enum, default_value_t = TaskOrderArg::Declared)]
    pub(crate) task_order: TaskOrderArg,
}

/// Overhead of a bucket: as measured, or given in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum OverheadArg {
    Auto,
    Seconds(f64),
}

/// Measurement in `run.json`.
#[derive(Deserialize)]
struct MeasuredRun {
    bucket_overhead_seconds: Option<f64>,
}

impl FromStr for OverheadArg {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let is_valid = |seconds: &f64| (0.0..=MAX_OVERHEAD_SECONDS).contains(seconds);
        if text == "auto" {
            return Ok(Self::Auto);
        }
        if !text.ends_with(".json") {
            let seconds = text.parse().ok().filter(is_valid);
            return seconds.map(Self::Seconds).ok_or_else(|| ALLOWED_OVERHEADS.to_owned());
        }
        let content = fs::read(text).map_err(|cause| format!("{cause}; {ALLOWED_OVERHEADS}"))?;
        let run: MeasuredRun =
            serde_json::from_slice(&content).map_err(|cause| format!("{cause}; {ALLOWED_OVERHEADS}"))?;
        let measured = run.bucket_overhead_seconds.filter(is_valid).map(Self::Seconds);
        measured.ok_or_else(|| format!("no bucket_overhead_seconds; {ALLOWED_OVERHEADS}"))
    }
}

impl OverheadArg {
    /// Returns the given seconds. `None` if the overhead is to be measured.
    pub(crate) fn fixed_seconds(self) -> Option<f64> {
        match self {
            Self::Auto => None,
            Self::Seconds(seconds) => Some(seconds),
        }
    }

    /// Returns the given seconds, or those that the costs have measured.
    pub(crate) fn seconds(self, costs: &CostModel) -> f64 {
        self.fixed_seconds().unwrap_or_else(|| costs.bucket_overhead_seconds())
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum TaskOrderArg {
    /// Order of the workflow's descriptors
    Declared,
    /// Order with the most sharing in this study
    Best,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum StrategyArg {
    /// Execute all stage instances, including equal ones
    None,
    /// Merge equal stage instances
    Stage,
    /// As stage, with consecutive instances in buckets that share tasks
    Naive,
    /// As stage, with buckets cut from the graph of shared tasks; for a few hundred instances
    Sca,
    /// As stage, with similar instances in buckets that share tasks
    Rtma,
    /// As rtma, with buckets of balanced cost, in a number that suits the workers
    Trtma,
    /// As trtma, with contiguous parts of the task order with the most reuse, balanced by the costs of the reuse scope
    Ranges,
    /// As stage, with buckets of even cost before reuse, as a baseline that balances only
    Hrb,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum StrategiesArg {
    /// Execute all stage instances, including equal ones
    None,
    /// Merge equal stage instances
    Stage,
    /// As stage, with consecutive instances in buckets that share tasks
    Naive,
    /// As stage, with buckets cut from the graph of shared tasks; for a few hundred instances
    Sca,
    /// As stage, with similar instances in buckets that share tasks
    Rtma,
    /// As rtma, with buckets of balanced cost, in a number that suits the workers
    Trtma,
    /// As trtma, with contiguous parts of the task order with the most reuse, balanced by the costs of the reuse scope
    Ranges,
    /// As stage, with buckets of even cost before reuse, as a baseline that balances only
    Hrb,
    /// Compare all of the above; sca where possible
    All,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ScopeArg {
    /// Equal tasks that follow equal tasks
    Tree,
    /// Equal tasks that read the same regions, within a bucket and across buckets
    Dataflow,
    /// As dataflow, and tasks with equal input content
    Value,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ScopesArg {
    /// Equal tasks that follow equal tasks
    Tree,
    /// Equal tasks that read the same regions, within a bucket and across buckets
    Dataflow,
    /// As dataflow, and tasks with equal input content, which a plan cannot predict
    Value,
    /// Compare all of the above
    All,
}

impl PlanOptionArgs {
    /// Returns the options for the planner.
    pub(crate) fn options(&self) -> PlanOptions {
        PlanOptions::new(self.strategy(), self.reuse.into())
    }

    /// Returns the strategy, or the default of the reuse scope.
    pub(crate) fn strategy(&self) -> StrategyName {
        self.strategy.map_or_else(|| StrategyName::default_of(self.reuse.into()), StrategyName::from)
    }
}

impl BucketArgs {
    /// Returns the limits that the user set.
    pub(crate) fn limits(&self) -> BucketLimitOptions {
        BucketLimitOptions { max_bucket_size: self.max_bucket_size, max_buckets: self.max_buckets }
    }
}

impl From<StrategyArg> for StrategyName {
    fn from(name: StrategyArg) -> Self {
        match name {
            StrategyArg::None => Self::None,
            StrategyArg::Stage => Self::Stage,
            StrategyArg::Naive => Self::Naive,
            StrategyArg::Sca => Self::Sca,
            StrategyArg::Rtma => Self::Rtma,
            StrategyArg::Trtma => Self::Trtma,
            StrategyArg::Ranges => Self::Ranges,
            StrategyArg::Hrb => Self::Hrb,
        }
    }
}

impl From<ScopeArg> for ReuseScope {
    fn from(name: ScopeArg) -> Self {
        match name {
            ScopeArg::Tree => Self::Tree,
            ScopeArg::Dataflow => Self::Dataflow,
            ScopeArg::Value => Self::Value,
        }
    }
}

impl StrategiesArg {
    /// Returns the strategies to compare.
    pub(crate) fn strategies(self) -> Vec<StrategyName> {
        match self {
            Self::None => vec![StrategyName::None],
            Self::Stage => vec![StrategyName::Stage],
            Self::Naive => vec![StrategyName::Naive],
            Self::Sca => vec![StrategyName::Sca],
            Self::Rtma => vec![StrategyName::Rtma],
            Self::Trtma => vec![StrategyName::Trtma],
            Self::Ranges => vec![StrategyName::Ranges],
            Self::Hrb => vec![StrategyName::Hrb],
            Self::All => StrategyName::ALL.to_vec(),
        }
    }
}

impl ScopesArg {
    /// Returns the reuse scopes to compare.
    pub(crate) fn scopes(self) -> Vec<ReuseScope> {
        match self {
            Self::Tree => vec![ReuseScope::Tree],
            Self::Dataflow => vec![ReuseScope::Dataflow],
            Self::Value => vec![ReuseScope::Value],
            Self::All => ReuseScope::ALL.to_vec(),
        }
    }
}
