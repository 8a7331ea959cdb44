//! Prepares a study: reads its file, draws or reads its parameter sets, and reads the headers of its image files.
//!
//! The preparation reports every error of a study that is detectable before it runs.

pub mod annotations;
mod applied;
mod digests;
pub mod inputs;
mod inspect;
mod parts;
mod room;
pub mod units;

use crate::error::{AnnotationsError, PrepareError, SamplingError};
use crate::{Defect, builtin, file_digest, slides, volumes};
pub use applied::AppliedStudyError;
use digests::{digest_of, digests};
use pleach_dispatch::cost_model::CostModel;
use pleach_planner::{PlanBuilder, PlanTile, PlanningInput};
use pleach_reuse::Merging;
use pleach_sensitivity::fast::HARMONICS;
use pleach_sensitivity::groups::Groups;
use pleach_sensitivity::sampling::points::Sequence;
use pleach_sensitivity::sampling::{Design, Structure, fast, morris, saltelli};
use pleach_sensitivity::table;
use pleach_sensitivity::trajectory::Trajectories;
use pleach_workflow::{Method, ReferenceSource, Registry, Study, TileWeights, Units, Value, Workflow, text};
use std::cell::OnceCell;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Name of the digest part that covers the paths of the image files.
const PLACES: &str = "list of image files";

/// Study that can be planned.
#[derive(Debug)]
pub struct PreparedStudy {
    /// Checked study. Its tiles include those cut from slides.
    pub study: Study,
    /// Operations linked into this binary. The tasks of the workflow name them.
    pub registry: Registry,
    /// Parameter sets of evaluations 1, 2, ….
    pub design: Design,
    /// All parameter sets to run. Evaluation 0 (the defaults) is the first, if it is run.
    pub evaluations: Arc<Vec<Vec<Value>>>,
    /// File that defines the parameter sets: a table or the study file.
    parameter_sets: PathBuf,
    /// Pixels and region keys of the tiles, in the order of the study. An unreadable tile counts as 1 pixel.
    pub tiles: Vec<PlanTile>,
    /// Positions of the tiles in their specimens. `None` if stages read only regions of their own tile.
    pub units: Option<Units>,
    /// Cause for each unreadable tile. Runs on these tiles fail.
    unreadable: Vec<String>,
    /// Cost model of operations: the declared costs until measurements are loaded.
    pub costs: CostModel,
    /// See [`PreparedStudy::file_digests`].
    file_digests: OnceCell<Vec<Option<[u8; 32]>>>,
    /// Digests of the parts of the study's definition, by name.
    digests: Vec<(&'static str, String)>,
    /// Digest of the study's definition. It is independent of planning and execution options.
    pub digest: String,
}

/// Study as a client submitted it, after reading its files.
#[derive(Debug)]
pub struct SubmittedStudy {
    /// Checked study with the paths at the client. Its tiles include those cut from slides.
    pub study: Study,
    /// Parameter sets of evaluations 1, 2, …, without the defaults.
    pub evaluations: Vec<Vec<Value>>,
    /// Whether the parameter sets come from a table instead of the method.
    pub is_table: bool,
    /// Path at the client of the file that defines the parameter sets: a table or the study file.
    pub parameter_sets: PathBuf,
    /// Pixels and region keys of the tiles, in the order of the study.
    pub tiles: Vec<PlanTile>,
    /// BLAKE3 digests of the image files: of the tiles, then of the references if those are files. `None` for an
    /// unreadable file.
    pub file_digests: Vec<Option<[u8; 32]>>,
}

impl PreparedStudy {
    /// Reads a study of these operations. With `table`, that file provides the parameter sets.
    ///
    /// # Errors
    /// [`PrepareError`] names the file, the field, the value and the allowed values.
    pub fn load(file: &Path, table: Option<&Path>, registry: &Registry) -> Result<Self, PrepareError> {
        let prepared = Self::load_with_any_values(file, table, registry)?;
        prepared.check_runnable()?;
        Ok(prepared)
    }

