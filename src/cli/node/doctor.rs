//! Grammar of `pleach doctor`.

use clap::Args;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    /// State directory of a manager, which may be running
    #[arg(long, value_name = "DIR")]
    pub(crate) state: PathBuf,
    /// Print one JSON document on stdout, and nothing else
    #[arg(long)]
    pub(crate) json: bool,
}
