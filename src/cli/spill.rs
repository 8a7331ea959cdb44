//! Arguments that name spill tiers.

use crate::spill::SpillOptions;
use clap::Args;
use std::path::PathBuf;

#[derive(Clone, Debug, Args)]
pub(crate) struct SpillArgs {
    /// Folder on a disk of this machine: regions spill there when memory is short; on a worker also input files that
    /// the manager sends
    #[arg(long, value_name = "DIR")]
    pub(crate) ssd: Option<PathBuf>,
    /// Folder on a file system that all workers share, the tier below --ssd
    #[arg(long, value_name = "DIR")]
    pub(crate) lustre: Option<PathBuf>,
    /// File that lists spill tiers (TOML), instead of these folders
    #[arg(long, value_name = "FILE", conflicts_with = "lustre")]
    pub(crate) tiers: Option<PathBuf>,
}

impl SpillArgs {
    /// Returns the tiers to open.
    pub(crate) fn options(&self) -> SpillOptions {
        SpillOptions { ssd: self.ssd.clone(), lustre: self.lustre.clone(), tiers: self.tiers.clone() }
    }
}
