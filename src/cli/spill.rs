//! Arguments that name spill tiers.

use crate::spill::SpillOptions;
use clap::Args;
use std::path::PathBuf;

#[derive(Clone, Debug, Args)]
pub(crate) struct SpillArgs {
    /// Folder on a local disk for spilled regions; on a worker, also for input files from the manager
    #[arg(long, value_name = "DIR")]
    pub(crate) ssd: Option<PathBuf>,
    /// Folder on a file system shared by all workers, the tier below --ssd
    #[arg(long, value_name = "DIR")]
    pub(crate) lustre: Option<PathBuf>,
    /// File that lists spill tiers (TOML), instead of tiers in these folders
    #[arg(long, value_name = "FILE", conflicts_with = "lustre")]
    pub(crate) tiers: Option<PathBuf>,
}

impl SpillArgs {
    /// Returns the tiers to open.
    pub(crate) fn options(&self) -> SpillOptions {
        SpillOptions { ssd: self.ssd.clone(), lustre: self.lustre.clone(), tiers: self.tiers.clone() }
    }
}
