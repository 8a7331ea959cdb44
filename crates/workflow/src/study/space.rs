//! Parameters and method of a study file: the input of sampling and of response analysis.
//!
//! The file is that of a study, or one without a workflow that declares its parameters in `[parameters.NAME]`.
//! Images and other keys of a run are ignored. The method validates its keys.

mod program;

pub use program::ProgramParameter;

use super::header::load_workflow;
use super::wording::{NUMBER, SECTION, SWITCH, TEXT, fail, needed_section};
use super::{StudyError, domain, switches};
use crate::DescriptorError;
use crate::operation::Registry;
use crate::parameter::{self, Domain, Parameter};
use crate::toml_fields::{Document, Section};
use crate::value::{Value, ValueType};
use crate::workflow::{Aggregate, Workflow};
use std::path::Path;

/// Parameters and their method.
#[derive(Clone, Debug, PartialEq)]
pub struct ParameterSpace {
    /// Seed of all random numbers.
    pub seed: u64,
    /// The parameters, varying or not.
    pub parameters: Vec<Parameter>,
    /// Group of each parameter. `None` if no parameter has a group.
    pub groups: Option<Vec<String>>,
    /// Method section of the file.
    pub method: MethodSpec,
    /// Responses that the workflow measures, with their aggregation over tiles. Empty without a workflow.
    pub metrics: Vec<(String, Aggregate)>,
}

/// The keys of a method of any kind, as given in the file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MethodSpec {
    /// The method.
    pub kind: Option<String>,
    /// Sampler of the points.
    pub sampler: Option<String>,
    /// Sampler of the base points of a design.
    pub base: Option<String>,
    /// Points, base samples, or evaluations of a curve.
    pub samples: Option<u64>,
    /// Trajectories.
    pub trajectories: Option<u64>,
    /// Levels of a trajectory's parameters, or of a grid.
    pub levels: Option<u64>,
    /// Number of candidate trajectories.
    pub candidates: Option<u64>,
    /// Whether the design has rows for second-order indices.
    pub second_order: Option<bool>,
    /// Estimator of the indices.
    pub estimator: Option<String>,
    /// Slices of a parameter's values.
    pub slices: Option<u64>,
    /// Number of separated harmonics.
    pub harmonics: Option<u64>,
    /// Bootstrap resamples.
    pub resamples: Option<u64>,
    /// Table of parameter sets. Only a study run uses it.
    pub file: Option<String>,
}

impl MethodSpec {
    /// Keys of a method, in the order of the fields.
    pub const KEYS: [&'static str; 13] = [
        "kind",
        "sampler",
        "base",
        "samples",
        "trajectories",
        "levels",
        "candidates",
        "second_order",
        "estimator",
        "slices",
        "harmonics",
        "resamples",
        "file",
    ];

    /// Returns the given keys.
    #[must_use]
    pub fn given(&self) -> Vec<&'static str> {
        let is_given = [
            self.kind.is_some(),
            self.sampler.is_some(),
            self.base.is_some(),
            self.samples.is_some(),
            self.trajectories.is_some(),
            self.levels.is_some(),
            self.candidates.is_some(),
            self.second_order.is_some(),
            self.estimator.is_some(),
            self.slices.is_some(),
            self.harmonics.is_some(),
            self.resamples.is_some(),
            self.file.is_some(),
        ];
        Self::KEYS.into_iter().zip(is_given).filter_map(|(key, given)| given.then_some(key)).collect()
    }

    fn read(section: &Section<'_>) -> Result<Self, StudyError> {
        // Only the study handles the growth of a sample.
        let known: Vec<&str> = Self::KEYS.into_iter().chain(["until"]).collect();
        section.allow(&known)?;
        let text = |key| Ok::<_, StudyError>(section.text(key, TEXT)?.map(str::to_owned));
        // The method checks the values of numbers.
        let number = |key| section.integer(key, 0, u64::from(u32::MAX));
        Ok(Self {
            kind: text("kind")?,
            sampler: text("sampler")?,
            base: text("base")?,
            samples: number("samples")?,
            trajectories: number("trajectories")?,
            levels: number("levels")?,
            candidates: number("candidates")?,
            second_order: section.boolean("second_order", SWITCH)?,
            estimator: text("estimator")?,
            slices: number("slices")?,
            harmonics: number("harmonics")?,
            resamples: number("resamples")?,
            file: text("file")?,
        })
    }
}