    /// Reads a study that may have values that operations refuse. Such a study can be planned but not run.
    ///
    /// # Errors
    /// As [`PreparedStudy::load`].
    pub fn load_with_any_values(
        file: &Path,
        table: Option<&Path>,
        registry: &Registry,
    ) -> Result<Self, PrepareError> {
        let builtin = |name: &str| builtin::workflow(name, registry);
        let mut study = Study::load(file, registry, builtin, &builtin::BUILT_IN)?;
        if let Some(slides) = &study.slides {
            let (tiles, weights) = slides::cut(file, &study, slides)?;
            study.cut(tiles);
            study.tile_weights = weights;
        }
        if let Some(images) = &study.volumes {
            let (tiles, infos) = volumes::cut(file, &study, images)?;
            study.cut(tiles);
            study.volumes.iter_mut().for_each(|images| images.infos.clone_from(&infos));
        }
        slides::stain::fit(file, &mut study)?;
        let units = units::expand(file, &mut study)?;
        let parts = [("phases", !study.phases.is_empty()), ("until", study.until.is_some())];
        if let (Some(table), Some((part, _))) = (table, parts.iter().find(|(_, there)| *there)) {
            return Err(PrepareError::DrawsItsOwn { table: table.to_owned(), file: file.to_owned(), part });
        }
        // Before the parameter sets are drawn, which takes this memory.
        room::check(file, &study, table)?;
        let design = design(file, &study, table)?;
        let evaluations = evaluations_of(&study, &design, registry);
        let parameter_sets = match (table, &study.method) {
            (Some(table), _) => table,
            (None, Method::Table { file }) => file,
            (
                None,
                Method::Moat { .. } | Method::Vbd { .. } | Method::Correlation { .. } | Method::Fast { .. },
            ) => file,
        };
        let parameter_sets = parameter_sets.to_owned();
        let mut looked = inspect::look_at_tiles(file, &study, units.as_ref())?;
        study.annotations = looked.annotations;
        annotations::check(file, &study)?;
        if study.weights == TileWeights::Annotated {
            study.tile_weights = looked.counted_px;
        }
        let (mut tiles, unreadable) = (looked.tiles, looked.unreadable);
        if units.is_some() {
            // Stages read the regions of all tiles of a slide.
            looked.is_kept.fill(true);
        }
        annotations::leave_out(&mut study, &mut tiles, &looked.is_kept);
        let digests = digests(&study, &design, &evaluations);
        let digest = digest_of(digests.iter().map(|(_, digest)| digest.as_bytes()));
        let file_digests = OnceCell::new();
        Ok(Self {
            study,
            registry: registry.clone(),
            design,
            evaluations,
            parameter_sets,
            tiles,
            units,
            unreadable,
            costs: CostModel::default(),
            file_digests,
            digests,
            digest,
        })
    }

    /// Prepares a study that a client has read, without opening its files. Paths are those at the client, and `tiles`
    /// has the region keys of the inputs. The parameter sets of a table are taken as received. Those of a method are
    /// drawn again and compared.
    ///
    /// # Errors
    /// [`PrepareError`] if the parameter sets are not those of the method, or if an operation refuses a value.
    pub fn received(received: SubmittedStudy, registry: &Registry) -> Result<Self, PrepareError> {
        let SubmittedStudy { study, evaluations: rows, is_table, parameter_sets, tiles, file_digests } =
            received;
        let units = units::units_of(&study);
        let design = if is_table {
            design_of_rows(&study, &study.method, rows)
        } else {
            // Before the draw: a submission must not exhaust the manager's memory.
            room::check(&parameter_sets, &study, None)?;
            let drawn = design(&parameter_sets, &study, None)?;
            if drawn.evaluations != rows {
                return Err(PrepareError::OtherParameterSets { study: study.name });
            }
            drawn
        };
        let evaluations = evaluations_of(&study, &design, registry);
        let digests = digests(&study, &design, &evaluations);
        let digest = digest_of(digests.iter().map(|(_, digest)| digest.as_bytes()));
        let prepared = Self {
            study,
            registry: registry.clone(),
            design,
            evaluations,
            parameter_sets,
            tiles,
            units,
            unreadable: Vec::new(),
            costs: CostModel::default(),
            file_digests: OnceCell::from(file_digests),
            digests,
            digest,
        };
        prepared.check_runnable()?;
        Ok(prepared)
    }

    /// Returns a warning for each tile that cannot be read.
    pub fn warnings(&self) -> impl Iterator<Item = String> {
        self.unreadable.iter().map(|cause| format!("warning: {cause}; all runs on this tile will fail"))
    }

    /// Returns the file that defines the parameter sets.
    pub fn parameter_sets(&self) -> &Path {
        &self.parameter_sets
    }

    /// Returns the image files of the study: the tiles, then the references if those are files.
    pub fn files(&self) -> impl Iterator<Item = &Path> {
        files(&self.study)
    }

