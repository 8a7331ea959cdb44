//! Arguments of an execution by emulated tasks: `pleach cluster --execute`.

use crate::cli::{ManagerArgs, Span};
use clap::Args;
use pleach_client::address::ManagerUrl;
use std::path::PathBuf;

/// Execution of clusterings by emulated tasks.
#[derive(Debug, Args)]
#[group(skip)]
pub(crate) struct ExecutionArgs {
    /// Execute each clustering on --workers: emulated tasks wait and copy bytes
    #[arg(long)]
    pub(crate) execute: bool,
    /// Executions of each clustering, 1 to 100
    #[arg(long, value_name = "N", default_value_t = 1, requires = "execute", value_parser = clap::value_parser!(u32).range(1..=100))]
    pub(crate) replicates: u32,
    /// Manager whose workers execute, as in https://HOST:PORT [default: processes on this machine]
    #[arg(long, value_name = "URL", env = "PLEACH_MANAGER", hide_env_values = true)]
    manager: Option<ManagerUrl>,
    /// Folder of a client's certificate and key, or, with a token, of the authority's certificate (ca.pem)
    #[arg(long, value_name = "DIR", env = "PLEACH_CERTS", hide_env_values = true)]
    certs: Option<PathBuf>,
    /// File with the manager's token, instead of a client's certificate; PLEACH_TOKEN may hold the token itself
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// Time to retry while the manager does not respond, as in 90s or 5m
    #[arg(long, value_name = "TIME", default_value = "30s")]
    timeout: Span,
}

impl ExecutionArgs {
    /// Returns the arguments of a connection. `None` without `--manager`.
    ///
    /// # Errors
    /// If the folder of certificates is missing.
    pub(crate) fn connection(&self) -> Result<Option<ManagerArgs>, String> {
        let Some(manager) = self.manager.clone() else { return Ok(None) };
        let certs = self.certs.clone();
        let certs = certs.ok_or_else(|| {
            format!("--manager {manager}: no certificates; --certs DIR, or PLEACH_CERTS, is allowed")
        })?;
        Ok(Some(ManagerArgs { manager, certs, token_file: self.token_file.clone(), timeout: self.timeout }))
    }
}