impl ParameterSpace {
    /// Reads a study file. `builtin` finds the program's built-in workflows by name.
    ///
    /// # Errors
    /// Returns the first [`StudyError`] found in the keys read.
    pub fn load(
        file: &Path,
        registry: &Registry,
        builtin: impl Fn(&str) -> Option<Result<Workflow, DescriptorError>>,
        builtin_names: &[&str],
    ) -> Result<Self, StudyError> {
        let document = Document::read(file)?;
        let root = document.root();
        if root.has("phase") {
            return root.not_allowed("phase", "a list of phases", "one [method], for a sample of its own");
        }
        let study = root.section("study", SECTION)?;
        if let Some(study) = &study {
            study.allow(&["name", "workflow", "seed", "durability"])?;
        }
        let seed = study.as_ref().map_or(Ok(None), |study| study.integer("seed", 0, u64::MAX))?.unwrap_or(0);
        let method = match root.section("method", SECTION)? {
            Some(method) => MethodSpec::read(&method)?,
            None => MethodSpec::default(),
        };
        let Some(study) = study.filter(|study| study.has("workflow")) else {
            root.allow(&["study", "method", "parameters"])?;
            let (parameters, groups) = own_parameters(&root)?;
            return Ok(Self { seed, parameters, groups, method, metrics: Vec::new() });
        };
        let workflow = load_workflow(&study, registry, builtin, builtin_names)?;
        let metrics = metrics(&workflow);
        let off = match root.section("input", SECTION)? {
            Some(input) => switches(&input, &workflow)?,
            None => Vec::new(),
        };
        let mut workflow = workflow.without(&off);
        if root.has("response") {
            (workflow, _) = super::metrics(&root, &workflow, &[], registry)?;
        }
        domain::override_parameters(&root, &mut workflow, registry)?;
        Ok(Self { seed, parameters: workflow.parameters, groups: None, method, metrics })
    }
}

fn metrics(workflow: &Workflow) -> Vec<(String, Aggregate)> {
    let responses = std::iter::once(&workflow.response).chain(&workflow.alternatives);
    responses.flat_map(|response| response.metrics.iter().cloned()).collect()
}

/// Reads the parameters of a file without a workflow from their sections.
fn own_parameters(root: &Section<'_>) -> Result<(Vec<Parameter>, Option<Vec<String>>), StudyError> {
    let section = needed_section(root, "parameters")?;
    let names: Vec<String> = section.keys().map(str::to_owned).collect();
    if names.is_empty() {
        return root.missing("parameters", "a section [parameters.NAME] for each");
    }
    let (mut parameters, mut groups) = (Vec::with_capacity(names.len()), Vec::with_capacity(names.len()));
    for name in names {
        let section = needed_section(&section, &name)?;
        let value_type = value_type(&section)?.unwrap_or(ValueType::Real);
        let (parameter, group) = own_parameter(root, &section, &name, value_type, None)?;
        groups.push(group);
        parameters.push(parameter);
    }
    let groups = labels(groups, &parameters);
    Ok((parameters, groups))
}

/// Reads the type of a parameter. `None` without the key.
fn value_type(section: &Section<'_>) -> Result<Option<ValueType>, StudyError> {
    match section.text("type", TEXT)? {
        None => Ok(None),
        Some("real") => Ok(Some(ValueType::Real)),
        Some("integer") => Ok(Some(ValueType::Integer)),
        Some(other) => section.not_allowed("type", &format!("\"{other}\""), "\"real\", \"integer\""),
    }
}

/// Reads a parameter from its section, and its group. Without a default in the file, the parameter has `default`, or the
/// middle of its domain.
fn own_parameter(
    root: &Section<'_>,
    section: &Section<'_>,
    name: &str,
    value_type: ValueType,
    default: Option<Value>,
) -> Result<(Parameter, Option<String>), StudyError> {
    let keys: Vec<&str> = domain::KEYS.into_iter().chain(["default", "type", "group"]).collect();
    section.allow(&keys)?;
    if !["range", "values", "fixed", "distribution"].iter().any(|key| section.has(key)) {
        let wanted = "one of range, values, fixed and distribution";
        return root.missing(&format!("parameters.{name}"), wanted);
    }
    let unknown = Domain::Levels { values: Vec::new() };
    let unnamed = Value::from_f64(0.0, value_type).unwrap_or(Value::Integer(0));
    let mut parameter = Parameter { name: name.to_owned(), value_type, default: unnamed, domain: unknown };
    parameter.domain = domain::read(root, section, &parameter)?;
    parameter.default = match section.number("default", NUMBER)? {
        Some(number) => match parameter::value_of(value_type, number) {
            Ok(value) => value,
            Err(error) => return fail(section, "default", error),
        },
        None => default.or_else(|| middle(&parameter.domain)).unwrap_or(unnamed),
    };
    let group = section.text("group", TEXT)?.map(str::to_owned);
    Ok((parameter, group))
}

/// Returns the group of each parameter. A parameter without one has a group of its own name. `None` if no parameter has a
/// group.
fn labels(groups: Vec<Option<String>>, parameters: &[Parameter]) -> Option<Vec<String>> {
    let is_grouped = groups.iter().any(Option::is_some);
    let labels = groups.into_iter().zip(parameters).map(|(group, p)| group.unwrap_or_else(|| p.name.clone()));
    is_grouped.then(|| labels.collect())
}

/// Returns the default of a parameter without a default in the file.
fn middle(domain: &Domain) -> Option<Value> {
    match domain {
        Domain::Fixed { value } => Some(*value),
        Domain::Levels { values } => values.get(values.len().saturating_sub(1) / 2).copied(),
        Domain::Continuous { low, high } => Value::from_f64(f64::midpoint(*low, *high), ValueType::Real),
        Domain::Distributed { distribution } => {
            let (low, high) = distribution.bounds();
            let middle = match distribution {
                crate::Distribution::Normal { mean, .. } => *mean,
                crate::Distribution::LogNormal { mean, .. } => mean.exp(),
                _ => f64::midpoint(low, high),
            };
            Value::from_f64(middle, ValueType::Real)
        }
    }
}
