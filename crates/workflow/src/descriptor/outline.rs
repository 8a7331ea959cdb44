//! Uses of operations in descriptors, read without the operations.
//!
//! A workflow of another program names operations that this program lacks. Its outline lists them with the regions and
//! arguments that they need.

use super::{
    EntryDescriptor, Files, ParameterDescriptor, StageDescriptor, TaskDescriptor, WorkflowDescriptor,
};
use crate::error::DescriptorError;
use crate::text;
use crate::value::ValueType;
use pleach_regions::ElementType;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// A task's use of an operation.
#[derive(Clone, Debug, PartialEq)]
pub struct OperationUse {
    /// The stage file.
    pub file: PathBuf,
    /// JSON pointer to the task in the file.
    pub pointer: String,
    /// Name of the stage.
    pub stage: String,
    /// Name of the task.
    pub task: String,
    /// Description of the task.
    pub description: String,
    /// Name of the operation.
    pub operation: String,
    /// Version of the operation.
    pub version: u32,
    /// Arguments, in the order of the file.
    pub arguments: Vec<ArgumentUse>,
    /// Regions that the task reads.
    pub reads: Vec<RegionUse>,
    /// Regions that the task writes.
    pub writes: Vec<RegionUse>,
}

/// An argument that a task passes.
#[derive(Clone, Debug, PartialEq)]
pub struct ArgumentUse {
    /// Name of the argument.
    pub name: String,
    /// Type of the parameter. `None` if no descriptor defines it.
    pub value_type: Option<ValueType>,
    /// Smallest and largest value of the parameter, its default included. `None` if no descriptor has values.
    pub bounds: Option<[f64; 2]>,
}

/// A region of a task.
#[derive(Clone, Debug, PartialEq)]
pub struct RegionUse {
    /// Name of the region.
    pub name: String,
    /// Element type that the stage declares. `None` for a region within the stage.
    pub element: Option<ElementType>,
}

/// Returns the uses of operations in a workflow file, or in a stage file. Tasks of loops and choices are included once.
///
/// # Errors
/// [`DescriptorError`] if a file cannot be read or does not have the form of its descriptor.
pub fn operation_uses(file: &Path) -> Result<Vec<OperationUse>, DescriptorError> {
    let mut outline = Outline::default();
    if is_stage(file) {
        outline.add_stage(file)?;
    } else {
        let workflow: WorkflowDescriptor = Files::Disk.parse(file)?;
        let folder = file.parent().unwrap_or(Path::new(""));
        for entry in &workflow.stages {
            outline.add_stage(&folder.join(&entry.descriptor))?;
        }
    }
    Ok(outline.uses)
}

/// Returns whether the file is a stage descriptor. An unreadable file counts as a workflow, whose check reports the
/// cause.
#[must_use]
pub fn is_stage(file: &Path) -> bool {
    let text = text::read(file).unwrap_or_default();
    let document: Option<serde_json::Value> = serde_json::from_str(&text).ok();
    document.is_some_and(|document| document.get("stage").is_some())
}

#[derive(Default)]
struct Outline {
    uses: Vec<OperationUse>,
    /// Type and bounds of each parameter, from its definition.
    parameters: BTreeMap<String, (Option<ValueType>, Option<[f64; 2]>)>,
}

impl Outline {
    fn add_stage(&mut self, file: &Path) -> Result<(), DescriptorError> {
        let stage: StageDescriptor = Files::Disk.parse(file)?;
        self.add_tasks(file, &stage, "/tasks", &stage.tasks);
        Ok(())
    }

    fn add_tasks(&mut self, file: &Path, stage: &StageDescriptor, at: &str, entries: &[EntryDescriptor]) {
        for (number, entry) in entries.iter().enumerate() {
            let pointer = format!("{at}/{number}");
            match entry {
                EntryDescriptor::Task(task) => self.add_task(file, stage, pointer, task),
                EntryDescriptor::Loop(of) => {
                    self.add_tasks(file, stage, &format!("{pointer}/tasks"), &of.tasks);
                }
                EntryDescriptor::Choice(of) => {
                    self.add_tasks(file, stage, &format!("{pointer}/then"), &of.then);
                    self.add_tasks(file, stage, &format!("{pointer}/else"), &of.otherwise);
                }
            }
        }
    }

