//! External operations: functions in Python and commands, run in processes beside the worker (hop 8 of a study).
//!
//! A [`manifest`] declares operations without running code. [`load`] gives each an [`Identity`] from its code and its
//! environment, and implements the trait `Operation` by a [`Pool`] of processes. A task passes regions to Python as sealed memory
//! files, and to a command as files of common formats. A crash, a hang or too much memory of a process fails its task only.
//!
//! The crate knows nothing of workers and studies.

mod command;
mod declared;
mod described;
mod environment;
mod error;
mod failure;
mod identity;
mod intern;
pub mod manifest;
mod memory_file;
mod packet;
mod pool;
mod process;
mod python;

pub use described::{OperationDescription, descriptions};
pub use environment::Environment;
pub use error::ExternalError;
pub use identity::Identity;
pub use manifest::Manifest;
pub use pool::Pool;

use declared::DeclaredOperation;
use manifest::Program;
use pleach_workflow::Operation;
use std::path::Path;
use std::sync::Arc;

/// An operation with its identity.
#[derive(Clone)]
pub struct ExternalOperation {
    /// The operation. Its name has the digest of the identity.
    pub operation: Arc<dyn Operation>,
    /// The components that determine its results.
    pub identity: Identity,
}

impl std::fmt::Debug for ExternalOperation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ExternalOperation").field("name", &self.operation.name()).finish_non_exhaustive()
    }
}

/// Loads the operations of a manifest: those in Python, then the commands. Those in Python run in the environment that the manifest names, else in `python`, else in
/// that of the shell.
///
/// # Errors
/// Returns an [`ExternalError`] that names the file and the remedy.
pub fn load(
    manifest: &Path,
    python: Option<&Path>,
    pool: &Arc<Pool>,
) -> Result<Vec<ExternalOperation>, ExternalError> {
    let manifest = Manifest::load(manifest)?;
    let is_python = |program: &Program| matches!(program, Program::Python { .. });
    let mut operations = Vec::new();
    if manifest.operations.iter().any(|declaration| is_python(&declaration.program)) {
        let environment = match manifest.python.as_deref().or(python) {
            Some(path) => Environment::at(path)?,
            None => Environment::of_shell()?,
        };
        let loaded = python::load(&manifest, &environment, pool)?;
        operations.extend(loaded.into_iter().map(|(operation, identity)| ExternalOperation {
            operation: Arc::new(DeclaredOperation(operation)),
            identity,
        }));
    }
    let commands = command::load(&manifest, pool)?.into_iter();
    operations.extend(commands.map(|(operation, identity)| ExternalOperation {
        operation: Arc::new(DeclaredOperation(operation)),
        identity,
    }));
    Ok(operations)
}
