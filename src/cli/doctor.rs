//! The grammar of `pleach doctor`.

use clap::Args;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    /// The state directory of a manager, which may be at work there
    #[arg(long, value_name = "DIR")]
    pub(crate) state: PathBuf,
    /// Print one JSON document on stdout, and nothing else
    #[arg(long)]
    pub(crate) json: bool,
}
