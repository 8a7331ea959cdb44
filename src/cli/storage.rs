//! Grammar of the commands that maintain storage tiers.

pub(super) mod cache;
pub(super) mod region;

use super::Span;
use clap::{Args, Subcommand};
use pleach_planner::memory_size::MemorySize;
use std::path::PathBuf;

#[derive(Debug, Subcommand)]
pub(crate) enum StorageCommand {
    /// Measure the write and read throughput of each tier, and that of plain files in the same folder
    Bench(BenchArgs),
    /// List the regions of each tier
    Ls(TierArgs),
    /// Read and check every region; move corrupt ones to quarantine (exit code 3)
    Verify(TierArgs),
    /// Remove quarantined files, compact segments, and remove regions by age or size
    Gc(GcArgs),
}

/// Tiers of a command.
#[derive(Debug, Args)]
#[group(skip)]
pub(crate) struct TierArgs {
    /// Folder of a tier on a local disk; no other process may have it open
    #[arg(long, value_name = "DIR", required_unless_present_any = ["lustre", "tiers"])]
    pub(crate) ssd: Option<PathBuf>,
    /// Folder of a tier on a file system of the cluster
    #[arg(long, value_name = "DIR")]
    pub(crate) lustre: Option<PathBuf>,
    /// File that lists tiers (TOML)
    #[arg(long, value_name = "FILE", conflicts_with_all = ["ssd", "lustre"])]
    pub(crate) tiers: Option<PathBuf>,
    /// Print one JSON document on stdout, and nothing else
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct BenchArgs {
    #[command(flatten)]
    pub(crate) tiers: TierArgs,
    /// Bytes to store in each tier, once in large and once in small regions
    #[arg(long, value_name = "SIZE", default_value = "200MB")]
    pub(crate) size: MemorySize,
}

#[derive(Debug, Args)]
pub(crate) struct GcArgs {
    #[command(flatten)]
    pub(crate) tiers: TierArgs,
    /// Remove regions older than this, as in 12h or 30m [default: no limit]
    #[arg(long, value_name = "TIME")]
    pub(crate) older_than: Option<Span>,
    /// Remove the oldest regions until each tier fits in this size [default: no limit]
    #[arg(long, value_name = "SIZE")]
    pub(crate) max_size: Option<MemorySize>,
    /// Report regions and files to remove without removing them
    #[arg(long)]
    pub(crate) dry_run: bool,
}
