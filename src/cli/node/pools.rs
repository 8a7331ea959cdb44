//! Grammar of `pleach pools`.

use clap::Args;
use std::net::SocketAddr;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(crate) struct PoolsArgs {
    /// File that lists worker pools (TOML), as for the manager
    #[arg(long, value_name = "FILE")]
    pub(crate) pools: PathBuf,
    /// State directory of the manager, which may be running
    #[arg(long, value_name = "DIR")]
    pub(crate) state: PathBuf,
    /// The manager's address for workers, for drivers whose programs need it
    #[arg(long, value_name = "ADDR", default_value = "0.0.0.0:7117")]
    pub(crate) listen: SocketAddr,
    /// Folder of the service account, for pools with the driver kubernetes
    #[arg(long, value_name = "DIR", default_value = "/var/run/secrets/kubernetes.io/serviceaccount")]
    pub(crate) service_account: PathBuf,
    /// Stop the orphans: workers that the manager started and that its journal lacks
    #[arg(long)]
    pub(crate) reap: bool,
    /// With --reap: stop all workers that the manager started; it must not be running
    #[arg(long, requires = "reap")]
    pub(crate) all: bool,
    /// Print one JSON document on stdout, and nothing else
    #[arg(long)]
    pub(crate) json: bool,
}
