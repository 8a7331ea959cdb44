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

pub use described::{OperationDescription, descriptions, pinned};
pub use environment::Environment;
pub use error::ExternalError;
pub use identity::{DIGEST_DIGITS, Identity};
pub use manifest::{CodeFiles, Manifest};
pub use pool::Pool;
pub use python::instrument;

use declared::DeclaredOperation;
use manifest::Program;
use pleach_workflow::{DISTRIBUTION, Operation};
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

/// Loads the operations of a manifest, which is a file or `distribution:NAME`: those in Python, then the commands. Those in Python run in the environment that the manifest names, else in `python`, else in
/// that of the shell.
///
/// # Errors
/// Returns an [`ExternalError`] that names the file and the remedy.
pub fn load(
    manifest: &Path,
    python: Option<&Path>,
    pool: &Arc<Pool>,
) -> Result<Vec<ExternalOperation>, ExternalError> {
    let named = manifest.to_str().and_then(|named| named.strip_prefix(DISTRIBUTION));
    let manifest = match named {
        Some(distribution) => {
            let file = environment(python)?.manifest_of(distribution)?;
            // The distribution is installed in one environment, which its manifest cannot choose.
            Manifest { distribution: Some(distribution.to_owned()), python: None, ..Manifest::load(&file)? }
        }
        None => Manifest::load(manifest)?,
    };
    load_operations(&manifest, python, pool)
}

fn environment(python: Option<&Path>) -> Result<Environment, ExternalError> {
    python.map_or_else(Environment::of_shell, Environment::at)
}

/// Loads the operations of a manifest that another machine has sent, in `python`, whatever environment the manifest names.
///
/// # Errors
/// As for [`load`].
pub fn load_sent(
    manifest: &Path,
    python: Option<&Path>,
    pool: &Arc<Pool>,
) -> Result<Vec<ExternalOperation>, ExternalError> {
    load_operations(&Manifest { python: None, ..Manifest::load(manifest)? }, python, pool)
}

fn load_operations(
    manifest: &Manifest,
    python: Option<&Path>,
    pool: &Arc<Pool>,
) -> Result<Vec<ExternalOperation>, ExternalError> {
    let is_python = |program: &Program| matches!(program, Program::Python { .. });
    let mut operations = Vec::new();
    if manifest.operations.iter().any(|declaration| is_python(&declaration.program)) {
        let environment = environment(manifest.python.as_deref().or(python))?;
        let loaded = python::load(manifest, &environment, pool)?;
        operations.extend(loaded.into_iter().map(|(operation, identity)| ExternalOperation {
            operation: Arc::new(DeclaredOperation(operation)),
            identity,
        }));
    }
    let commands = command::load(manifest, pool)?.into_iter();
    operations.extend(commands.map(|(operation, identity)| ExternalOperation {
        operation: Arc::new(DeclaredOperation(operation)),
        identity,
    }));
    Ok(operations)
}