    fn add_task(&mut self, file: &Path, stage: &StageDescriptor, pointer: String, task: &TaskDescriptor) {
        let inputs = stage.inputs.iter().map(|region| (&region.region, region.element));
        let outputs = stage.outputs.iter().map(|region| (&region.region, region.element));
        let declared: Vec<_> = inputs.chain(outputs).collect();
        let element = |name: &String| declared.iter().find(|(known, _)| *known == name).map(|(_, of)| *of);
        let region = |name: &String| RegionUse { name: name.clone(), element: element(name) };
        let arguments = task.parameters.iter().map(|parameter| self.argument(parameter)).collect();
        self.uses.push(OperationUse {
            file: file.to_owned(),
            pointer,
            stage: stage.stage.clone(),
            task: task.task.clone(),
            description: task.description.clone(),
            operation: task.operation.clone(),
            version: task.version,
            arguments,
            reads: task.reads.iter().map(region).collect(),
            writes: task.writes.iter().map(region).collect(),
        });
    }

    fn argument(&mut self, parameter: &ParameterDescriptor) -> ArgumentUse {
        let name = parameter.argument.as_ref().unwrap_or(&parameter.name).clone();
        if parameter.value_type.is_some() {
            let values = parameter.range.iter().chain(&parameter.values).flatten();
            let numbers = values.chain(&parameter.fixed).chain(&parameter.default).copied();
            let bounds = numbers.fold(None, |bounds: Option<[f64; 2]>, number| {
                let [low, high] = bounds.unwrap_or([number; 2]);
                Some([low.min(number), high.max(number)])
            });
            self.parameters.insert(parameter.name.clone(), (parameter.value_type, bounds));
        }
        let (value_type, bounds) = self.parameters.get(&parameter.name).copied().unwrap_or_default();
        ArgumentUse { name, value_type, bounds }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAGE: &str = r#"{
      "stage": "s", "inputs": [{ "region": "tile", "type": "bgr8" }], "outputs": [{ "region": "out", "type": "table" }],
      "tasks": [
        { "task": "a", "operation": "x.a", "version": 2, "reads": ["tile"], "writes": ["mid"],
          "parameters": [{ "name": "level", "argument": "l", "type": "real", "default": 9, "range": [1, 4] }] },
        { "choice": "c", "if": { "region": "mid", "below": 1 }, "then": [], "gives": [],
          "else": [{ "task": "b", "operation": "x.b", "version": 1, "reads": ["mid"], "writes": ["out"],
                     "parameters": [{ "name": "level" }, { "name": "other" }] }] }
      ] }"#;

    #[test]
    fn uses_have_types_and_bounds_of_definitions() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("stage.json");
        std::fs::write(&file, STAGE).unwrap();
        let uses = operation_uses(&file).unwrap();
        let pointers: Vec<_> = uses.iter().map(|of| (of.pointer.as_str(), of.operation.as_str())).collect();
        assert_eq!(pointers, [("/tasks/0", "x.a"), ("/tasks/1/else/0", "x.b")]);
        let level = |name: &str| ArgumentUse {
            name: name.to_owned(),
            value_type: Some(ValueType::Real),
            bounds: Some([1.0, 9.0]),
        };
        let other = ArgumentUse { name: "other".to_owned(), value_type: None, bounds: None };
        assert_eq!(uses[0].arguments, [level("l")]);
        assert_eq!(uses[1].arguments, [level("level"), other]);
        let region = |name: &str, element| RegionUse { name: name.to_owned(), element };
        assert_eq!(uses[0].reads, [region("tile", Some(ElementType::Bgr8))]);
        assert_eq!(uses[0].writes, [region("mid", None)]);
        assert_eq!(uses[1].writes, [region("out", Some(ElementType::Table))]);
    }
}
