//! Study files: reads a user's study from TOML and checks it against the workflow.
//!
//! Paths are relative to the study file. Tiles and slides are searched for, but not opened.

mod annotations;
mod applied;
mod domain;
mod expansion;
mod header;
mod images;
mod inputs;
mod method;
mod phase;
mod slides;
mod space;
mod stain;
mod units;
mod weights;
mod wording;

use crate::domain_error::DomainError;
use crate::error::{DescriptorError, one_line};
use crate::operation::Registry;
use crate::toml_fields::{Document, FieldProblem, Section};
use crate::workflow::{Stage, Workflow};
pub use annotations::{AnnotationPart, AnnotationRules, AnnotationUnit, Annotations};
pub(crate) use annotations::{KEY as ANNOTATIONS_KEY, RULES as ANNOTATION_RULES_KEY};
pub use applied::AppliedImages;
use header::Header;
pub(crate) use images::volumes::KEYS as VOLUME_KEYS;
pub use images::volumes::{CALIBRATION_COLUMNS, VOLUME_METADATA, VolumeBlock, VolumeInfo, Volumes};
use images::{Images, images, switches, within_regions, without_halo};
pub use inputs::{ReferenceSource, StudyTile};
pub use method::{BasePoints, GivenDataMethod, Method};
pub use phase::{Phase, StoppingRule, SurvivorRule, Survivors};
use serde::{Deserialize, Serialize};
pub(crate) use slides::KEYS as SLIDE_KEYS;
pub use slides::{SlideTile, Slides, Tiling, TissueRule, core_of};
pub use space::{MethodSpec, ParameterSpace, ProgramParameter};
pub use stain::{FitScope, Normalization, StainFit, StainStatistics};
use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use thiserror::Error;
pub use units::{Units, UnitsError};
pub use weights::TileWeights;
use wording::{TEXT, needed_section, needed_texts, worded};

/// A checked study.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Study {
    /// Name.
    pub name: String,
    /// Seed of all random numbers of the study.
    pub seed: u64,
    /// The workflow, without the stages that the study switches off or does not need for its metric, and with the
    /// study's parameter domains.
    pub workflow: Workflow,
    /// Switches of the workflow that the study turned off, such as `normalize`.
    pub switched_off: Vec<String>,
    /// The tiles, in order of their paths, without duplicates. Empty for slides until [`Study::cut`] provides the
    /// tiles.
    pub tiles: Vec<StudyTile>,
    /// The slides and their tiling. `None` in a study of tiles.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slides: Option<Slides>,
    /// The images of more dimensions and their partition. `None` in a study of tiles or slides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub volumes: Option<Volumes>,
    /// Stain normalization with fitted values. `None` without normalization, or if each tile is fitted to itself and to
    /// the built-in target.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub normalization: Option<Normalization>,
    /// Reference that results are compared with.
    pub reference: ReferenceSource,
    /// Maximum share of the annotations of a reference file that may be outside its tile.
    #[serde(default = "annotations::default_share")]
    pub annotations_outside: f64,
    /// Annotation counts of each reference file with outlines. Empty until the files are read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub annotations: Vec<Annotations>,
    /// Selection of annotations by class.
    #[serde(default, skip_serializing_if = "AnnotationRules::is_default")]
    pub annotation_rules: AnnotationRules,
    /// Number of tiles that are left out because no region of interest has a pixel in their core.
    #[serde(default)]
    pub tiles_without_regions: usize,
    /// Method that chooses and analyzes parameter sets.
    pub method: Method,
    /// Index of the analyzed metric in [`ResponseTable::metrics`](crate::ResponseTable::metrics), the first if there
    /// are several.
    pub metric: usize,
    /// Indices of the other analyzed metrics, in the order of the study file.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub further: Vec<usize>,
    /// Treatment of runs whose mask and reference are both empty.
    #[serde(default)]
    pub both_empty: BothEmpty,
    /// Rule for the weights of tiles in means over tiles.
    #[serde(default, skip_serializing_if = "TileWeights::are_equal")]
    pub weights: TileWeights,
    /// Weights of the tiles. Empty if all are equal, and until the preparation determines them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tile_weights: Vec<f64>,
    /// Regions that must survive the worker that stored them.
    #[serde(default)]
    pub durable: Durability,
    /// Stages and outputs whose regions workers retain for queries after their last reader, ascending.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub retained: Vec<(usize, usize)>,
    /// Stopping rule of a growing sample. `None` for a sample of fixed size.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<StoppingRule>,
    /// The phases, at least two. Empty in a study of one phase. Until [`Study::for_phase`] selects one, the study
    /// is its first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub phases: Vec<Phase>,
    /// Number of the phase that this study executes, from 1. `None` for a study that is not a phase of another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<usize>,
}

