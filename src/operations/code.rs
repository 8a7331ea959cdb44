//! Code packages of clients on a worker: files in a folder of the process, loaded like a manifest of the worker's own.

use super::PROCESSES;
use pleach_actors::worker::CodeLoader;
use pleach_dispatch::message::CodePackage;
use pleach_external::{ExternalOperation, Identity};
use pleach_storage::files::scratch::Scratch;
use pleach_workflow::{Operation, plain_name};
use std::os::unix::fs::PermissionsExt;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::{fs, io, process};

/// Loads code packages into a folder of this process.
pub(crate) struct CodeFolder {
    folder: Scratch,
    python: Option<PathBuf>,
}

impl CodeFolder {
    pub(crate) fn new(folder: Scratch, python: Option<PathBuf>) -> Self {
        Self { folder, python }
    }

    /// Copies the files of a package into a folder of its own. Returns the manifest there.
    fn place(&self, package: &CodePackage, files: &[PathBuf]) -> Result<PathBuf, String> {
        let content = &package.manifest;
        let name: String = content.digest_of_all().iter().map(|byte| format!("{byte:02x}")).collect();
        let folder = self.folder.path().join(name);
        let manifest = Path::new(&content.path).file_name().ok_or("the manifest has no file name")?;
        let others = content.companions.iter().map(|companion| Path::new(&companion.name));
        let names = std::iter::once(Path::new(manifest)).chain(others);
        for (name, file) in names.zip(files) {
            // The manager has checked this too. This machine trusts no other.
            if !name.components().all(|part| matches!(part, Component::Normal(_))) {
                return Err(format!(
                    "{}: a path below the folder of the manifest is allowed",
                    name.display()
                ));
            }
            let place = folder.join(name);
            let fail = |error: io::Error| format!("{}: {error}", place.display());
            fs::create_dir_all(place.parent().unwrap_or(&folder)).map_err(fail)?;
            fs::copy(file, &place).map_err(fail)?;
            // Programs of commands must be executable, and nothing else depends on it.
            fs::set_permissions(&place, fs::Permissions::from_mode(0o700)).map_err(fail)?;
        }
        Ok(folder.join(manifest))
    }
}

impl CodeLoader for CodeFolder {
    fn load(&self, package: &CodePackage, files: &[PathBuf]) -> Result<Vec<Arc<dyn Operation>>, String> {
        let manifest = self.place(package, files)?;
        let built = lock_environment(manifest.parent().unwrap_or(Path::new("")))?;
        let python = built.as_deref().or(self.python.as_deref());
        let loaded =
            pleach_external::load_sent(&manifest, python, &PROCESSES).map_err(|error| error.to_string())?;
        let mut operations = Vec::new();
        for wanted in &package.operations {
            let of_name = |external: &&ExternalOperation| {
                let operation = &external.operation;
                (plain_name(operation.name()), operation.version()) == (wanted.plain_name(), wanted.version)
            };
            let found = loaded.iter().find(of_name);
            let found = found.ok_or_else(|| format!("{} is not in the manifest", wanted.plain_name()))?;
            if found.operation.name() != wanted.name {
                let client: Identity = wanted.components.iter().cloned().collect();
                let changes = found.identity.differences(&client);
                return Err(format!("{}: {}", wanted.plain_name(), changes.join(", ")));
            }
            operations.push(Arc::clone(&found.operation));
        }
        Ok(operations)
    }
}

/// Builds the environment of a folder with a project and a lock file, if `uv` is installed. Returns its folder.
fn lock_environment(folder: &Path) -> Result<Option<PathBuf>, String> {
    if !folder.join("uv.lock").is_file() {
        return Ok(None);
    }
    let mut uv = process::Command::new("uv");
    uv.args(["sync", "--frozen", "--no-install-project", "--no-progress", "--project"]).arg(folder);
    // An active environment of the worker would be used instead.
    uv.env_remove("VIRTUAL_ENV").stdin(process::Stdio::null());
    match uv.output() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(format!("uv: {error}")),
        Ok(output) if output.status.success() => Ok(Some(folder.join(".venv"))),
        Ok(output) => {
            let text = String::from_utf8_lossy(&output.stderr);
            Err(format!("uv sync: {}", text.lines().last().unwrap_or("no message")))
        }
    }
}
