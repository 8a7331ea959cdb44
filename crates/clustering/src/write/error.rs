//! Errors of writers.

use std::io;

use thiserror::Error;

use crate::format::Format;
use crate::format::text::quoted;
use crate::workflow::WorkflowError;

/// A workflow cannot be written.
#[derive(Debug, Error)]
pub enum WriteError {
    /// The output fails.
    #[error("failed to write: {0}")]
    Output(#[from] io::Error),
    /// The format cannot hold a name.
    #[error("{element} {}: no name in {format}; {allowed}", quoted(name))]
    Name {
        /// Kind of the element: "workflow", "task", "kind" or "file".
        element: &'static str,
        /// The name.
        name: String,
        /// The format.
        format: Format,
        /// The allowed names.
        allowed: &'static str,
    },
    /// The format cannot hold a workflow without tasks.
    #[error("workflow {}: no tasks; {format} holds 1 task or more", quoted(name))]
    Empty {
        /// Name of the workflow.
        name: String,
        /// The format.
        format: Format,
    },
    /// Jobs depend on themselves.
    #[error("order the jobs: {0}")]
    Jobs(#[from] WorkflowError),
}

impl From<serde_json::Error> for WriteError {
    fn from(error: serde_json::Error) -> Self {
        // Serialization to a writer fails with the writer only.
        Self::Output(error.into())
    }
}
