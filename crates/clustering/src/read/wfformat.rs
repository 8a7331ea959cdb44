//! Reads WfCommons WfFormat 1.5: JSON with a specification (tasks, files) and an execution (run times).
//!
//! Dependencies are the union of `parents` and `children`: a file may give either or both. The kind of a task is its program, or
//! else its name without a suffix `_ID` and digits.

use std::collections::{HashMap, HashSet};

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;

use super::draft::{BYTES, Draft, SECONDS, bytes_of, seconds_of};
use super::error::{Located, Place, ReadProblem};
use super::options::ReadOptions;
use crate::format::ids::{RUNTIME_SYSTEM, unescaped};
use crate::format::text::quoted;
use crate::workflow::Workflow;

/// The field that is checked first: the shape of the others depends on it.
#[derive(Debug, Deserialize)]
struct Version {
    #[serde(rename = "schemaVersion")]
    schema_version: Option<Value>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Document {
    name: Option<String>,
    workflow: Graph,
    runtime_system: Option<RuntimeSystem>,
}

#[derive(Debug, Deserialize)]
struct RuntimeSystem {
    name: Option<Value>,
}

#[derive(Debug, Deserialize)]
struct Graph {
    specification: Specification,
    execution: Option<Execution>,
}

#[derive(Debug, Deserialize)]
struct Specification {
    tasks: Vec<TaskEntry>,
    #[serde(default)]
    files: Vec<FileEntry>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct TaskEntry {
    id: String,
    name: Option<String>,
    #[serde(default)]
    parents: Vec<String>,
    #[serde(default)]
    children: Vec<String>,
    #[serde(default)]
    input_files: Vec<String>,
    #[serde(default)]
    output_files: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct FileEntry {
    id: String,
    size_in_bytes: Option<Value>,
    /// Name of the field in older versions, where the unit is not stated.
    size: Option<IgnoredAny>,
}

#[derive(Debug, Deserialize)]
struct Execution {
    tasks: Vec<RunEntry>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct RunEntry {
    id: String,
    runtime_in_seconds: Option<Value>,
    /// Name of the field in older versions, where the unit is not stated.
    runtime: Option<IgnoredAny>,
    command: Option<Command>,
}

#[derive(Debug, Deserialize)]
struct Command {
    program: Option<String>,
}

/// Reads a text. `name` is the name of a workflow without one.
pub(super) fn parse(name: &str, text: &str, options: ReadOptions) -> Result<Workflow, Located> {
    let version: Version = json(text)?;
    if version.schema_version != Some(Value::from("1.5")) {
        let found =
            version.schema_version.map_or_else(|| "missing".to_owned(), |version| version.to_string());
        let cause = format!("schemaVersion {}", quoted(&found));
        return Err(ReadProblem::Syntax { cause, allowed: "WfFormat 1.5 is allowed" }.at(Place::File));
    }
    let mut document: Document = json(text)?;
    if document.runtime_system.as_ref().is_some_and(|system| system.name == Some(RUNTIME_SYSTEM.into())) {
        unescape(&mut document.workflow);
    }
    let draft = collect(document, options).map_err(|problem| problem.at(Place::File))?;
    draft.finish(name, options, |_| Place::File)
}

/// Restores the names that the writer has escaped.
fn unescape(graph: &mut Graph) {
    let restore = |id: &mut String| *id = unescaped(id).into_owned();
    for task in &mut graph.specification.tasks {
        restore(&mut task.id);
        for list in [&mut task.parents, &mut task.children, &mut task.input_files, &mut task.output_files] {
            list.iter_mut().for_each(restore);
        }
    }
    graph.specification.files.iter_mut().for_each(|file| restore(&mut file.id));
    graph
        .execution
        .iter_mut()
        .flat_map(|execution| &mut execution.tasks)
        .for_each(|run| restore(&mut run.id));
}

fn json<'de, T: Deserialize<'de>>(text: &'de str) -> Result<T, Located> {
    serde_json::from_str(text).map_err(|error| {
        let cause = format!("no WfFormat: {error}");
        let allowed = "JSON of WfFormat 1.5 is allowed";
        ReadProblem::Syntax { cause, allowed }.at(Place::Line(error.line() as u64))
    })
}

fn collect(document: Document, options: ReadOptions) -> Result<Draft, ReadProblem> {
    let Graph { specification, execution } = document.workflow;
    let mut draft = Draft::new(document.name);
    let runs = runs(&specification, execution)?;
    for task in &specification.tasks {
        let run = runs.get(task.id.as_str());
        let seconds = run_time(&task.id, run, options)?;
        let program = run.and_then(|run| run.command.as_ref()?.program.as_deref());
        let kind = program.unwrap_or_else(|| kind_of(task.name.as_deref().unwrap_or(&task.id)));
        draft.add_task(&task.id, kind, seconds)?;
    }
    for file in &specification.files {
        let number = draft.file(&file.id, 0);
        if draft.bytes(number).is_some() {
            return Err(ReadProblem::Twice { element: "file", id: file.id.clone() });
        }
        draft.set_bytes(number, size(file, options)?);
    }
    for (number, task) in (0..).zip(&specification.tasks) {
        for name in &task.input_files {
            let file = draft.file(name, 0);
            draft.add_input(number, file);
        }
        for name in &task.output_files {
            let file = draft.file(name, 0);
            draft.add_output(number, file);
        }
        for parent in &task.parents {
            draft.add_edge(draft.task(parent)?, number);
        }
        for child in &task.children {
            draft.add_edge(number, draft.task(child)?);
        }
    }
    Ok(draft)
}

/// Returns the execution of each task by its id.
fn runs(
    specification: &Specification,
    execution: Option<Execution>,
) -> Result<HashMap<String, RunEntry>, ReadProblem> {
    let ids: HashSet<&str> = specification.tasks.iter().map(|task| task.id.as_str()).collect();
    let mut runs = HashMap::new();
    for run in execution.into_iter().flat_map(|execution| execution.tasks) {
        if !ids.contains(run.id.as_str()) {
            return Err(ReadProblem::Unknown { id: run.id });
        }
        if let Some(run) = runs.insert(run.id.clone(), run) {
            return Err(ReadProblem::Twice { element: "execution of task", id: run.id });
        }
    }
    Ok(runs)
}

fn run_time(id: &str, run: Option<&RunEntry>, options: ReadOptions) -> Result<f64, ReadProblem> {
    let value = run.and_then(|run| run.runtime_in_seconds.as_ref());
    let time = match value {
        // A run time without a unit is not a missing one.
        None if run.is_some_and(|run| run.runtime.is_some()) => {
            return Err(without_unit("task", id, "runtime", "runtimeInSeconds is allowed"));
        }
        None => options.assume_zero.then_some(0.0),
        Some(value) => value.as_f64().and_then(|seconds| seconds_of(seconds, options)),
    };
    time.ok_or_else(|| ReadProblem::Value {
        element: "task",
        id: id.to_owned(),
        field: "runtimeInSeconds",
        value: value.map(Value::to_string),
        allowed: SECONDS,
    })
}

fn size(file: &FileEntry, options: ReadOptions) -> Result<u64, ReadProblem> {
    let value = file.size_in_bytes.as_ref();
    let bytes = match value {
        None if file.size.is_some() => {
            return Err(without_unit("file", &file.id, "size", "sizeInBytes is allowed"));
        }
        None => options.assume_zero.then_some(0),
        Some(value) => value.as_u64().or_else(|| bytes_of(value.as_f64()?, options)),
    };
    bytes.ok_or_else(|| ReadProblem::Value {
        element: "file",
        id: file.id.clone(),
        field: "sizeInBytes",
        value: value.map(Value::to_string),
        allowed: BYTES,
    })
}

fn without_unit(element: &'static str, id: &str, field: &'static str, allowed: &'static str) -> ReadProblem {
    ReadProblem::Unit { element, id: id.to_owned(), field, allowed }
}

/// Returns the name without a suffix `_ID` and digits.
fn kind_of(name: &str) -> &str {
    match name.rsplit_once("_ID") {
        Some((kind, digits)) if !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()) => {
            kind
        }
        _ => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_names_without_numbers() {
        assert_eq!(kind_of("bowtie2_ID0000003"), "bowtie2");
        assert_eq!(kind_of("bowtie2_ID"), "bowtie2_ID");
        assert_eq!(kind_of("a_ID12b"), "a_ID12b");
    }
}
