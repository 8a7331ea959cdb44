//! Remarks on scaled pools for operators.

use std::fmt;

/// Event that an operator should know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScaleRemark {
    /// The number of workers was set.
    Set {
        /// Name of the pool.
        pool: String,
        /// The number before.
        before: u32,
        /// The number now.
        replicas: u32,
    },
    /// The number of workers was not set.
    NotSet {
        /// Name of the pool.
        pool: String,
        /// Reason.
        reason: String,
    },
    /// The number and the workers could not be read.
    NotObserved {
        /// Name of the pool.
        pool: String,
        /// Reason.
        reason: String,
    },
    /// Another party has set the number.
    ChangedElsewhere {
        /// Name of the pool.
        pool: String,
        /// The number that the manager knew.
        known: u32,
        /// The number that it found.
        found: u32,
    },
    /// The pool is not enlarged for some time.
    NoCapacity {
        /// Name of the pool.
        pool: String,
        /// Reason.
        reason: String,
    },
}

impl ScaleRemark {
    /// Returns whether an operator may have to act.
    #[must_use]
    pub fn is_warning(&self) -> bool {
        !matches!(self, Self::Set { .. })
    }
}

impl fmt::Display for ScaleRemark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Set { pool, before, replicas } => {
                write!(f, "pool {pool} is scaled from {before} to {replicas} workers")
            }
            Self::NotSet { pool, reason } => {
                write!(f, "pool {pool} was not scaled: {reason}; the manager tries again")
            }
            Self::NotObserved { pool, reason } => {
                write!(
                    f,
                    "the workers of pool {pool} are unknown: {reason}; the pool is not scaled before they are known"
                )
            }
            Self::ChangedElsewhere { pool, known, found } => write!(
                f,
                "pool {pool} was scaled from {known} to {found} workers, and not by this manager; an autoscaler beside the driver \
                 is not allowed"
            ),
            Self::NoCapacity { pool, reason } => {
                write!(
                    f,
                    "pool {pool} has no capacity: {reason}; other pools are used, and the manager tries again later"
                )
            }
        }
    }
}
