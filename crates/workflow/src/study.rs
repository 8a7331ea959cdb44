//! Study files: what a user wants to know, read from TOML and checked against the workflow.
//!
//! Paths are relative to the study file. Tiles and slides are found, not opened.

mod domain;
mod fields;
mod inputs;
mod method;
mod slides;

use crate::DescriptorError;
use crate::error::one_line;
use crate::operation::Registry;
use crate::parameter::{self, Domain, DomainError, Parameter};
use crate::workflow::Workflow;
use fields::{Document, Section};
pub use inputs::{Reference, Tile};
pub use method::{BasePoints, Method};
use serde::{Deserialize, Serialize};
pub(crate) use slides::KEYS as SLIDE_KEYS;
pub use slides::{SlideTile, Slides, TissueRule, core_of};
use std::path::{Path, PathBuf};
use thiserror::Error;

/// A checked study.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Study {
    /// Its name.
    pub name: String,
    /// Seed of everything random in it.
    pub seed: u64,
    /// The workflow, without the stages that the study leaves out or does not need for its metric, and with the
    /// study's parameter domains.
    pub workflow: Workflow,
    /// Switches of the workflow that the study turned off, such as `normalize`.
    pub switched_off: Vec<String>,
    /// The tiles, in order of their paths, each once. Of a study of slides none, until [`Study::cut`] says which.
    pub tiles: Vec<Tile>,
    /// The slides, and how they are cut; none in a study of tiles.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slides: Option<Slides>,
    /// What results are compared with.
    pub reference: Reference,
    /// How parameter sets are chosen and analysed.
    pub method: Method,
    /// Index into [`Response::metrics`](crate::Response) of the metric that is analysed.
    pub metric: usize,
    /// What of it has to survive the worker that stored it.
    #[serde(default)]
    pub durable: Durable,
}

/// What is in a tier that all workers share before its instance counts as finished, where there is such a tier.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Durable {
    /// Nothing: what is lost with a worker is computed again.
    #[default]
    None,
    /// Stage outputs that others read.
    Outputs,
    /// These, and the study's inputs that workers have read: others need not have their files.
    All,
}