    /// Returns the digests of all parts that the results depend on, by name: the parts of the study's definition and
    /// the content of the image files.
    pub fn digests(&self) -> Vec<(&'static str, String)> {
        let mut content = blake3::Hasher::new();
        // Unreadable files are left out: they only fail their own runs, in every process.
        self.file_digests().iter().flatten().for_each(|file| {
            content.update(file);
        });
        let content = ("image files", content.finalize().to_hex()[..32].to_owned());
        self.digests.iter().cloned().chain([content]).collect()
    }

    /// Returns the digests of the image files' content: of the tiles, then of the references if those are files. `None`
    /// for an unreadable file.
    pub fn file_digests(&self) -> &[Option<[u8; 32]>] {
        self.file_digests.get_or_init(|| {
            // The tiles of a slide are one file.
            let mut known: HashMap<&Path, Option<[u8; 32]>> = HashMap::new();
            files(&self.study)
                .map(|file| *known.entry(file).or_insert_with(|| file_digest::digest(file)))
                .collect()
        })
    }

    /// Returns whether evaluation 0, the defaults, is run.
    pub fn defaults_run(&self) -> bool {
        self.evaluations.len() > self.design.evaluations.len()
    }

    /// Returns whether evaluation 0 is the reference.
    pub fn reference_run(&self) -> bool {
        self.defaults_run() && is_own_reference(&self.study)
    }

    /// Returns the input of the planner: workflow, parameter sets, tiles and costs, borrowed from this study. Buckets have the
    /// overhead that the costs have measured.
    pub fn planning_input(&self) -> PlanningInput<'_> {
        PlanningInput {
            workflow: &self.study.workflow,
            registry: &self.registry,
            evaluations: &self.evaluations,
            defaults_run: self.defaults_run(),
            reference_run: self.reference_run(),
            tiles: &self.tiles,
            units: self.units.as_ref(),
            costs: &self.costs,
            link: None,
            bucket_overhead_seconds: self.costs.bucket_overhead_seconds(),
            accelerators: 0,
        }
    }

    /// Reorders the tasks of each stage so that the instances of this study share the most tasks.
    ///
    /// # Errors
    /// [`PrepareError`] if the study has more runs than ids.
    pub fn order_tasks(&mut self) -> Result<(), PrepareError> {
        let builder = PlanBuilder::set_up(self.planning_input(), Merging::Merged)?;
        let orders = builder.best_orders();
        for (stage, order) in self.study.workflow.stages.iter_mut().zip(orders) {
            *stage = stage.in_order(&order).ok_or_else(|| Defect::new("an order that is none"))?;
        }
        Ok(())
    }

    /// Checks that the operations accept all values of the parameter sets. All constructors of runnable
    /// studies end with it.
    ///
    /// # Errors
    /// [`PrepareError`] names the file, the evaluation, the parameter, its value and the values that the
    /// operation accepts.
    fn check_runnable(&self) -> Result<(), PrepareError> {
        let first = usize::from(!self.defaults_run());
        for stage in &self.study.workflow.stages {
            for task in &stage.tasks {
                let Some(operation) = self.registry.get(&task.operation, task.version) else { continue };
                for (argument, index) in operation.arguments().iter().zip(stage.task_parameters(task)) {
                    let bad = self.evaluations.iter().position(|e| !argument.accepts.contains(e[index]));
                    if let Some(evaluation) = bad {
                        return Err(PrepareError::Value {
                            file: self.parameter_sets.clone(),
                            evaluation: evaluation + first,
                            parameter: self.study.workflow.parameters[index].name.clone(),
                            value: self.evaluations[evaluation][index],
                            operation: operation.name().to_owned(),
                            accepted: Box::new(argument.accepts),
                        });
                    }
                }
            }
        }
        Ok(())
    }
}

/// Returns whether results are compared with the result at the defaults.
fn is_own_reference(study: &Study) -> bool {
    study.reference == ReferenceSource::Defaults && study.workflow.reference.is_some()
}

/// Returns all parameter sets to run. The defaults are the first if results are compared with a reference. They give
/// the reference, or their agreement with it is the baseline for all other sets. A baseline is optional: defaults
/// that an operation refuses are left out in that case.
fn evaluations_of(study: &Study, design: &Design, registry: &Registry) -> Arc<Vec<Vec<Value>>> {
    let workflow = &study.workflow;
    let defaults: Vec<Value> = workflow.parameters.iter().map(|parameter| parameter.default).collect();
    let is_run = workflow.reference.is_some()
        && (is_own_reference(study) || is_accepted(workflow, registry, &defaults));
    let defaults = is_run.then_some(defaults);
    Arc::new(defaults.into_iter().chain(design.evaluations.iter().cloned()).collect())
}

