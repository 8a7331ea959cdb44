//! A temporary folder with tiles and a study of them.

use crate::pleach::pleach;
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// Default `study.toml`: all 15 parameters of the reference application.
pub(crate) const STUDY: &str = r#"[study]
name = "nuclei-moat"
workflow = "nuclei"
seed = 500
[input]
tiles = ["tiles/*.png"]
normalize = true
reference = "defaults"
[method]
kind = "moat"
trajectories = 2
levels = 20
[response]
metric = "dice"
"#;

/// A folder that is removed when the value is dropped.
pub(crate) struct Study(TempDir);

impl Study {
    /// Two synthetic tiles and a study of them.
    pub(crate) fn of_tissue(size_px: u32) -> Self {
        let study = Self(tempfile::tempdir().expect("a folder"));
        let size = size_px.to_string();
        let tissue = ["tissue", "--out", "tiles", "--size", &size, "--count", "2", "--seed", "3"];
        pleach(study.folder(), &tissue).done();
        study.edit(&[]);
        study
    }

    pub(crate) fn folder(&self) -> &Path {
        self.0.path()
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder().join(name)
    }

    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().expect("within the folder")).expect("a folder made");
        fs::write(path, content).expect("a file written");
    }

    /// Writes `study.toml` with replaced parts.
    pub(crate) fn edit(&self, edits: &[(&str, &str)]) {
        let edited = edits.iter().fold(STUDY.to_owned(), |text, (old, new)| {
            assert_eq!(text.matches(old).count(), 1, "{old} is not in the study, once");
            text.replace(old, new)
        });
        self.write("study.toml", edited);
    }
}