/// Regions that must be in a tier shared by all workers before their instance counts as finished. Without such a
/// tier, a second worker stores them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Durability {
    /// No region: outputs lost with a worker are computed again.
    #[default]
    None,
    /// Stage outputs that other stages read.
    Outputs,
    /// Stage outputs, and the study's inputs that workers have read, so that other workers do not need the files.
    All,
}

/// Treatment of runs whose mask and reference are both empty. By convention such a run agrees completely (Dice 1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BothEmpty {
    /// Counted like any other run.
    #[default]
    Count,
    /// Excluded: the mean over tiles covers the other runs of the evaluation. An evaluation without other runs
    /// counts them.
    LeaveOut,
}

impl BothEmpty {
    const ALL: [(&'static str, Self); 2] = [("count", Self::Count), ("leave-out", Self::LeaveOut)];

    /// Returns the name in study files.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, of)| *of == self).map_or("", |(name, _)| name)
    }
}

/// A mistake in a study file, with its location.
#[derive(Debug, Error)]
pub enum StudyError {
    /// The file cannot be read.
    #[error("{}: failed to read: {cause}", file.display())]
    Unreadable {
        /// The study file.
        file: PathBuf,
        /// The system's error.
        cause: std::io::Error,
    },
    /// The file is not valid TOML.
    #[error("{}", one_line(format_args!("{}:{line}:{column}: {message}", file.display())))]
    Malformed {
        /// The study file.
        file: PathBuf,
        /// Line, from 1.
        line: usize,
        /// Column, from 1.
        column: usize,
        /// The parser's message.
        message: String,
    },
    /// A field is invalid.
    #[error("{}", one_line(format_args!("{}: {field}: {problem}", file.display())))]
    Field {
        /// The study file.
        file: PathBuf,
        /// Dotted path of the field.
        field: String,
        /// The problem, boxed to keep results small.
        problem: Box<StudyProblem>,
    },
    /// The workflow of the study is invalid.
    #[error(transparent)]
    Workflow(#[from] DescriptorError),
}

/// The kinds of mistakes in study files.
#[derive(Debug, Error)]
pub enum StudyProblem {
    /// The field is missing, unknown, or has a value of a wrong type or beyond its range.
    #[error("{}", worded(.0))]
    Field(FieldProblem),
    /// The domain of a parameter is invalid.
    #[error(transparent)]
    Domain(#[from] DomainError),
    /// The section has none or several of `range`, `values` and `fixed`.
    #[error("give exactly one of range, values and fixed")]
    DomainKind,
    /// The study has both a single method and phases.
    #[error("the study has phases as well; give [method] or [[phase]]")]
    MethodAndPhases,
    /// The section has none or several rules for survivors.
    #[error("give exactly one of threshold, most_influential and cumulative_share")]
    RuleKind,
    /// A sample with `until` cannot be extended.
    #[error("{what} cannot be extended: {reason}")]
    NotExtensible {
        /// The setting.
        what: String,
        /// The reason, and the settings that work.
        reason: &'static str,
    },
    /// A step without a range.
    #[error("a step needs a range")]
    StepWithoutRange,
    /// A key that requires slides.
    #[error("allowed only in a study of slides; \"slides\" is missing")]
    SlidesOnly,
    /// The study has both tiles and slides.
    #[error("the study has tiles as well; give tiles or slides")]
    TilesAndSlides,
    /// A key that requires images of more dimensions.
    #[error("allowed only in a study of images; \"images\" is missing")]
    ImagesOnly,
    /// The study has images of more dimensions, and others.
    #[error("the study has {0} as well; give tiles, slides or images")]
    BesideImages(&'static str),
    /// A pattern matches no file.
    #[error("no file matches \"{0}\"")]
    NoMatch(String),
    /// A pattern is invalid.
    #[error("\"{pattern}\": {message}")]
    BadPattern {
        /// The pattern.
        pattern: String,
        /// The cause.
        message: String,
    },
    /// A file or folder does not exist, or has the wrong kind.
    #[error("{}: {wanted}", path.display())]
    NotThere {
        /// The path.
        path: PathBuf,
        /// Expected kind.
        wanted: &'static str,
    },
    /// A reference folder has no file for a tile.
    #[error("{} has none of {stem}_labels.png, {stem}.geojson and {stem}.png for tile {}", folder.display(), tile.display())]
    NoMask {
        /// The folder.
        folder: PathBuf,
        /// The tile.
        tile: PathBuf,
        /// The tile's file name without extension.
        stem: String,
    },
    /// A reference folder has no file of annotations for a tile or slide.
    #[error("{} has none of {stem}.geojson and {stem}.geojson.gz for {}", folder.display(), tile.display())]
    NoAnnotations {
        /// The folder.
        folder: PathBuf,
        /// The tile or slide.
        tile: PathBuf,
        /// Its file name without extension.
        stem: String,
    },
    /// Two tiles of the same name would be compared with one mask.
    #[error("{} is the reference of two tiles named {stem}; tile names must be unique", mask.display())]
    SharedMask {
        /// The mask.
        mask: PathBuf,
        /// The tiles' file name without extension.
        stem: String,
    },
}

impl Study {
    /// Reads and checks a study file. `builtin` finds the workflows embedded in the program, by name.
    ///
    /// # Errors
    /// Returns the first [`StudyError`] found.
    pub fn load(
        file: &Path,
        registry: &Registry,
        builtin: impl Fn(&str) -> Option<Result<Workflow, DescriptorError>>,
        builtin_names: &[&str],
    ) -> Result<Self, StudyError> {
        Self::of_document(&Document::read(file)?, registry, builtin, builtin_names)
    }

    /// Reads and checks a study file whose images are replaced. The images of the file need not exist.
    ///
    /// # Errors
    /// Returns the first [`StudyError`] found.
    pub fn load_for_images(
        file: &Path,
        images: &AppliedImages,
        registry: &Registry,
        builtin: impl Fn(&str) -> Option<Result<Workflow, DescriptorError>>,
        builtin_names: &[&str],
    ) -> Result<Self, StudyError> {
        let mut document = Document::read(file)?;
        document.edit(|table| images.replace(table));
        Self::of_document(&document, registry, builtin, builtin_names)
    }

    fn of_document(
        document: &Document,
        registry: &Registry,
        builtin: impl Fn(&str) -> Option<Result<Workflow, DescriptorError>>,
        builtin_names: &[&str],
    ) -> Result<Self, StudyError> {
        let root = document.root();
        root.allow(&["study", "input", "method", "phase", "response", "parameters"])?;
        let Header { name, seed, durable, retained, workflow } =
            header::read(&root, registry, builtin, builtin_names)?;

        let input = needed_section(&root, "input")?;
        let switched_off = switches(&input, &workflow)?;
        let switches: Vec<String> = workflow.switches().into_iter().map(str::to_owned).collect();
        let workflow = workflow.without(&switched_off);
        let Images { slides, volumes, tiles, reference, annotations_outside, annotation_rules } =
            images(&input)?;
        // Checks follow the order of the file, so that the first mistake is reported first.
        if !root.has("phase") {
            method::read(&needed_section(&root, "method")?, &["until"])?;
        }
        let (workflow, metrics) = metrics(&root, &workflow, &retained, registry)?;
        let (metric, further) = (metrics[0], metrics[1..].to_vec());
        let both_empty = both_empty(&root)?;
        let has_files = reference != ReferenceSource::Defaults;
        let weights = weights::read(&needed_section(&root, "response")?, slides.is_some(), has_files)?;
        let mut workflow = match slides.as_ref().map(|slides| slides.halo_px).filter(|halo| *halo > 0) {
            _ if !annotation_rules.regions.is_empty() => within_regions(&input, workflow, registry)?,
            Some(halo) => without_halo(&input, workflow, halo, registry)?,
            None => workflow,
        };
        let (fitted, normalization) =
            stain::normalization(&input, workflow, &switches, slides.is_some(), registry)?;
        workflow = fitted;
        domain::override_parameters(&root, &mut workflow, registry)?;
        let retained = header::retained(&root, &retained, &workflow)?;
        let names = &workflow.response.metrics;
        let analyzed: Vec<(usize, String)> =
            metrics.iter().map(|&metric| (metric, names[metric].0.clone())).collect();
        let varied = workflow.parameters.iter().filter(|parameter| parameter.domain.varies()).count();
        let phase::PhasePlan { method, until, phases } = phase::read(&root, &analyzed, varied)?;
        Ok(Self {
            name: name.to_owned(),
            seed,
            workflow,
            switched_off,
            tiles,
            slides,
            volumes,
            normalization,
            reference,
            annotations_outside,
            annotations: Vec::new(),
            annotation_rules,
            tiles_without_regions: 0,
            method,
            metric,
            further,
            both_empty,
            weights,
            tile_weights: Vec::new(),
            durable,
            retained,
            until,
            phases,
            phase: None,
        })
    }

    /// Sets the tiles of its slides. Each has the reference of its slide.
    pub fn cut(&mut self, tiles: Vec<StudyTile>) {
        if let (ReferenceSource::Masks(masks), Some(slides)) = (&mut self.reference, &self.slides) {
            let of_slide: HashMap<&Path, &PathBuf> =
                slides.files.iter().map(|slide| &*slide.path).zip(&*masks).collect();
            *masks = tiles.iter().filter_map(|tile| of_slide.get(&*tile.path).copied().cloned()).collect();
        }
        self.tiles = tiles;
    }

    /// Leaves out the tiles without `true` in `is_kept`, with their references.
    pub fn keep_tiles(&mut self, is_kept: &[bool]) {
        let mut keep = is_kept.iter();
        self.tiles.retain(|_| keep.next().is_none_or(|kept| *kept));
        if let ReferenceSource::Masks(masks) = &mut self.reference {
            let mut keep = is_kept.iter();
            masks.retain(|_| keep.next().is_none_or(|kept| *kept));
        }
    }

    /// Returns the name of the analyzed metric, the first if there are several.
    #[must_use]
    pub fn metric_name(&self) -> &str {
        &self.workflow.response.metrics[self.metric].0
    }

    /// Returns all analyzed metrics, as indices into [`ResponseTable::metrics`](crate::ResponseTable::metrics).
    pub fn metrics(&self) -> impl Iterator<Item = usize> {
        std::iter::once(self.metric).chain(self.further.iter().copied())
    }

    /// Returns the names of the analyzed metrics.
    pub fn metric_names(&self) -> impl Iterator<Item = &str> {
        self.metrics().map(|metric| self.workflow.response.metrics[metric].0.as_str())
    }
}

/// Reads the analyzed metrics. Returns the workflow that measures all of them, and their indices in its response table.
fn metrics(
    root: &Section<'_>,
    workflow: &Workflow,
    retained: &[String],
    registry: &Registry,
) -> Result<(Workflow, Vec<usize>), StudyError> {
    let response = needed_section(root, "response")?;
    response.allow(&["metric", "both_empty", weights::KEY])?;
    let wanted = match response.value("metric", TEXT, |value| Some(value.is_array()))? {
        Some(true) => needed_texts(&response, "metric")?,
        _ => vec![response.needed_text("metric", TEXT)?],
    };
    let known = || workflow.metrics().map(|(.., name)| format!("\"{name}\"")).collect::<Vec<_>>().join(", ");
    if wanted.is_empty() {
        return response.not_allowed("metric", "an empty list", &format!("one or more of {}", known()));
    }
    let mut found: Vec<(usize, usize)> = Vec::with_capacity(wanted.len());
    for name in &wanted {
        match workflow.metrics().find(|(.., known)| known == name) {
            Some((table, place, _)) if !found.contains(&(table, place)) => found.push((table, place)),
            Some(_) => {
                return response.not_allowed("metric", &format!("\"{name}\" twice"), "each metric once");
            }
            None => return response.not_allowed("metric", &format!("\"{name}\""), &known()),
        }
    }
    let tables: Vec<usize> =
        found.iter().map(|(table, _)| *table).collect::<BTreeSet<_>>().into_iter().collect();
    let is_retained = |stage: &Stage| {
        let region =
            |name: &String| name.strip_prefix(&*stage.name).is_some_and(|rest| rest.starts_with('.'));
        retained.iter().any(region)
    };
    let stages = workflow.stages.iter().enumerate();
    let kept: Vec<usize> = stages.filter(|(_, stage)| is_retained(stage)).map(|(number, _)| number).collect();
    let Some(measuring) = workflow.joining(&tables, &kept, registry) else {
        let one = "metrics of one table: this program has no operation that puts tables together";
        return response.not_allowed("metric", &wanted.join(", "), one);
    };
    let place = |(table, place): &(usize, usize)| {
        let before = tables.iter().take_while(|before| *before < table);
        let columns = |table: &usize| workflow.metrics().filter(|(of, ..)| of == table).count();
        before.map(columns).sum::<usize>() + place
    };
    Ok((measuring, found.iter().map(place).collect()))
}

/// Reads the treatment of runs whose mask and reference are both empty.
fn both_empty(root: &Section<'_>) -> Result<BothEmpty, StudyError> {
    let response = needed_section(root, "response")?;
    let Some(text) = response.text("both_empty", TEXT)? else { return Ok(BothEmpty::default()) };
    match BothEmpty::ALL.iter().find(|(name, _)| *name == text) {
        Some((_, both_empty)) => Ok(*both_empty),
        None => response.not_allowed("both_empty", &format!("\"{text}\""), "\"count\", \"leave-out\""),
    }
}
