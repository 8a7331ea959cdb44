//! A temporary folder with a study.

use crate::example::EXAMPLE;
use crate::registry::{registry, shipped};
use pleach_workflow::{Study, StudyError, Workflow};
use std::path::{Path, PathBuf};

/// A folder that is removed on drop.
pub(crate) struct Folder(tempfile::TempDir);

impl Folder {
    pub(crate) fn with(files: &[&str]) -> Self {
        let folder = Self(tempfile::tempdir().expect("a folder"));
        files.iter().for_each(|file| folder.write(file, ""));
        folder
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    pub(crate) fn write(&self, file: &str, content: impl AsRef<[u8]>) {
        let file = self.path().join(file);
        std::fs::create_dir_all(file.parent().expect("within the folder")).expect("made");
        std::fs::write(file, content).expect("written");
    }

    /// Loads a study file of this folder.
    pub(crate) fn load(&self, file: &str) -> Result<Study, StudyError> {
        let builtin = |name: &str| (name == "nuclei").then(|| Workflow::load(&shipped(), &registry()));
        Study::load(&self.path().join(file), &registry(), builtin, &["nuclei"])
    }

    /// Loads the example with some of its lines replaced.
    pub(crate) fn example(&self, edits: &[(&str, &str)]) -> Result<Study, StudyError> {
        let edited = edits.iter().fold(EXAMPLE.to_owned(), |text, (old, new)| {
            assert_eq!(text.matches(old).count(), 1, "{old} is not in the example, once");
            text.replace(old, new)
        });
        self.write("study.toml", edited);
        self.load("study.toml")
    }

    /// Returns a text with `DIR` in place of the path of this folder.
    pub(crate) fn shown(&self, text: &str) -> String {
        text.replace(&self.path().display().to_string(), "DIR")
    }

    pub(crate) fn names(&self, paths: &[PathBuf]) -> Vec<String> {
        paths.iter().map(|path| self.shown(&path.display().to_string())).collect()
    }
}
