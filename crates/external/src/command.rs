//! Operations that are commands: loading them, and their tasks.
//!
//! A task writes its inputs as files into a folder of its own, starts the program there without a shell, and reads its outputs
//! from files. The program runs until its end, and serves no second task.

mod format;
mod image_file;
mod npy;
mod operation;
mod sources;
mod table;

use crate::environment::plain_variables;
use crate::error::ExternalError;
use crate::identity::Identity;
use crate::manifest::{Manifest, Program};
use crate::pool::Pool;
use operation::CommandOperation;
use sources::Sources;
use std::sync::Arc;

/// Loads the commands of a manifest.
pub(crate) fn load(
    manifest: &Manifest,
    pool: &Arc<Pool>,
) -> Result<Vec<(CommandOperation, Identity)>, ExternalError> {
    let mut operations = Vec::new();
    for declaration in &manifest.operations {
        let Program::Command(template) = &declaration.program else { continue };
        let mut variables = plain_variables();
        variables.extend(declaration.variables.clone());
        let sources = Sources::read(manifest, declaration, template, &variables)?;
        let identity = sources.identity(declaration);
        let operation = CommandOperation::new(declaration, template, sources, variables, &identity, pool);
        operations.push((operation, identity));
    }
    Ok(operations)
}
