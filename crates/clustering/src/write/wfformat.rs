//! Writes WfCommons WfFormat 1.5. Ids that it does not allow are escaped, see [`escaped`]. The name of a task is its id as it is.

use std::borrow::Cow;
use std::io::Write;

use serde::Serialize;

use super::error::WriteError;
use crate::format::Format;
use crate::format::ids::{RUNTIME_SYSTEM, escaped};
use crate::workflow::Workflow;

/// The schema needs times, which a workflow does not have. They are the same for each, so that equal workflows are equal texts.
const TIME: &str = "1970-01-01T00:00:00Z";

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Instance<'a> {
    name: &'a str,
    description: &'static str,
    created_at: &'static str,
    schema_version: &'static str,
    workflow: Graph<'a>,
    runtime_system: RuntimeSystem,
}

#[derive(Debug, Serialize)]
struct RuntimeSystem {
    name: &'static str,
    version: &'static str,
}

#[derive(Debug, Serialize)]
struct Graph<'a> {
    specification: Specification<'a>,
    execution: Execution<'a>,
}

#[derive(Debug, Serialize)]
struct Specification<'a> {
    tasks: Vec<TaskEntry<'a>>,
    files: Vec<FileEntry<'a>>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct TaskEntry<'a> {
    name: &'a str,
    id: Cow<'a, str>,
    children: Vec<Cow<'a, str>>,
    input_files: Vec<Cow<'a, str>>,
    output_files: Vec<Cow<'a, str>>,
    parents: Vec<Cow<'a, str>>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct FileEntry<'a> {
    id: Cow<'a, str>,
    size_in_bytes: u64,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Execution<'a> {
    makespan_in_seconds: f64,
    executed_at: &'static str,
    tasks: Vec<RunEntry<'a>>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct RunEntry<'a> {
    id: Cow<'a, str>,
    runtime_in_seconds: f64,
    command: Command<'a>,
}

#[derive(Debug, Serialize)]
struct Command<'a> {
    program: &'a str,
    arguments: [&'a str; 0],
}

/// Writes a workflow. Its makespan is the length of the longest path: the run on workers without limit and without overheads.
pub(super) fn write(workflow: &Workflow, out: &mut impl Write) -> Result<(), WriteError> {
    check(workflow)?;
    let ids =
        |tasks: &[u32]| tasks.iter().map(|task| escaped(&workflow.tasks()[*task as usize].id)).collect();
    let names =
        |files: &[u32]| files.iter().map(|file| escaped(&workflow.files()[*file as usize].name)).collect();
    let tasks = (0..).zip(workflow.tasks()).map(|(number, task)| TaskEntry {
        name: &task.id,
        id: escaped(&task.id),
        children: ids(workflow.children(number)),
        input_files: names(&task.reads),
        output_files: names(&task.writes),
        parents: ids(workflow.parents(number)),
    });
    let files =
        workflow.files().iter().map(|file| FileEntry { id: escaped(&file.name), size_in_bytes: file.bytes });
    let runs = workflow.tasks().iter().map(|task| RunEntry {
        id: escaped(&task.id),
        runtime_in_seconds: task.seconds,
        command: Command { program: &task.kind, arguments: [] },
    });
    let instance = Instance {
        name: workflow.name(),
        description: "Workflow with run times of its tasks. Its times of creation and execution are unknown.",
        created_at: TIME,
        schema_version: "1.5",
        workflow: Graph {
            specification: Specification { tasks: tasks.collect(), files: files.collect() },
            execution: Execution {
                makespan_in_seconds: longest_path(workflow),
                executed_at: TIME,
                tasks: runs.collect(),
            },
        },
        runtime_system: RuntimeSystem { name: RUNTIME_SYSTEM, version: env!("CARGO_PKG_VERSION") },
    };
    serde_json::to_writer_pretty(&mut *out, &instance)?;
    writeln!(out)?;
    Ok(())
}

/// Returns the sum of run times along the longest path, in seconds.
fn longest_path(workflow: &Workflow) -> f64 {
    let mut ends = vec![0.0; workflow.tasks().len()];
    let mut longest = 0.0_f64;
    for task in workflow.levels().iter().flatten() {
        let parents = workflow.parents(*task).iter().map(|parent| ends[*parent as usize]);
        let end = parents.fold(0.0, f64::max) + workflow.tasks()[*task as usize].seconds;
        ends[*task as usize] = end;
        longest = longest.max(end);
    }
    longest
}

fn check(workflow: &Workflow) -> Result<(), WriteError> {
    let allowed = "1 character or more is allowed";
    let refused =
        |element| Err(WriteError::Name { element, name: String::new(), format: Format::WfFormat, allowed });
    if workflow.tasks().is_empty() {
        return Err(WriteError::Empty { name: workflow.name().to_owned(), format: Format::WfFormat });
    }
    if workflow.name().is_empty() {
        return refused("workflow");
    }
    for task in workflow.tasks() {
        if task.kind.is_empty() {
            return refused("kind");
        }
    }
    Ok(())
}
