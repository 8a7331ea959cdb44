//! Grammar of `pleach simulate`.

use super::operations::PythonArgs;
use clap::Args;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(crate) struct SimulateArgs {
    /// The burst file (TOML): a study, a base cluster, pools of workers and policies
    pub(crate) burst: PathBuf,
    /// Folder for figures (SVG and PNG): cost and makespan, workers over time, timeline of each slot
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) python: PythonArgs,
    /// Seed of the random numbers [default: the file's seed]
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
    /// Print one JSON document on stdout, and nothing else
    #[arg(long)]
    pub(crate) json: bool,
}
