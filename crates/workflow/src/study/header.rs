//! Reads the section `[study]`: name, workflow, seed, durability and retained regions.

use super::wording::{TEXT, needed_section};
use super::{Durability, StudyError};
use crate::error::DescriptorError;
use crate::operation::Registry;
use crate::toml_fields::Section;
use crate::workflow::Workflow;
use pleach_regions::ElementType;
use std::collections::BTreeSet;
use toml::Value;

/// Key of the retained outputs.
const RETAIN: &str = "retain";

/// Allowed values of the retained outputs.
const NAMES: &str = "a list of outputs as \"STAGE.OUTPUT\"";

/// Fields of the section `[study]`.
pub(super) struct Header {
    pub(super) name: String,
    pub(super) seed: u64,
    pub(super) durable: Durability,
    /// Names of the retained outputs, as STAGE.OUTPUT.
    pub(super) retained: Vec<String>,
    pub(super) workflow: Workflow,
}

/// Reads the section. `builtin` finds the workflows embedded in the program, by name.
pub(super) fn read(
    root: &Section<'_>,
    registry: &Registry,
    builtin: impl Fn(&str) -> Option<Result<Workflow, DescriptorError>>,
    builtin_names: &[&str],
) -> Result<Header, StudyError> {
    let study = needed_section(root, "study")?;
    study.allow(&["name", "workflow", "seed", "durability", RETAIN])?;
    let name = name(&study)?;
    let seed = study.integer("seed", 0, u64::MAX)?.unwrap_or(0);
    let durable = durability(&study)?;
    let retained = study.list(RETAIN, NAMES, Value::as_str)?.unwrap_or_default();
    let retained = retained.into_iter().map(str::to_owned).collect();
    let workflow = load_workflow(&study, registry, builtin, builtin_names)?;
    Ok(Header { name, seed, durable, retained, workflow })
}

/// Reads the name of the study, which is also that of a folder.
fn name(study: &Section<'_>) -> Result<String, StudyError> {
    let name = study.needed_text("name", TEXT)?;
    if name.is_empty()
        || name.contains(['/', '\\'])
        || name.contains(char::is_control)
        || name.starts_with('.')
    {
        let allowed = "a name for a folder, without slashes or a leading dot";
        return study.not_allowed("name", &format!("\"{name}\""), allowed);
    }
    Ok(name.to_owned())
}

impl Durability {
    const ALL: [(&'static str, Self); 3] =
        [("none", Self::None), ("outputs", Self::Outputs), ("all", Self::All)];
}

/// Reads the durability of regions.
fn durability(study: &Section<'_>) -> Result<Durability, StudyError> {
    let Some(text) = study.text("durability", TEXT)? else { return Ok(Durability::default()) };
    match Durability::ALL.iter().find(|(name, _)| *name == text) {
        Some((_, durable)) => Ok(*durable),
        None => {
            let allowed = "\"none\", \"outputs\", \"all\"";
            study.not_allowed("durability", &format!("\"{text}\""), allowed)
        }
    }
}

/// Returns the stage and the output of each retained region, ascending. Only regions of objects can be queried.
pub(super) fn retained(
    root: &Section<'_>,
    names: &[String],
    workflow: &Workflow,
) -> Result<Vec<(usize, usize)>, StudyError> {
    let outputs = || {
        workflow.stages.iter().enumerate().flat_map(|(number, stage)| {
            let objects = stage.outputs.iter().enumerate().filter(|(_, output)| {
                let element = output.region.element;
                matches!(
                    element,
                    ElementType::Mask
                        | ElementType::Labels
                        | ElementType::Points
                        | ElementType::Polygons
                        | ElementType::Objects
                )
            });
            objects.map(move |(output, found)| {
                (format!("{}.{}", stage.name, found.region.region), (number, output))
            })
        })
    };
    let mut found = BTreeSet::new();
    for name in names {
        let Some((_, output)) = outputs().find(|(known, _)| known == name) else {
            let known: Vec<String> = outputs().map(|(known, _)| format!("\"{known}\"")).collect();
            let allowed = match known.is_empty() {
                true => {
                    "none in this workflow, whose stages give no masks, labels, points, polygons or objects"
                        .to_owned()
                }
                false => known.join(", "),
            };
            return needed_section(root, "study")?.not_allowed(RETAIN, &format!("\"{name}\""), &allowed);
        };
        found.insert(output);
    }
    Ok(found.into_iter().collect())
}

/// Finds the workflow, built in or in a file.
pub(super) fn load_workflow(
    study: &Section<'_>,
    registry: &Registry,
    builtin: impl Fn(&str) -> Option<Result<Workflow, DescriptorError>>,
    builtin_names: &[&str],
) -> Result<Workflow, StudyError> {
    let named = study.needed_text("workflow", TEXT)?;
    if let Some(workflow) = builtin(named) {
        return Ok(workflow?);
    }
    let path = study.path(named);
    if !path.is_file() {
        let allowed = format!("a workflow file, or built in: {}", builtin_names.join(", "));
        return study.not_allowed("workflow", &format!("\"{named}\""), &allowed);
    }
    Ok(Workflow::load(&path, registry)?)
}
