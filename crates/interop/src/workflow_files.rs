//! Workflows of other programs as descriptors of pleach: stage descriptors of the region templates framework and Taverna 2
//! workflows.
//!
//! An import checks the form of the file. It does not need the operations: `pleach workflow check` lists the ones that a
//! program lacks.

mod call;
mod descriptor;
mod draft;
mod error;
mod json_text;
mod map;
mod taverna;

pub use error::WorkflowImportError;
pub use map::WorkflowMap;

use pleach_workflow::Registry;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Files of an imported workflow.
#[derive(Debug)]
pub struct ImportedWorkflow {
    /// Name and text of each file, the workflow's or stage's first.
    pub files: Vec<(String, String)>,
    /// Size of the imported workflow, in a phrase.
    pub summary: String,
    /// Remarks: assumptions, and parts that the file lacks.
    pub notes: Vec<String>,
}

/// Imports a workflow. Returns `None` for a file of another kind, or one that cannot be read.
///
/// # Errors
/// [`WorkflowImportError`] with the element, its line or JSON path, and the allowed values.
pub fn import_workflow(
    file: &Path,
    map: &WorkflowMap,
    registry: &Registry,
) -> Result<Option<ImportedWorkflow>, WorkflowImportError> {
    let Ok(text) = map::read(file) else { return Ok(None) };
    if taverna::is_t2flow(&text) {
        return taverna::import(file, &text, map, registry).map(Some);
    }
    if !descriptor::is_descriptor(&text) {
        return Ok(None);
    }
    let imported = descriptor::import(file, &text, map, registry, &BTreeMap::new())?;
    let (stage, mut notes) = (imported.stage, imported.notes);
    let parameters = stage.tasks.iter().flat_map(|task| &task.parameters);
    let names: BTreeSet<String> = parameters.clone().map(|parameter| parameter.name.clone()).collect();
    let missing: BTreeSet<&str> =
        parameters.filter(|of| !of.is_complete()).map(|parameter| parameter.name.as_str()).collect();
    if !missing.is_empty() {
        let missing = missing.into_iter().collect::<Vec<_>>().join(", ");
        notes.push(format!("without values: {missing}; give \"default\" and \"range\" in the file or --map"));
    }
    let regions = stage.inputs.iter().chain(&stage.outputs).map(|(name, _)| name.clone()).collect();
    map.end(&[
        ("calls", imported.calls),
        ("regions", regions),
        ("parameters", names.iter().cloned().collect()),
        ("responses", Vec::new()),
    ])?;
    let summary = format!("stage {}: {} tasks, {} parameters", stage.name, stage.tasks.len(), names.len());
    let files = vec![(stage.file(), stage.text(&mut BTreeSet::new()))];
    Ok(Some(ImportedWorkflow { files, summary, notes }))
}
