//! The grammar of `pleach plan`.

use super::{BucketArgs, PlanReuseName, PlanStrategyName, at_least_one, picture_file};
use crate::size::MemorySize;
use clap::Args;
use std::num::NonZeroU32;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(crate) struct PlanArgs {
    /// The study file (TOML)
    pub(crate) study: PathBuf,
    /// Tasks that would run at once [default: the number of processors]
    #[arg(long, value_name = "N", value_parser = at_least_one::<NonZeroU32>)]
    pub(crate) workers: Option<NonZeroU32>,
    /// How stage instances are merged into buckets
    #[arg(long, value_enum, default_value_t = PlanStrategyName::Trtma)]
    pub(crate) strategy: PlanStrategyName,
    /// What tasks share, where a strategy makes buckets
    #[arg(long, value_enum, default_value_t = PlanReuseName::Value)]
    pub(crate) reuse: PlanReuseName,
    #[command(flatten)]
    pub(crate) buckets: BucketArgs,
    /// Memory that buckets must fit in [default: no limit]
    #[arg(long, value_name = "SIZE")]
    pub(crate) memory: Option<MemorySize>,
    /// Predict from what operations took in the studies of this cache, which is only read
    #[arg(long, value_name = "DIR")]
    pub(crate) cache: Option<PathBuf>,
    /// Plan the parameter sets of a CSV file instead of sampling
    #[arg(long, value_name = "CSV")]
    pub(crate) parameter_sets: Option<PathBuf>,
    /// Plan values that no operation accepts, as published tables have; such a study cannot be run
    #[arg(long)]
    pub(crate) any_values: bool,
    /// Draw the predicted makespan over 1 to 256 workers
    #[arg(long, value_name = "FILE.svg|.png", value_parser = picture_file)]
    pub(crate) plot: Option<PathBuf>,
    /// Print one JSON document on stdout, and nothing else
    #[arg(long)]
    pub(crate) json: bool,
}
