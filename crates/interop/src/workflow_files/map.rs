//! The file of `--map`: operations for calls, types of regions, and domains of parameters that a workflow of another program
//! lacks.

use super::error::{Place, WorkflowImportError, WorkflowImportProblem, failed};
use pleach_regions::ElementType;
use pleach_workflow::{ValueType, text};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// A map, with the entries that an import has used.
#[derive(Debug, Default)]
pub struct WorkflowMap {
    /// The file. Empty for no map.
    file: PathBuf,
    written: WrittenMap,
    used: RefCell<BTreeSet<(&'static str, String)>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a map object")]
struct WrittenMap {
    #[serde(default)]
    calls: BTreeMap<String, WrittenCall>,
    #[serde(default)]
    regions: BTreeMap<String, ElementType>,
    #[serde(default)]
    reference: Option<MappedReference>,
    #[serde(default)]
    parameters: BTreeMap<String, MappedParameter>,
    #[serde(default)]
    responses: BTreeMap<String, Vec<String>>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged, expecting = "the name of an operation, or an object with its keys")]
enum WrittenCall {
    Name(String),
    Call(MappedCall),
}

/// The operation of a call.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a call object")]
pub(crate) struct MappedCall {
    /// Name of the operation.
    #[serde(default)]
    pub(crate) operation: Option<String>,
    /// Version of the operation. 1 if missing.
    #[serde(default)]
    pub(crate) version: Option<u32>,
    /// Argument of the operation for each parameter of the call. `None` drops the parameter.
    #[serde(default)]
    pub(crate) arguments: BTreeMap<String, Option<String>>,
    /// Regions that the operation reads, instead of those of the call.
    #[serde(default)]
    pub(crate) reads: Option<Vec<String>>,
    /// Regions that the operation writes, instead of those of the call.
    #[serde(default)]
    pub(crate) writes: Option<Vec<String>>,
    /// Stage descriptor of the thesis with the tasks of a Taverna processor, relative to the map.
    #[serde(default)]
    pub(crate) descriptor: Option<PathBuf>,
}

/// The workflow's reference.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a reference object")]
pub(crate) struct MappedReference {
    /// Input of the imported workflow.
    pub(crate) region: String,
    /// Output of a stage that replaces it at default values.
    pub(crate) output: String,
}

/// Type, default and domain of a parameter.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a parameter object")]
pub(crate) struct MappedParameter {
    #[serde(default, rename = "type")]
    pub(crate) value_type: Option<ValueType>,
    #[serde(default)]
    pub(crate) default: Option<f64>,
    #[serde(default)]
    pub(crate) range: Option<Vec<f64>>,
    #[serde(default)]
    pub(crate) step: Option<f64>,
    #[serde(default)]
    pub(crate) values: Option<Vec<f64>>,
    #[serde(default)]
    pub(crate) fixed: Option<f64>,
}

/// Parses JSON. The error has the path of the value.
pub(crate) fn parse_json<T: DeserializeOwned>(file: &Path, text: &str) -> Result<T, WorkflowImportError> {
    let malformed = |place, message: String| {
        let message = message.lines().collect::<Vec<_>>().join(" ");
        failed(file, place, WorkflowImportProblem::Malformed(message))
    };
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let value = serde_path_to_error::deserialize(&mut deserializer).map_err(|error| {
        let path = error.path().to_string();
        let place = if path == "." { Place::File } else { Place::Field(path) };
        malformed(place, error.inner().to_string())
    })?;
    deserializer.end().map_err(|error| malformed(Place::File, error.to_string()))?;
    Ok(value)
}

/// Reads a text file.
pub(crate) fn read(file: &Path) -> Result<String, WorkflowImportError> {
    text::read(file).map_err(|error| failed(file, Place::File, WorkflowImportProblem::Unreadable(error)))
}

impl WorkflowMap {
    /// Reads a map.
    ///
    /// # Errors
    /// [`WorkflowImportError`] with the path of the value.
    pub fn load(file: &Path) -> Result<Self, WorkflowImportError> {
        let written = parse_json(file, &read(file)?)?;
        Ok(Self { file: file.to_owned(), written, used: RefCell::default() })
    }

    fn mark(&self, section: &'static str, name: &str) {
        self.used.borrow_mut().insert((section, name.to_owned()));
    }

    /// Returns the operation of a call that has one of these names.
    pub(crate) fn call(&self, names: &[String]) -> Option<MappedCall> {
        let name = names.iter().find(|name| self.written.calls.contains_key(*name))?;
        self.mark("calls", name);
        Some(match &self.written.calls[name] {
            WrittenCall::Name(operation) => {
                MappedCall { operation: Some(operation.clone()), ..MappedCall::default() }
            }
            WrittenCall::Call(call) => call.clone(),
        })
    }

    /// Returns the path of a file that the map names.
    pub(crate) fn path(&self, named: &Path) -> PathBuf {
        self.file.parent().unwrap_or(Path::new("")).join(named)
    }

    /// Returns the type of a region.
    pub(crate) fn region(&self, name: &str) -> Option<ElementType> {
        let element = self.written.regions.get(name)?;
        self.mark("regions", name);
        Some(*element)
    }

    /// Returns the workflow's reference.
    pub(crate) fn reference(&self) -> Option<&MappedReference> {
        self.written.reference.as_ref()
    }

    /// Returns the definition of a parameter.
    pub(crate) fn parameter(&self, name: &str) -> Option<&MappedParameter> {
        let parameter = self.written.parameters.get(name)?;
        self.mark("parameters", name);
        Some(parameter)
    }

    /// Returns the metrics of a response.
    pub(crate) fn metrics(&self, name: &str) -> Option<&[String]> {
        let metrics = self.written.responses.get(name)?;
        self.mark("responses", name);
        Some(metrics)
    }

    /// Rejects an entry that the import has not used: it is probably misspelled. `known` are the names of each section.
    pub(crate) fn end(&self, known: &[(&'static str, Vec<String>)]) -> Result<(), WorkflowImportError> {
        let used = self.used.borrow();
        let written = &self.written;
        for (section, known) in known {
            let names: Vec<&String> = match *section {
                "calls" => written.calls.keys().collect(),
                "regions" => written.regions.keys().collect(),
                "parameters" => written.parameters.keys().collect(),
                _ => written.responses.keys().collect(),
            };
            if let Some(name) = names.into_iter().find(|name| !used.contains(&(*section, (*name).clone()))) {
                let (name, known) = (name.clone(), known.clone());
                let problem = WorkflowImportProblem::Unused { section, name, known };
                return Err(failed(&self.file, Place::File, problem));
            }
        }
        Ok(())
    }
}
