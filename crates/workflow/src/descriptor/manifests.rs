//! Manifests that a study or a workflow names, found before their descriptors are checked.
//!
//! Descriptors are checked against the operations of the manifests, so the manifests are read first. A file that is missing or
//! malformed names none here. The check reports it.

use crate::text;
use std::path::{Path, PathBuf};

/// Returns the manifests of the workflow that a study file names, in order. Paths are relative to the working folder.
#[must_use]
pub fn manifests_of_study(study: &Path) -> Vec<PathBuf> {
    let document: Option<toml::Table> = text::read(study).ok().and_then(|text| toml::from_str(&text).ok());
    let workflow = document.as_ref().and_then(|document| document.get("study")?.get("workflow")?.as_str());
    let folder = study.parent().unwrap_or(Path::new(""));
    workflow.map_or_else(Vec::new, |workflow| manifests_of_workflow(&folder.join(workflow)))
}

/// Prefix of the names of installed distributions, in place of the path of a manifest.
pub const DISTRIBUTION: &str = "distribution:";

/// Returns the manifests that a workflow file names, in order. Paths are relative to the working folder. Names of distributions, with
/// their prefix, stay as they are.
#[must_use]
pub fn manifests_of_workflow(workflow: &Path) -> Vec<PathBuf> {
    let document: Option<serde_json::Value> =
        text::read(workflow).ok().and_then(|text| serde_json::from_str(&text).ok());
    let named = document.as_ref().and_then(|document| document.get("operations")?.as_array());
    let folder = workflow.parent().unwrap_or(Path::new(""));
    let place = |named: &str| {
        if named.starts_with(DISTRIBUTION) { PathBuf::from(named) } else { folder.join(named) }
    };
    named.into_iter().flatten().filter_map(|named| Some(place(named.as_str()?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn manifests_are_relative_to_the_workflow() {
        let folder = tempfile::tempdir().unwrap();
        let (study, workflow) = (folder.path().join("study.toml"), folder.path().join("flow/workflow.json"));
        std::fs::create_dir(folder.path().join("flow")).unwrap();
        std::fs::write(&study, "[study]\nworkflow = \"flow/workflow.json\"\n").unwrap();
        assert!(manifests_of_study(&study).is_empty(), "there is no workflow yet");
        std::fs::write(
            &workflow,
            r#"{"operations": ["pleach.toml", "../more/pleach.toml", "distribution:mine", 3]}"#,
        )
        .unwrap();
        let wanted = ["flow/pleach.toml", "flow/../more/pleach.toml"].map(|path| folder.path().join(path));
        let found = manifests_of_study(&study);
        assert_eq!(found[..2], wanted);
        assert_eq!(found[2..], [PathBuf::from("distribution:mine")]);
        assert!(manifests_of_study(&workflow).is_empty(), "it is no TOML");
    }
}
