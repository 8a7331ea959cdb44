//! Workflows of other programs: real files of Taverna and of the region templates framework's format, generated ones, and
//! invalid ones.

mod descriptors;
mod flows;
mod real;
mod stubs;

use pleach_interop::workflow_files::{ImportedWorkflow, WorkflowMap, import_workflow};
use pleach_workflow::Registry;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// A folder of files that is removed on drop.
pub(crate) struct Folder(tempfile::TempDir);

impl Folder {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().expect("a folder"))
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().expect("within the folder")).expect("made");
        std::fs::write(&path, text).expect("written");
        path
    }

    /// Imports a file with a map, and writes the result into the folder `out`.
    pub(crate) fn import(&self, file: &Path, map: &str) -> Result<ImportedWorkflow, String> {
        let shown = |error: &dyn std::fmt::Display| {
            error.to_string().replace(&self.0.path().display().to_string(), "DIR")
        };
        let map = WorkflowMap::load(&self.write("map.json", map)).map_err(|error| shown(&error))?;
        let imported = import_workflow(file, &map, &registry()).map_err(|error| shown(&error))?;
        let imported = imported.expect("a workflow of another program");
        for (name, text) in &imported.files {
            self.write(&format!("out/{name}"), text);
        }
        Ok(imported)
    }
}

pub(crate) fn registry() -> Registry {
    pleach_study::builtin::registry()
}

/// Returns a file of an imported workflow.
pub(crate) fn json(imported: &ImportedWorkflow, file: &str) -> Value {
    let (_, text) = imported.files.iter().find(|(name, _)| name == file).unwrap_or_else(|| panic!("{file}"));
    serde_json::from_str(text).expect("JSON")
}

/// Returns the texts of a JSON list.
pub(crate) fn texts(list: &Value) -> Vec<&str> {
    list.as_array().expect("a list").iter().map(|text| text.as_str().expect("a text")).collect()
}
