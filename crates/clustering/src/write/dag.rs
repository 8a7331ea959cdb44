//! Writes DAG lines.

use std::io::Write;

use super::error::WriteError;
use crate::format::Format;
use crate::workflow::Workflow;

/// Writes a workflow.
pub(super) fn write(workflow: &Workflow, out: &mut impl Write) -> Result<(), WriteError> {
    check(workflow)?;
    for file in workflow.files() {
        writeln!(out, "FILE {} {}", file.name, file.bytes)?;
    }
    for task in workflow.tasks() {
        // The simulator of this format has types `namespace::name:version`.
        writeln!(out, "TASK {} pleach::{}:1.0 {}", task.id, task.kind, task.seconds)?;
    }
    for task in workflow.tasks() {
        for (keyword, files) in [("INPUTS", &task.reads), ("OUTPUTS", &task.writes)] {
            write!(out, "{keyword} {}", task.id)?;
            for file in files {
                write!(out, " {}", workflow.files()[*file as usize].name)?;
            }
            writeln!(out)?;
        }
    }
    for (parent, child) in workflow.edges() {
        let id = |task: u32| &workflow.tasks()[task as usize].id;
        writeln!(out, "EDGE {} {}", id(parent), id(child))?;
    }
    Ok(())
}

fn check(workflow: &Workflow) -> Result<(), WriteError> {
    if workflow.tasks().is_empty() {
        return Err(WriteError::Empty { name: workflow.name().to_owned(), format: Format::Dag });
    }
    let ids = workflow.tasks().iter().map(|task| ("task", &task.id));
    let kinds = workflow.tasks().iter().map(|task| ("kind", &task.kind));
    let files = workflow.files().iter().map(|file| ("file", &file.name));
    for (element, name) in ids.chain(kinds).chain(files) {
        // Within a type, an empty kind is between other characters.
        if name.contains(char::is_whitespace) || (name.is_empty() && element != "kind") {
            let (name, allowed) = (name.clone(), "1 character or more without white space is allowed");
            return Err(WriteError::Name { element, name, format: Format::Dag, allowed });
        }
    }
    Ok(())
}
