//! Grammar of `pleach doctor`.

use super::super::operations::PythonArgs;
use super::super::{Span, cache_location};
use clap::Args;
use pleach_client::address::ManagerUrl;
use std::net::SocketAddr;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    /// State directory of a manager, which may be running: check every file, and the disk
    #[arg(long, value_name = "DIR")]
    pub(crate) state: Option<PathBuf>,
    /// Folder of a node's certificate and key, or of an authority: check their content, validity and modes
    #[arg(long, value_name = "DIR", env = "PLEACH_CERTS", hide_env_values = true)]
    pub(crate) certs: Option<PathBuf>,
    /// The manager's address, as in https://HOST:PORT: check that it accepts the credentials, and compare the clocks
    #[arg(long, value_name = "URL", env = "PLEACH_MANAGER", hide_env_values = true)]
    pub(crate) manager: Option<ManagerUrl>,
    /// File with the manager's token, instead of a client's certificate; PLEACH_TOKEN may hold the token itself
    #[arg(long, value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,
    /// Time to retry while the manager does not respond, as in 90s or 5m
    #[arg(long, value_name = "TIME", default_value = "5s")]
    pub(crate) timeout: Span,
    /// Address for workers (QUIC over UDP) that a manager must get [default: 0.0.0.0:7117, which another may have]
    #[arg(long, value_name = "ADDR")]
    pub(crate) listen: Option<SocketAddr>,
    /// Address for clients (HTTPS) that a manager must get [default: 0.0.0.0:7118, which another may have]
    #[arg(long, value_name = "ADDR")]
    pub(crate) http: Option<SocketAddr>,
    /// Folder on a local disk for spilled regions: check the disk
    #[arg(long, value_name = "DIR")]
    pub(crate) ssd: Option<PathBuf>,
    /// Folder on a file system shared by all workers: check the file system
    #[arg(long, value_name = "DIR")]
    pub(crate) lustre: Option<PathBuf>,
    /// Folder of a task cache: check the disk
    #[arg(long, value_name = "DIR", value_parser = cache_location)]
    pub(crate) cache: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) python: PythonArgs,
    /// Print one JSON document on stdout, and nothing else
    #[arg(long)]
    pub(crate) json: bool,
}
