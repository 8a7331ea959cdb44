//! Drivers: start, stop and list the workers of a pool.
//!
//! All calls block and have a time limit. A driver keeps no record of its workers. `pleach_provision` decides, and its
//! journal has the names. Pools whose workers a cluster starts have a [`ScaleDriver`].

mod command;
mod process;
mod scale;

pub use scale::ScaleDriver;

use crate::pools::{DriverKind, ManagedPool, Pools};
use command::CommandDriver;
use process::ProcessDriver;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use thiserror::Error;

/// Length of the part of an owner tag that is in the names of workers: no two managers of a site share 32 random bits.
const OWNER_DIGITS: usize = 8;

/// Maximum length of a handle, more than the identifiers of clouds and schedulers have.
const MAX_HANDLE_LENGTH: usize = 256;

/// Reason why a driver cannot be used.
#[derive(Debug, Error)]
pub enum DriverError {
    /// The path of the program is unknown.
    #[error("the program of this process cannot be found: {0}")]
    Program(std::io::Error),
    /// Neither the authority nor a token is available.
    #[error(
        "pool {0}: the driver \"process\" needs certificates for its workers; the authority's key in --certs or in its parent, or \
         token = \"FILE\" in [pool.provision], is allowed"
    )]
    Certificates(String),
}

/// Reason why a start has no handle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum StartError {
    /// Nothing was started.
    Refused(String),
    /// The worker may exist.
    Unknown(String),
}

/// Context of all drivers of a manager.
#[derive(Clone, Debug)]
pub struct DriverContext {
    /// Random number of the manager, as in its state directory.
    pub owner: u64,
    /// State directory.
    pub state: PathBuf,
    /// Socket for workers.
    pub listen: SocketAddr,
    /// Name of this machine, for workers on other machines.
    pub host: String,
    /// Folder of the authority's key, if it is available.
    pub authority: Option<PathBuf>,
}

/// Worker that a driver lists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedWorker {
    /// Its name.
    pub name: String,
    /// Its handle.
    pub handle: String,
}

/// Driver of a pool.
#[derive(Debug)]
pub struct Driver {
    /// Name of the pool.
    pub pool: String,
    /// First part of the names of its workers, with the owner tag.
    prefix: String,
    backend: Backend,
}

#[derive(Debug)]
enum Backend {
    Process(ProcessDriver),
    Command(CommandDriver),
}

impl DriverContext {
    /// Returns the owner tag of the manager.
    #[must_use]
    pub fn owner_tag(&self) -> String {
        format!("{:016x}", self.owner)
    }

    /// Returns the part of the owner tag that names of workers contain.
    #[must_use]
    pub(crate) fn owner_part(&self) -> String {
        self.owner_tag()[..OWNER_DIGITS].to_owned()
    }

    /// Returns the address of the manager for workers on this machine.
    fn local_address(&self) -> String {
        let ip = match self.listen.ip() {
            IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
            IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
            ip => ip,
        };
        SocketAddr::new(ip, self.listen.port()).to_string()
    }

    /// Returns the address of the manager for workers on other machines.
    fn remote_address(&self) -> String {
        if self.listen.ip().is_unspecified() {
            format!("{}:{}", self.host, self.listen.port())
        } else {
            self.listen.to_string()
        }
    }
}

impl Driver {
    /// Creates the drivers of all pools whose workers are started one by one, each with the number of its pool.
    ///
    /// # Errors
    /// [`DriverError`] if workers on this machine could not join.
    pub fn of_pools(pools: &Pools, context: &DriverContext) -> Result<Vec<(usize, Self)>, DriverError> {
        let mut drivers = Vec::new();
        for (number, ManagedPool { spec, prefix, driver }) in pools.0.iter().enumerate() {
            let Some(settings) = driver else { continue };
            let manager = settings.manager.clone();
            let backend = match &settings.kind {
                DriverKind::Process { options, token } => {
                    let manager = manager.unwrap_or_else(|| context.local_address());
                    let driver = ProcessDriver::new(spec, context, manager, options.clone(), token.clone())?;
                    Backend::Process(driver)
                }
                DriverKind::Command { start, stop, list } => Backend::Command(CommandDriver {
                    pool: spec.name.clone(),
                    owner: context.owner_tag(),
                    manager: manager.unwrap_or_else(|| context.remote_address()),
                    start: start.clone(),
                    stop: stop.clone(),
                    list: list.clone(),
                }),
                DriverKind::Kubernetes { .. } => continue,
            };
            let prefix = format!("{prefix}{}-", context.owner_part());
            drivers.push((number, Self { pool: spec.name.clone(), prefix, backend }));
        }
        Ok(drivers)
    }

    /// Starts a worker and returns its handle.
    pub(crate) fn start(&self, name: &str) -> Result<String, StartError> {
        match &self.backend {
            Backend::Process(driver) => driver.start(name),
            Backend::Command(driver) => driver.start(name),
        }
    }

    /// Asks a worker to end. Succeeds if it has ended.
    ///
    /// # Errors
    /// Reason why the worker may keep running.
    pub fn stop(&self, name: &str, handle: &str) -> Result<(), String> {
        match &self.backend {
            Backend::Process(driver) => driver.stop(name, handle),
            Backend::Command(driver) => driver.stop(name, handle),
        }
    }

    /// Lists the workers with the owner tag in their names. Others are not this manager's to stop.
    ///
    /// # Errors
    /// Reason why the workers are unknown.
    pub fn list(&self) -> Result<Vec<ListedWorker>, String> {
        let mut workers = match &self.backend {
            Backend::Process(driver) => driver.list(),
            Backend::Command(driver) => driver.list()?,
        };
        workers.retain(|worker| worker.name.starts_with(&self.prefix));
        Ok(workers)
    }
}

/// Returns whether a text is a handle: printable, and neither empty nor long.
fn is_handle(text: &str) -> bool {
    !text.is_empty() && text.len() <= MAX_HANDLE_LENGTH && !text.chars().any(char::is_control)
}
