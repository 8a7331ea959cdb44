//! `[parameters.NAME]`: the domain of a parameter that a study file gives in place of the descriptor's.

use super::wording::{NUMBER, NUMBERS, SECTION, TEXT, fail, needed_number};
use super::{StudyError, StudyProblem};
use crate::distribution::Distribution;
use crate::domain_error::DomainError;
use crate::error::count;
use crate::operation::Registry;
use crate::parameter::{self, Domain, Parameter};
use crate::toml_fields::Section;
use crate::value::Value;
use crate::workflow::Workflow;

/// Keys of a parameter section that define a domain.
pub(super) const KEYS: [&str; 8] =
    ["range", "step", "values", "fixed", "distribution", "mean", "std", "mode"];

/// Reads `[parameters]`: the domains and defaults of a study in place of the workflow's.
pub(super) fn override_parameters(
    root: &Section<'_>,
    workflow: &mut Workflow,
    registry: &Registry,
) -> Result<(), StudyError> {
    let Some(section) = root.section("parameters", SECTION)? else { return Ok(()) };
    let known: Vec<String> = workflow.parameters.iter().map(|parameter| parameter.name.clone()).collect();
    section.allow(&known)?;
    for parameter in &mut workflow.parameters {
        let Some(section) = section.section(&parameter.name, SECTION)? else { continue };
        let keys: Vec<&str> = KEYS.into_iter().chain(["default"]).collect();
        section.allow(&keys)?;
        let value_type = parameter.value_type;
        parameter.domain = read(root, &section, parameter)?;
        if let Some(number) = section.number("default", NUMBER)? {
            match parameter::value_of(value_type, number) {
                Ok(value) => parameter.default = value,
                Err(error) => return fail(&section, "default", error),
            }
        }
        // A fixed parameter has this value in the reference evaluation too, and in tables that do not name it.
        if let Domain::Fixed { value } = parameter.domain {
            if section.number("default", NUMBER)?.is_some() && parameter.default != value {
                let given = parameter.default.to_string();
                return section.not_allowed(
                    "default",
                    &given,
                    &format!("{value}, the fixed value, or no default"),
                );
            }
            parameter.default = value;
        }
    }
    for (index, name) in known.iter().enumerate() {
        if let Some(section) = section.section(name, SECTION)? {
            check_accepted(&section, index, workflow, registry)?;
        }
    }
    Ok(())
}

/// Reads the domain of a parameter from its section. Without such keys returns the parameter's own domain. `root` is
/// the study file.
pub(super) fn read(
    root: &Section<'_>,
    section: &Section<'_>,
    parameter: &Parameter,
) -> Result<Domain, StudyError> {
    let value_type = parameter.value_type;
    let range = section.numbers("range", NUMBERS)?;
    let step = section.number("step", NUMBER)?;
    let values = section.numbers("values", NUMBERS)?;
    let fixed = section.number("fixed", NUMBER)?;
    if step.is_some() && range.is_none() {
        return fail(section, "step", StudyProblem::StepWithoutRange);
    }
    let range = match range.as_deref() {
        None => None,
        Some(&[low, high]) => Some([low, high]),
        Some(list) => {
            let value = format!("a list of {}", count(list.len(), "number"));
            return section.not_allowed("range", &value, "[smallest, largest]");
        }
    };
    let name = section.text("distribution", TEXT)?;
    if let Some(name) = name.filter(|name| *name != "uniform") {
        if values.is_some() || fixed.is_some() || step.is_some() {
            let alone = "no values, fixed or step beside it";
            return section.not_allowed("distribution", &format!("\"{name}\""), alone);
        }
        let distribution = distribution(section, name, range)?;
        return match Domain::distributed(value_type, distribution) {
            Ok(domain) => Ok(domain),
            Err(error) => fail(section, key_at_fault(&error), error),
        };
    }
    for key in ["mean", "std", "mode"] {
        if section.has(key) {
            return section.not_allowed(key, "this number", "one with a distribution that has it");
        }
    }
    let domain = match (range, values, fixed) {
        (Some(range), None, None) => Domain::stepped(value_type, range, step),
        (None, Some(values), None) => Domain::set(value_type, &values).map_err(|error| ("values", error)),
        (None, None, Some(number)) => Domain::fixed(value_type, number).map_err(|error| ("fixed", error)),
        (None, None, None) => Ok(parameter.domain.clone()),
        _ => return fail(root, &format!("parameters.{}", parameter.name), StudyProblem::DomainKind),
    };
    domain.or_else(|(field, error)| fail(section, field, error))
}

