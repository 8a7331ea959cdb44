//! Files of a manifest's operations: another machine needs them, and an environment.

use super::{Manifest, Program};
use crate::error::ExternalError;
use crate::identity::FILE_COMPONENT;
use pleach_workflow::{Registry, plain_name};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// What `uv` builds an environment from.
const ENVIRONMENT_FILES: [&str; 2] = ["pyproject.toml", "uv.lock"];

/// A manifest with the files that its operations read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CodeFiles {
    /// The manifest.
    pub manifest: PathBuf,
    /// The other files, relative to the folder of the manifest: modules, `files`, programs of commands, and the project and lock
    /// file of an environment if both are there.
    pub files: Vec<PathBuf>,
    /// `NAME@DIGEST` of the operations.
    pub operations: Vec<String>,
}

impl CodeFiles {
    /// Returns the files of the operations of a manifest that are in the registry.
    ///
    /// # Errors
    /// Returns [`ExternalError::Manifest`] if the manifest is invalid.
    pub fn of(manifest: &Path, registry: &Registry) -> Result<Self, ExternalError> {
        let read = Manifest::load(manifest)?;
        let (mut files, mut operations) = (BTreeSet::new(), Vec::new());
        for declaration in &read.operations {
            let Some(operation) = registry.get(declaration.name, declaration.version) else { continue };
            // A pinned operation has the workers' code.
            if plain_name(operation.name()) == operation.name() || operation.components().is_empty() {
                continue;
            }
            operations.push(operation.name().to_owned());
            let named =
                operation.components().iter().filter_map(|(name, _)| name.strip_prefix(FILE_COMPONENT));
            files.extend(named.map(PathBuf::from));
            if let Program::Command(template) = &declaration.program {
                let program = Path::new(&template.program);
                files.extend(program_within(program, &read.folder));
            }
        }
        let environment = ENVIRONMENT_FILES.map(PathBuf::from);
        if environment.iter().all(|file| read.folder.join(file).is_file()) {
            files.extend(environment);
        }
        Ok(Self { manifest: manifest.to_owned(), files: files.into_iter().collect(), operations })
    }
}

/// Returns the program of a command relative to the folder, if it is there.
fn program_within(program: &Path, folder: &Path) -> Option<PathBuf> {
    let is_path = program.components().count() > 1;
    let place = folder.join(program).canonicalize().ok().filter(|_| is_path)?;
    place.strip_prefix(folder).ok().map(Path::to_owned)
}
