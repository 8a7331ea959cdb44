//! Reads stage descriptors of the region templates framework: the input of its code generator.
//!
//! Source: "Multi-level computation reuse for sensitivity analysis" (thesis), Figure 3.3. The framework's own files spell
//! `intertask_args` as `interstage_args`. Both are read.

use super::call::{call_names, operation_name, with_map};
use super::draft::{DomainDraft, ParameterDraft, RegionDraft, StageDraft, TaskDraft};
use super::error::{Place, WorkflowImportError, WorkflowImportProblem, failed};
use super::map::{WorkflowMap, parse_json};
use pleach_regions::ElementType;
use pleach_workflow::{Registry, ValueType};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Numbers of a `float_array` whose length no file gives: the framework's arrays have one number per color channel.
const ARRAY_LENGTH: usize = 3;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a stage descriptor")]
struct Descriptor {
    name: String,
    /// Code for the C++ compiler.
    #[serde(default, rename = "includes")]
    _includes: Option<String>,
    #[serde(default)]
    dr_args: Vec<Argument>,
    #[serde(default)]
    tasks: Vec<Task>,
    #[serde(default)]
    call: Option<String>,
    #[serde(default)]
    args: Vec<Argument>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a task object")]
struct Task {
    call: String,
    #[serde(default)]
    args: Vec<Argument>,
    #[serde(default, alias = "intertask_args")]
    interstage_args: Vec<TaskRegion>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "an argument object")]