impl Durable {
    const ALL: [(&'static str, Self); 3] =
        [("none", Self::None), ("outputs", Self::Outputs), ("all", Self::All)];
}

/// A study file is wrong, and where.
#[derive(Debug, Error)]
pub enum StudyError {
    /// The file cannot be read.
    #[error("{}: failed to read: {cause}", file.display())]
    Unreadable {
        /// The study file.
        file: PathBuf,
        /// Why.
        cause: std::io::Error,
    },
    /// The file is no TOML.
    #[error("{}", one_line(format_args!("{}:{line}: {message}", file.display())))]
    Malformed {
        /// The study file.
        file: PathBuf,
        /// Line, from 1.
        line: usize,
        /// What the parser said.
        message: String,
    },
    /// A field is wrong.
    #[error("{}", one_line(format_args!("{}: {field}: {problem}", file.display())))]
    Field {
        /// The study file.
        file: PathBuf,
        /// Dotted path of the field.
        field: String,
        /// What is wrong with it; boxed, since results that carry it are mostly fine.
        problem: Box<FieldProblem>,
    },
    /// The workflow it names is wrong.
    #[error(transparent)]
    Workflow(#[from] DescriptorError),
}

/// The kinds of mistakes in study files.
#[derive(Debug, Error)]
pub enum FieldProblem {
    /// The field must be there.
    #[error("missing; {0} is needed")]
    Missing(&'static str),
    /// The field does not exist.
    #[error("unknown; known are {}", .0.join(", "))]
    Unknown(Vec<String>),
    /// The field holds something of another type.
    #[error("{found} is given, {wanted} is wanted")]
    WrongType {
        /// What is there.
        found: String,
        /// What belongs there.
        wanted: &'static str,
    },
    /// The value is not one of those allowed.
    #[error("{value} is not allowed; allowed: {allowed}")]
    NotAllowed {
        /// What was given.
        value: String,
        /// What is allowed.
        allowed: String,
    },
    /// The values of a parameter cannot be.
    #[error(transparent)]
    Domain(#[from] DomainError),
    /// More than one of `range`, `values` and `fixed`, or none of them.
    #[error("give exactly one of range, values and fixed")]
    DomainKind,
    /// A step without a range.
    #[error("a step needs a range")]
    StepWithoutRange,
    /// A key that only goes with slides.
    #[error("only a study of slides has it; \"slides\" is missing")]
    SlidesOnly,
    /// Tiles and slides in one study.
    #[error("the study has tiles as well; give tiles or slides")]
    TilesAndSlides,
    /// A pattern matches no file.
    #[error("no file matches \"{0}\"")]
    NoMatch(String),
    /// A pattern cannot be read.
    #[error("\"{pattern}\": {message}")]
    BadPattern {
        /// The pattern.
        pattern: String,
        /// Why.
        message: String,
    },
    /// A file or folder is not there, or is something else.
    #[error("{}: {wanted}", path.display())]
    NotThere {
        /// The path.
        path: PathBuf,
        /// What was looked for.
        wanted: &'static str,
    },
    /// A reference folder has nothing for a tile.
    #[error("{} has none of {stem}_labels.png, {stem}.geojson and {stem}.png for tile {}", folder.display(), tile.display())]
    NoMask {
        /// The folder.
        folder: PathBuf,
        /// The tile.
        tile: PathBuf,
        /// The tile's file name without extension.
        stem: String,
    },
    /// Two tiles of one name would be compared with one mask.
    #[error("{} would be the reference of two tiles named {stem}; names of tiles must differ here", mask.display())]
    SharedMask {
        /// The mask.
        mask: PathBuf,
        /// The tiles' file name without extension.
        stem: String,
    },
}

impl Study {
    /// Reads and checks a study file. `builtin` finds the workflows that the program carries, by name.
    ///
    /// # Errors
    /// The first [`StudyError`] found.
    pub fn load(
        file: &Path,
        registry: &Registry,
        builtin: impl Fn(&str) -> Option<Result<Workflow, DescriptorError>>,
        builtin_names: &[&str],
    ) -> Result<Self, StudyError> {
        let document = Document::read(file)?;
        let root = document.root();
        root.allow(&["study", "input", "method", "response", "parameters"])?;

        let study = root.section("study")?;
        study.allow(&["name", "workflow", "seed", "durable"])?;
        let name = study.text("name")?;
        if name.is_empty()
            || name.contains(['/', '\\'])
            || name.contains(char::is_control)
            || name.starts_with('.')
        {
            return study.not_allowed(
                "name",
                &format!("\"{name}\""),
                "a name for a folder, without slashes or a leading dot",
            );
        }
        let seed = study.integer("seed", 0, u64::MAX)?.unwrap_or(0);
        let durable = match study.optional_text("durable")? {
            None => Durable::default(),
            Some(text) => match Durable::ALL.iter().find(|(name, _)| *name == text) {
                Some((_, durable)) => *durable,
                None => {
                    return study.not_allowed(
                        "durable",
                        &format!("\"{text}\""),
                        "\"none\", \"outputs\", \"all\"",
                    );
                }
            },
        };
        let workflow = load_workflow(&study, registry, builtin, builtin_names)?;

        let input = root.section("input")?;
        let switched_off = switches(&input, &workflow)?;
        let mut workflow = workflow.without(&switched_off);
        let slides = slides::slides(&input)?;
        let tiles = if slides.is_some() { Vec::new() } else { inputs::found(&input, "tiles")? };
        let reference = inputs::reference(&input, &tiles)?;
        if slides.is_some() && reference != Reference::Defaults {
            let given = input.text("reference")?;
            return input.not_allowed("reference", &format!("\"{given}\""), "\"defaults\" for slides");
        }
        let method = method::read(&root.section("method")?)?;
        let (table, metric) = metric(&root, &workflow)?;
        workflow = workflow.measuring(table);
        if let Some(halo) = slides.as_ref().map(|slides| slides.halo_px).filter(|halo| *halo > 0) {
            workflow = match workflow.within_cores(registry) {
                Some(within) => within,
                None => {
                    let allowed = format!(
                        "0: nothing that measures in workflow {} can leave the halo out",
                        workflow.name
                    );
                    return input.not_allowed("halo", &halo.to_string(), &allowed);
                }
            };
        }
        override_parameters(&root, &mut workflow.parameters)?;
        Ok(Self { name, seed, workflow, switched_off, tiles, slides, reference, method, metric, durable })
    }

    /// Takes the tiles that its slides were cut into.
    pub fn cut(&mut self, tiles: Vec<Tile>) {
        self.tiles = tiles;
    }

    /// The name of the metric that is analysed.
    #[must_use]
    pub fn metric_name(&self) -> &str {
        &self.workflow.response.metrics[self.metric].0
    }
}

fn load_workflow(
    study: &Section<'_>,
    registry: &Registry,
    builtin: impl Fn(&str) -> Option<Result<Workflow, DescriptorError>>,
    builtin_names: &[&str],
) -> Result<Workflow, StudyError> {
    let named = study.text("workflow")?;
    if let Some(workflow) = builtin(&named) {
        return Ok(workflow?);
    }
    let path = study.path(&named);
    if !path.is_file() {
        let allowed = format!("a workflow file, or built in: {}", builtin_names.join(", "));
        return study.not_allowed("workflow", &format!("\"{named}\""), &allowed);
    }
    Ok(Workflow::load(&path, registry)?)
}

/// Switches are keys of `[input]`: `normalize = false` leaves the stage out.
fn switches(input: &Section<'_>, workflow: &Workflow) -> Result<Vec<String>, StudyError> {
    let switches = workflow.switches();
    let mut known = vec!["tiles"];
    known.extend(SLIDE_KEYS);
    known.extend(workflow.reference.as_ref().map(|_| "reference"));
    known.extend(&switches);
    input.allow(&known)?;
    let mut off = Vec::new();
    for name in switches {
        if input.boolean(name)? == Some(false) {
            off.push(name.to_owned());
        }
    }
    Ok(off)
}

/// The metric that is analysed: the table it is in, and its place there.
fn metric(root: &Section<'_>, workflow: &Workflow) -> Result<(usize, usize), StudyError> {
    let response = root.section("response")?;
    response.allow(&["metric"])?;
    let wanted = response.text("metric")?;
    let found = workflow.metrics().find(|(.., name)| *name == wanted);
    match found {
        Some((table, place, _)) => Ok((table, place)),
        None => {
            let known: Vec<_> = workflow.metrics().map(|(.., name)| format!("\"{name}\"")).collect();
            response.not_allowed("metric", &format!("\"{wanted}\""), &known.join(", "))
        }
    }
}

fn override_parameters(root: &Section<'_>, parameters: &mut [Parameter]) -> Result<(), StudyError> {
    let Some(section) = root.optional_section("parameters")? else { return Ok(()) };
    let known: Vec<String> = parameters.iter().map(|parameter| parameter.name.clone()).collect();
    section.allow(&known.iter().map(String::as_str).collect::<Vec<_>>())?;
    for parameter in parameters {
        let Some(section) = section.optional_section(&parameter.name)? else { continue };
        let keys: Vec<&str> = domain::KEYS.into_iter().chain(["default"]).collect();
        section.allow(&keys)?;
        let value_type = parameter.value_type;
        parameter.domain = domain::read(root, &section, parameter)?;
        if let Some(number) = section.number("default")? {
            match parameter::value_of(value_type, number) {
                Ok(value) => parameter.default = value,
                Err(error) => return section.fail("default", error.into()),
            }
        }
        // What is fixed is fixed in the reference, and in tables that do not name it.
        if let Domain::Fixed { value } = parameter.domain {
            if section.number("default")?.is_some() && parameter.default != value {
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
    Ok(())
}
