//! The files that determine the results of a command: its program and the files of the manifest.
//!
//! A study is planned with their digests. A task checks after its end that they have not changed since: it compares sizes, times
//! and numbers of the files, and reads only those that differ.

use crate::error::ExternalError;
use crate::failure::Failure;
use crate::identity::{CONTRACT, Identity};
use crate::manifest::{CommandTemplate, Declaration, Manifest};
use std::collections::BTreeMap;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// State of a file that a change of its content changes: length, number, and the nanoseconds of two times.
type State = (u64, u64, [i64; 4]);

/// Sources of an operation.
#[derive(Debug)]
pub(super) struct Sources {
    folder: PathBuf,
    files: Vec<PathBuf>,
    /// The program, as found in `PATH`.
    program: PathBuf,
    /// Name of the program as a component. `None` for containers, whose images are pinned in the manifest.
    program_name: Option<String>,
    content: Identity,
    states: Vec<(PathBuf, State)>,
}

impl Sources {
    /// Finds and reads the sources.
    pub(super) fn read(
        manifest: &Manifest,
        declaration: &Declaration,
        template: &CommandTemplate,
        variables: &BTreeMap<String, String>,
    ) -> Result<Self, ExternalError> {
        let path = variables.get("PATH").map_or("", String::as_str);
        let program =
            find(&template.program, &manifest.folder, path).ok_or_else(|| ExternalError::NoProgram {
                manifest: manifest.file.clone(),
                operation: declaration.name,
                program: template.program.clone(),
            })?;
        let mut sources = Self {
            folder: manifest.folder.clone(),
            files: declaration.files.clone(),
            program,
            program_name: (!template.is_container).then(|| template.program.clone()),
            content: Identity::default(),
            states: Vec::new(),
        };
        // Before the contents: a change in between is found by the first task.
        sources.states = sources.states_now()?;
        sources.content = sources.content_now()?;
        Ok(sources)
    }

    /// Returns the program.
    pub(super) fn program(&self) -> &Path {
        &self.program
    }

    /// Returns the components that determine the results of the operation.
    pub(super) fn identity(&self, declaration: &Declaration) -> Identity {
        let mut identity = self.content.clone();
        identity.add("contract", CONTRACT.to_string());
        identity.add("platform", format!("{}-{}", std::env::consts::OS, std::env::consts::ARCH));
        identity.add("manifest entry", declaration.entry.clone());
        if declaration.depends_on_gpu() {
            identity.add_gpu();
        }
        identity
    }

    /// Links the files of the manifest into a folder, under their names.
    pub(super) fn link_files(&self, into: &Path) -> Result<(), Failure> {
        for file in &self.files {
            let link = into.join(file);
            let linked = link.parent().map_or(Ok(()), std::fs::create_dir_all);
            linked.and_then(|()| std::os::unix::fs::symlink(self.folder.join(file), &link)).map_err(
                |error| {
                    Failure::System(format!(
                        "{}: failed to link into the working folder: {error}",
                        file.display()
                    ))
                },
            )?;
        }
        Ok(())
    }

    /// Returns an error if a file has changed since the operation was loaded.
    pub(super) fn check(&self) -> Result<(), Failure> {
        let changed = |error: ExternalError| Failure::Changed(error.to_string());
        if self.states_now().map_err(changed)? == self.states {
            return Ok(());
        }
        match self.content_now().map_err(changed)?.differences(&self.content).first() {
            Some(difference) => Err(Failure::Changed(difference.clone())),
            None => Ok(()),
        }
    }

    fn states_now(&self) -> Result<Vec<(PathBuf, State)>, ExternalError> {
        let program = self.program_name.iter().map(|_| self.program.clone());
        let files = self.files.iter().map(|file| self.folder.join(file));
        let state = |path: PathBuf| match state(&path) {
            Ok(state) => Ok((path, state)),
            Err(cause) => Err(ExternalError::File { file: path, cause }),
        };
        program.chain(files).map(state).collect()
    }

    fn content_now(&self) -> Result<Identity, ExternalError> {
        let mut content = Identity::default();
        if let Some(name) = &self.program_name {
            content.add_program(name, &self.program)?;
        }
        for file in &self.files {
            content.add_file(&self.folder, file)?;
        }
        Ok(content)
    }
}

/// Returns the state of a file, or of the file that a link leads to.
fn state(path: &Path) -> io::Result<State> {
    let found = std::fs::metadata(path)?;
    let times = [found.mtime(), found.mtime_nsec(), found.ctime(), found.ctime_nsec()];
    Ok((found.len(), found.ino(), times))
}

/// Finds an executable file: a path relative to `folder`, or a name in the folders of `path`. Links are kept, since a program may
/// look at its own name.
fn find(program: &str, folder: &Path, path: &str) -> Option<PathBuf> {
    let is_executable =
        |file: &PathBuf| file.is_file() && rustix::fs::access(file, rustix::fs::Access::EXEC_OK).is_ok();
    if program.contains('/') {
        return Some(folder.join(program)).filter(is_executable);
    }
    // An empty folder of PATH is the current one, which is no place for programs.
    let folders = std::env::split_paths(path).filter(|folder| folder.is_absolute());
    folders.map(|folder| folder.join(program)).find(is_executable)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn programs_are_found_in_path_or_beside_the_manifest() {
        let place = tempfile::tempdir().unwrap();
        let path = |name: &str| place.path().join(name);
        for (name, mode) in [("a/plain", 0o644), ("b/plain", 0o755), ("tool", 0o755)] {
            std::fs::create_dir_all(path(name).parent().unwrap()).unwrap();
            std::fs::write(path(name), "").unwrap();
            std::fs::set_permissions(path(name), PermissionsExt::from_mode(mode)).unwrap();
        }
        std::os::unix::fs::symlink(path("tool"), path("b/link")).unwrap();
        let folders = format!("{}:{}::relative", path("a").display(), path("b").display());
        assert_eq!(find("plain", place.path(), &folders), Some(path("b/plain")));
        assert_eq!(find("link", place.path(), &folders), Some(path("b/link")));
        assert_eq!(find("./tool", place.path(), ""), Some(path("./tool")));
        assert_eq!(find("tool", place.path(), &folders), None);
        assert_eq!(find("./b", place.path(), &folders), None);
    }
}