/// Returns whether all operations accept these values.
fn is_accepted(workflow: &Workflow, registry: &Registry, values: &[Value]) -> bool {
    workflow.stages.iter().all(|stage| {
        stage.tasks.iter().all(|task| {
            registry.get(&task.operation, task.version).is_some_and(|operation| {
                let mut arguments = operation.arguments().iter().zip(stage.task_parameters(task));
                arguments.all(|(argument, index)| argument.accepts.contains(values[index]))
            })
        })
    })
}

fn design(file: &Path, study: &Study, table: Option<&Path>) -> Result<Design, PrepareError> {
    let parameters = &study.workflow.parameters;
    match (table, &study.method) {
        (Some(table), method) => read_table(table, study, method),
        (None, method @ Method::Table { file }) => read_table(file, study, method),
        (None, &Method::Moat { trajectories, levels, base, candidates }) => {
            let (trajectories, levels) = (trajectories as u32, levels as u32);
            let morris = morris::Morris { trajectories, levels, seed: study.seed };
            let base = base
                .map_or(morris::BasePointSource::Random, |base| morris::BasePointSource::Points(base.into()));
            let choice = candidates.map_or(morris::TrajectorySelection::All, |candidates| {
                morris::TrajectorySelection::Spread {
                    search: morris::SpreadSearch::Ruano,
                    candidates,
                    batch: trajectories,
                }
            });
            let plan = morris::TrajectoryPlan { morris, base, choice };
            let drawn = morris::sample_plan(parameters, &Groups::alone(parameters), &plan);
            drawn.map_err(|error| cannot_be_drawn(file, study, error))
        }
        (None, &Method::Correlation { samples, base, .. }) => {
            let varied = parameters.iter().filter(|parameter| parameter.domain.varies()).count();
            let points = Sequence::from(base).points(samples, varied, study.seed);
            let points = points.map_err(|error| cannot_be_drawn(file, study, error))?;
            Design::of_points(parameters, &points).map_err(|error| cannot_be_drawn(file, study, error))
        }
        (None, &Method::Fast { samples }) => {
            let (samples, harmonics) = (samples as u32, HARMONICS as u32);
            let drawn = fast::sample(parameters, &fast::Fast { samples, harmonics, seed: study.seed });
            drawn.map(|(design, _)| design).map_err(|error| cannot_be_drawn(file, study, error))
        }
        (None, &Method::Vbd { samples, second_order, base }) => {
            let samples = samples as u32;
            let saltelli = saltelli::Saltelli { samples, second_order, base, seed: study.seed };
            saltelli::sample(parameters, &saltelli).map_err(|error| cannot_be_drawn(file, study, error))
        }
    }
}

fn cannot_be_drawn(file: &Path, study: &Study, cause: impl Into<SamplingError>) -> PrepareError {
    PrepareError::Sampling {
        file: file.to_owned(),
        section: method_section(study),
        cause: Box::new(cause.into()),
    }
}

/// Returns the section of the study file that determines the parameter sets.
fn method_section(study: &Study) -> String {
    let phase = study.phase.or((!study.phases.is_empty()).then_some(1));
    phase.map_or_else(|| "method".to_owned(), |phase| format!("phase[{phase}]"))
}

/// Reads parameter sets from a file.
fn read_table(table: &Path, study: &Study, method: &Method) -> Result<Design, PrepareError> {
    let text = text::read(table)
        .map_err(|cause| PrepareError::UnreadableTable { table: table.to_owned(), cause })?;
    let parameters = &study.workflow.parameters;
    let rows = table::parse(&text, parameters)
        .map_err(|cause| PrepareError::Table { table: table.to_owned(), cause })?;
    Ok(design_of_rows(study, method, rows))
}

/// Returns the design of given parameter sets. Under the method `moat`, sets with complete Morris trajectories are
/// analyzed as trajectories.
fn design_of_rows(study: &Study, method: &Method, rows: Vec<Vec<Value>>) -> Design {
    let parameters = &study.workflow.parameters;
    let mut design = Design::of_rows(parameters, rows);
    if let Method::Moat { levels, .. } = method
        && let Ok(found) = Trajectories::recover(parameters, &design.evaluations, Some(*levels as u32))
        && !found.complete().is_empty()
    {
        design.structure = Structure::Trajectories(found);
    }
    design
}

/// Returns the image files of a study.
fn files(study: &Study) -> impl Iterator<Item = &Path> {
    let masks: &[PathBuf] = match &study.reference {
        ReferenceSource::Defaults => &[],
        ReferenceSource::Masks(masks) => masks,
    };
    study.tiles.iter().map(|tile| &tile.path).chain(masks).map(PathBuf::as_path)
}