/// Returns the values that a section names, by their key: those of the domain, the largest first, and the default. Of a
/// distribution, returns the finite bounds.
pub(super) fn given_values(section: &Section<'_>, parameter: &Parameter) -> Vec<(&'static str, Vec<Value>)> {
    let value = |number: f64| Value::from_f64(number, parameter.value_type);
    let ends = |low: f64, high: f64| [high, low].into_iter().filter(|end| end.is_finite()).filter_map(value);
    let named: Vec<Value> = match &parameter.domain {
        Domain::Continuous { low, high } => ends(*low, *high).collect(),
        Domain::Distributed { distribution } => {
            let (low, high) = distribution.bounds();
            ends(low, high).collect()
        }
        // The ends of a range come first: the file contains them.
        Domain::Levels { values } => values.last().into_iter().chain(values).copied().collect(),
        Domain::Fixed { value } => vec![*value],
    };
    let key = ["fixed", "values", "range"].into_iter().find(|key| section.has(key));
    let named = key.map(|key| (key, named));
    let default = section.has("default").then(|| ("default", vec![parameter.default]));
    named.into_iter().chain(default).collect()
}

/// Rejects values of the parameter's section that an operation of the workflow does not accept, whether or not the
/// sample draws them. For a distribution, checks the finite bounds.
pub(super) fn check_accepted(
    section: &Section<'_>,
    index: usize,
    workflow: &Workflow,
    registry: &Registry,
) -> Result<(), StudyError> {
    let given = given_values(section, &workflow.parameters[index]);
    for stage in &workflow.stages {
        for task in &stage.tasks {
            let Some(operation) = registry.get(&task.operation, task.version) else { continue };
            let arguments = operation.arguments().iter().zip(stage.task_parameters(task));
            for (argument, _) in arguments.filter(|(_, of)| *of == index) {
                for (key, values) in &given {
                    if let Some(value) = values.iter().find(|value| !argument.accepts.contains(**value)) {
                        let allowed = format!("{} (operation {})", argument.accepts, operation.name());
                        return section.not_allowed(key, &value.to_string(), &allowed);
                    }
                }
            }
        }
    }
    Ok(())
}

/// Reads the distribution of this name from its keys.
fn distribution(
    section: &Section<'_>,
    name: &str,
    range: Option<[f64; 2]>,
) -> Result<Distribution, StudyError> {
    let number = |key: &str| needed_number(section, key);
    let bounds = || section.needed("range", range, "[smallest, largest]");
    let foreign = |keys: &[&str]| -> Result<(), StudyError> {
        match keys.iter().find(|key| section.has(key)) {
            Some(key) => section.not_allowed(key, "this key", &format!("none with distribution \"{name}\"")),
            None => Ok(()),
        }
    };
    match name {
        "log-uniform" => {
            foreign(&["mean", "std", "mode"])?;
            let [low, high] = bounds()?;
            Ok(Distribution::LogUniform { low, high })
        }
        "normal" => {
            foreign(&["range", "mode"])?;
            Ok(Distribution::Normal { mean: number("mean")?, deviation: number("std")? })
        }
        "log-normal" => {
            foreign(&["range", "mode"])?;
            Ok(Distribution::LogNormal { mean: number("mean")?, deviation: number("std")? })
        }
        "truncated-normal" => {
            foreign(&["mode"])?;
            let [low, high] = bounds()?;
            let (mean, deviation) = (number("mean")?, number("std")?);
            Ok(Distribution::TruncatedNormal { mean, deviation, low, high })
        }
        "triangular" => {
            foreign(&["mean", "std"])?;
            let [low, high] = bounds()?;
            Ok(Distribution::Triangular { low, mode: number("mode")?, high })
        }
        other => {
            let known: Vec<String> = Distribution::NAMES.iter().map(|name| format!("\"{name}\"")).collect();
            section.not_allowed("distribution", &format!("\"{other}\""), &known.join(", "))
        }
    }
}

fn key_at_fault(error: &DomainError) -> &'static str {
    match error {
        DomainError::EmptyRange { .. }
        | DomainError::NotPositive { .. }
        | DomainError::FarFromMean { .. } => "range",
        DomainError::BadDeviation { .. } => "std",
        DomainError::BadMode { .. } => "mode",
        _ => "distribution",
    }
}
