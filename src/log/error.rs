//! Errors of starting the log.

use super::VARIABLE;
use pleach_study::Defect;
use thiserror::Error;

/// Reason why the log cannot start.
#[derive(Debug, Error)]
pub(crate) enum LogError {
    /// `PLEACH_LOG` is neither a level nor a list of levels by crate.
    #[error(
        "{VARIABLE}={value}: off, error, warn, info, debug, trace, or a list as in pleach=info,pleach_actors=debug is \
         allowed"
    )]
    Levels {
        /// Value of the variable.
        value: String,
    },
    /// A defect of pleach.
    #[error("{0}")]
    Defect(#[from] Defect),
}
