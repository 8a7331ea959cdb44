//! Remarks of the provisioner for operators.

use std::fmt;

/// Event that an operator should know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProvisionRemark {
    /// A worker was requested.
    Requested {
        /// Its name.
        name: String,
        /// Name of its pool.
        pool: String,
    },
    /// A worker that an earlier start of the manager requested is owned again.
    Adopted {
        /// Its name.
        name: String,
        /// Its handle.
        handle: String,
    },
    /// A worker could not be started.
    StartFailed {
        /// Its name.
        name: String,
        /// Reason.
        reason: String,
    },
    /// Starts in a pool are suspended.
    NoCapacity {
        /// Name of the pool.
        pool: String,
        /// Failures in a row.
        failures: u32,
        /// Reason of the last failure.
        reason: String,
    },
    /// A worker has ended.
    Ended {
        /// Its name.
        name: String,
        /// Circumstances.
        reason: &'static str,
    },
    /// A worker is stopped.
    Stopping {
        /// Its name.
        name: String,
    },
    /// A worker could not be stopped.
    StopFailed {
        /// Its name.
        name: String,
        /// Reason.
        reason: String,
    },
    /// A driver lists a worker that the journal lacks.
    Orphan {
        /// Its name.
        name: String,
        /// Its handle.
        handle: String,
    },
    /// A driver lists a second worker under an owned name.
    Double {
        /// The name.
        name: String,
        /// Handle of the second worker.
        handle: String,
    },
    /// A driver did not list its workers.
    ListFailed {
        /// Name of the pool.
        pool: String,
        /// Reason.
        reason: String,
    },
    /// The journal has a worker of a pool without a driver.
    UnknownPool {
        /// Name of the worker.
        name: String,
        /// Name of the pool.
        pool: String,
    },
}

impl ProvisionRemark {
    /// Returns whether an operator may have to act.
    #[must_use]
    pub fn is_warning(&self) -> bool {
        !matches!(
            self,
            Self::Requested { .. } | Self::Adopted { .. } | Self::Ended { .. } | Self::Stopping { .. }
        )
    }
}

impl fmt::Display for ProvisionRemark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Requested { name, pool } => write!(f, "worker {name} of pool {pool} is being started"),
            Self::Adopted { name, handle } => write!(f, "worker {name} ({handle}) is adopted"),
            Self::StartFailed { name, reason } => write!(f, "start of worker {name} failed: {reason}"),
            Self::NoCapacity { pool, failures, reason } => write!(
                f,
                "pool {pool} has no capacity: {failures} starts in a row failed, the last one with: {reason}; other pools \
                 are used, and the manager tries again later"
            ),
            Self::Ended { name, reason } => write!(f, "worker {name} has ended: {reason}"),
            Self::Stopping { name } => write!(f, "worker {name} is being stopped"),
            Self::StopFailed { name, reason } => {
                write!(f, "worker {name} was not stopped: {reason}; the manager tries again")
            }
            Self::Orphan { name, handle } => {
                write!(
                    f,
                    "worker {name} ({handle}) is not in the journal of the manager that owns it and is stopped"
                )
            }
            Self::Double { name, handle } => {
                write!(f, "worker {name} was started twice; the second one ({handle}) is stopped")
            }
            Self::ListFailed { pool, reason } => write!(
                f,
                "the driver of pool {pool} does not list its workers: {reason}; no worker is started before it does"
            ),
            Self::UnknownPool { name, pool } => write!(
                f,
                "worker {name} is of pool {pool}, which has no driver in the pool file; restore the pool, or end the worker"
            ),
        }
    }
}
