//! Defects of pleach: conditions that its own code rules out.

use std::error::Error;

/// Condition that the code of pleach rules out, such as a response without indices. The user cannot correct it.
///
/// Error enums of other crates carry it as their source. The command line finds it in the chain of sources and asks
/// the user to report it.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Defect(#[source] Box<dyn Error + Send + Sync>);

impl Defect {
    /// Returns a defect with its cause, a message or an error.
    pub fn new(cause: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self(cause.into())
    }
}