struct Argument {
    name: String,
    #[serde(rename = "type")]
    kind: ArgumentKind,
    #[serde(default)]
    io: Option<Direction>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum ArgumentKind {
    Dr,
    Uchar,
    Int,
    Float,
    Double,
    FloatArray,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a region object")]
struct TaskRegion {
    name: String,
    #[serde(rename = "type")]
    _kind: MatKind,
    io: Direction,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum MatKind {
    Mat,
    MatVect,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Direction {
    Input,
    Output,
    Forward,
}

/// A stage of a descriptor, with remarks for the user.
#[derive(Debug)]
pub(crate) struct ImportedStage {
    pub(crate) stage: StageDraft,
    pub(crate) notes: Vec<String>,
    /// Names of the calls, for messages.
    pub(crate) calls: Vec<String>,
}

/// Returns whether a JSON document has the keys of a descriptor.
pub(crate) fn is_descriptor(text: &str) -> bool {
    let document: Option<serde_json::Value> = serde_json::from_str(text).ok();
    document
        .is_some_and(|document| ["tasks", "call", "dr_args"].iter().any(|key| document.get(key).is_some()))
}

/// Reads a descriptor. `lengths` are the known lengths of arrays.
pub(crate) fn import(
    file: &Path,
    text: &str,
    map: &WorkflowMap,
    registry: &Registry,
    lengths: &BTreeMap<String, usize>,
) -> Result<ImportedStage, WorkflowImportError> {
    let descriptor: Descriptor = parse_json(file, text)?;
    let Descriptor { name, dr_args, mut tasks, call, args, .. } = descriptor;
    let mut interface = dr_args;
    match call {
        Some(call) if tasks.is_empty() => tasks.push(Task { call, args, interstage_args: Vec::new() }),
        None if !tasks.is_empty() && args.is_empty() => {}
        _ => {
            let problem =
                "\"tasks\", or \"call\" with \"args\", is allowed; one of them is needed".to_owned();
            return Err(failed(file, Place::File, WorkflowImportProblem::Malformed(problem)));
        }
    }
    if interface.is_empty() {
        let all = tasks.iter().flat_map(|task| &task.args);
        let regions = all.filter(|argument| argument.kind == ArgumentKind::Dr);
        let copy = |of: &Argument| Argument { name: of.name.clone(), kind: of.kind, io: of.io };
        interface = regions.map(copy).collect();
    }
    let mut reader = Reader { file, map, lengths, types: BTreeMap::new(), notes: Vec::new() };
    let mut drafts = Vec::new();
    for (number, task) in tasks.iter().enumerate() {
        drafts.push(reader.task(number, task, &drafts)?);
    }
    let calls = tasks.iter().flat_map(|task| call_names(&task.call)).collect();
    let (inputs, outputs) = reader.interface(&interface, &drafts, registry)?;
    reader.check_reads(&inputs, &drafts)?;
    let description = format!("Imported from the descriptor {}", file_name(file));
    let stage = StageDraft { name, description, inputs, outputs, tasks: drafts };
    Ok(ImportedStage { stage, notes: reader.notes, calls })
}

/// Inputs and outputs of a stage.
type Interface = (Vec<RegionDraft>, Vec<RegionDraft>);

fn file_name(file: &Path) -> String {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    name.chars().filter(|letter| !letter.is_control()).collect()
}

struct Reader<'a> {
    file: &'a Path,
    map: &'a WorkflowMap,
    lengths: &'a BTreeMap<String, usize>,
    /// Type of each argument, from its first use.
    types: BTreeMap<String, ArgumentKind>,
    notes: Vec<String>,
}

impl Reader<'_> {
    fn fail<T>(&self, field: String, message: impl Into<String>) -> Result<T, WorkflowImportError> {
        let problem = WorkflowImportProblem::Malformed(message.into());
        Err(failed(self.file, Place::Field(field), problem))
    }

    fn task(
        &mut self,
        number: usize,
        task: &Task,
        before: &[TaskDraft],
    ) -> Result<TaskDraft, WorkflowImportError> {
        let (mut reads, mut writes, mut parameters) = (Vec::new(), Vec::new(), Vec::new());
        for (place, argument) in task.args.iter().enumerate() {
            let field = || format!("tasks[{number}].args[{place}]");
            if argument.kind == ArgumentKind::Dr {
                match argument.io {
                    Some(Direction::Input) => reads.push(argument.name.clone()),
                    Some(Direction::Output) => writes.push(argument.name.clone()),
                    _ => return self.fail(field(), "a region needs \"io\": \"input\" or \"output\""),
                }
            } else {
                let known = *self.types.entry(argument.name.clone()).or_insert(argument.kind);
                if known != argument.kind {
                    let message = format!("\"{}\" has two types; one is allowed", argument.name);
                    return self.fail(field(), message);
                }
                parameters.extend(self.parameters(argument));
            }
        }
        for region in &task.interstage_args {
            match region.io {
                Direction::Input => reads.push(region.name.clone()),
                Direction::Output => writes.push(region.name.clone()),
                // Passed on to a later task, which names it as its input.
                Direction::Forward => {}
            }
        }
        let names = call_names(&task.call);
        let own = names.last().cloned().unwrap_or_default();
        let is_taken = |name: &String| before.iter().any(|other| other.name == *name);
        let name = if is_taken(&own) { format!("{own}-{}", number + 1) } else { own };
        let draft = TaskDraft {
            name,
            description: format!("Call of {}", task.call.trim()),
            operation: operation_name(&task.call),
            version: 1,
            parameters,
            reads,
            writes,
        };
        Ok(with_map(draft, self.map.call(&names).as_ref()))
    }

    /// Returns the parameters of an argument: one, or one for each number of an array.
    fn parameters(&mut self, argument: &Argument) -> Vec<ParameterDraft> {
        let (value_type, domain) = match argument.kind {
            ArgumentKind::Uchar => (ValueType::Integer, Some(DomainDraft::Range(vec![0.0, 255.0], None))),
            ArgumentKind::Int => (ValueType::Integer, None),
            _ => (ValueType::Real, None),
        };
        let draft = |name: String, argument| {
            let draft = ParameterDraft { name, argument, value_type, default: None, domain: domain.clone() };
            draft.with_map(self.map)
        };
        let drafts: Vec<ParameterDraft> = if argument.kind == ArgumentKind::FloatArray {
            let length = self.lengths.get(&argument.name).copied();
            let array = &argument.name;
            let number = |place| draft(format!("{array}.{place}"), Some(format!("{array}_{place}")));
            (0..length.unwrap_or(ARRAY_LENGTH)).map(number).collect()
        } else {
            vec![draft(argument.name.clone(), None)]
        };
        if argument.kind == ArgumentKind::FloatArray && !self.lengths.contains_key(&argument.name) {
            self.notes
                .push(format!("{}: {ARRAY_LENGTH} numbers assumed; the file has no length", argument.name));
        }
        drafts
    }

    /// Returns inputs and outputs of the stage.
    fn interface(
        &mut self,
        regions: &[Argument],
        tasks: &[TaskDraft],
        registry: &Registry,
    ) -> Result<Interface, WorkflowImportError> {
        let (mut inputs, mut outputs) = (Vec::new(), Vec::new());
        let mut seen = BTreeSet::new();
        for (place, region) in regions.iter().enumerate() {
            if !seen.insert(&region.name) {
                continue;
            }
            let field = format!("dr_args[{place}]");
            if region.kind != ArgumentKind::Dr {
                return self.fail(field, "only type \"dr\" is allowed here");
            }
            let is_input = match region.io {
                Some(Direction::Input) => true,
                Some(Direction::Output) => false,
                _ => return self.fail(field, "a region needs \"io\": \"input\" or \"output\""),
            };
            let known = tasks.iter().find_map(|task| task.port_type(&region.name, registry));
            let assumed = if is_input { ElementType::Bgr8 } else { ElementType::Mask };
            let element = self.map.region(&region.name).or(known).unwrap_or_else(|| {
                let text =
                    format!("{}: type {} assumed; --map may give another", region.name, assumed.name());
                self.notes.push(text);
                assumed
            });
            let list = if is_input { &mut inputs } else { &mut outputs };
            list.push((region.name.clone(), element));
        }
        Ok((inputs, outputs))
    }

    /// Rejects a region that no earlier task writes.
    fn check_reads(&self, inputs: &[RegionDraft], tasks: &[TaskDraft]) -> Result<(), WorkflowImportError> {
        let mut written: Vec<&String> = inputs.iter().map(|(name, _)| name).collect();
        for (number, task) in tasks.iter().enumerate() {
            if let Some(name) = task.reads.iter().find(|name| !written.contains(name)) {
                let known = written.iter().map(|name| name.as_str()).collect::<Vec<_>>().join(", ");
                let message = format!("region \"{name}\" has no earlier writer; known are {known}");
                return self.fail(format!("tasks[{number}]"), message);
            }
            written.extend(&task.writes);
        }
        Ok(())
    }
}
