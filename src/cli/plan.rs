//! Grammar of `pleach plan`.

pub(super) mod options;

use super::operations::PythonArgs;
use super::{at_least_one, picture_file};
use clap::Args;
use options::{BucketArgs, ScopesArg, StrategiesArg};
use pleach_planner::memory_size::MemorySize;
use std::num::NonZeroU32;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(crate) struct PlanArgs {
    /// The study file (TOML)
    pub(crate) study: PathBuf,
    #[command(flatten)]
    pub(crate) python: PythonArgs,
    /// Number of concurrent tasks to plan for [default: the number of processors]
    #[arg(long, value_name = "N", value_parser = at_least_one::<NonZeroU32>)]
    pub(crate) workers: Option<NonZeroU32>,
    /// Accelerators beside these tasks: predict the time of both kinds together, by the pats policy
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) accelerators: u32,
    /// Strategy that merges stage instances into buckets [default: ranges, or trtma with --reuse tree]
    #[arg(long, value_enum)]
    pub(crate) strategy: Option<StrategiesArg>,
    /// Reuse scope of tasks, for strategies that make buckets
    #[arg(long, value_enum, default_value_t = ScopesArg::Value)]
    pub(crate) reuse: ScopesArg,
    #[command(flatten)]
    pub(crate) buckets: BucketArgs,
    /// Memory that buckets must fit in [default: no limit]
    #[arg(long, value_name = "SIZE")]
    pub(crate) memory: Option<MemorySize>,
    /// Bytes per second between workers: predict what they transfer, each running one task at a time [default: all tasks run in
    /// one process]
    #[arg(long, value_name = "SIZE")]
    pub(crate) bandwidth: Option<MemorySize>,
    /// Task cache of earlier studies (read-only), whose measured times the prediction uses
    #[arg(long, value_name = "DIR")]
    pub(crate) cache: Option<PathBuf>,
    /// The run.json of a run of this study, whose measured times the prediction uses
    #[arg(long, value_name = "FILE", conflicts_with = "cache")]
    pub(crate) run: Option<PathBuf>,
    /// Plan the parameter sets of a CSV file instead of sampling
    #[arg(long, value_name = "CSV")]
    pub(crate) parameter_sets: Option<PathBuf>,
    /// Plan values that no operation accepts, as in published tables; such a study cannot be run
    #[arg(long)]
    pub(crate) any_values: bool,
    /// Show which tasks, and which stages, would take less time as one
    #[arg(long)]
    pub(crate) granularity: bool,
    /// Overhead of a task for --granularity, in microseconds
    #[arg(long, value_name = "MICROSECONDS", default_value_t = 20.0, value_parser = task_overhead)]
    pub(crate) task_overhead: f64,
    /// Draw the predicted makespan over 1 to 256 workers
    #[arg(long, value_name = "FILE.svg|.png", value_parser = picture_file)]
    pub(crate) plot: Option<PathBuf>,
    /// Print one JSON document on stdout, and nothing else
    #[arg(long)]
    pub(crate) json: bool,
}

/// Argument of `--task-overhead`.
fn task_overhead(text: &str) -> Result<f64, String> {
    let microseconds = text.parse().ok().filter(|microseconds| (0.0..=1e9).contains(microseconds));
    microseconds.ok_or_else(|| "a number of microseconds from 0 to 1000000000 is allowed".to_owned())
}
