//! Imports workflows of Taverna 2 (`t2flow`).
//!
//! A processor becomes a stage of one task, or of the tasks of its stage descriptor. Data links become regions and
//! parameters. Scripts and services are refused.

mod annotation;
mod flat;
mod stages;
mod study_text;
mod sweep;
mod xml;

use super::ImportedWorkflow;
use super::error::{Place, Unsupported, WorkflowImportError, WorkflowImportProblem, failed};
use super::map::WorkflowMap;
use annotation::PortContent;
use flat::FlatFlow;
use pleach_workflow::Registry;
use stages::Assembler;
use std::path::Path;
use xml::{Activity, Dataflow};

/// Returns whether the text is XML of Taverna 2.
pub(crate) fn is_t2flow(text: &str) -> bool {
    xml::is_t2flow(text)
}

/// Imports a workflow.
pub(crate) fn import(
    file: &Path,
    text: &str,
    map: &WorkflowMap,
    registry: &Registry,
) -> Result<ImportedWorkflow, WorkflowImportError> {
    let flows = xml::parse(file, text)?;
    let flat = flat::flatten(file, &flows)?;
    check_activities(file, &flat, map)?;
    if let Some(condition) = flat.unimplied() {
        let problem = WorkflowImportProblem::Element {
            element: "condition",
            name: condition.target.clone(),
            found: format!("waits for {} without reading its outputs", condition.control),
            allowed: "control links that data links imply are allowed".to_owned(),
        };
        return Err(failed(file, Place::Line(condition.line), problem));
    }
    let top = &flows.flows[0];
    let mut ports: Vec<(String, PortContent)> = Vec::new();
    for port in &top.inputs {
        ports.push((port.name.clone(), annotation::content(file, port)?));
    }
    let links: usize = flows.flows.iter().map(|flow| flow.links.len()).sum();
    let sets = sweep::parameter_sets(file, &flat, &ports)?;
    let assembled = Assembler::new(file, top, &flat, &ports, map, registry).assemble()?;
    let mut files = assembled.workflow.files();
    let mut notes = assembled.notes;
    files.extend(study_text::files(file, &assembled.workflow, &ports, sets, &mut notes));
    let is_step = |activity: &Activity| !matches!(activity, Activity::Constant(_));
    let processors = flat.processors.iter().filter(|processor| is_step(&processor.activity)).count();
    let summary =
        format!("workflow {}: {} inputs, {processors} processors, {links} links", top.name, top.inputs.len());
    Ok(ImportedWorkflow { files, summary, notes })
}

/// Rejects processors that pleach does not run, all in one message.
fn check_activities(file: &Path, flat: &FlatFlow, map: &WorkflowMap) -> Result<(), WorkflowImportError> {
    let mut unsupported = Vec::new();
    for processor in &flat.processors {
        if let Activity::Other(kind) = &processor.activity
            && map.call(&[processor.name.clone(), processor.own_name.clone()]).is_none()
        {
            let (processor, line) = (processor.name.clone(), processor.line);
            unsupported.push(Unsupported { processor, activity: kind.clone(), line });
        }
    }
    // Processors of nested workflows come first, wherever they are in the file.
    unsupported.sort_by_key(|processor| processor.line);
    match unsupported.first() {
        None => Ok(()),
        Some(first) => {
            let line = first.line;
            Err(failed(file, Place::Line(line), WorkflowImportProblem::Activities { unsupported }))
        }
    }
}

/// Builds an error about an element of a dataflow.
fn element(
    file: &Path,
    flow: &Dataflow,
    found: impl Into<String>,
    allowed: impl Into<String>,
) -> WorkflowImportError {
    let (name, found, allowed) = (flow.name.clone(), found.into(), allowed.into());
    let problem = WorkflowImportProblem::Element { element: "dataflow", name, found, allowed };
    failed(file, Place::Line(flow.line), problem)
}
