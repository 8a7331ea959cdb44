//! Prepares a study: reads its file, draws or reads its parameter sets, and reads the headers of its image files.
//!
//! The preparation reports every error of a study that is detectable before it runs.

pub(crate) mod annotations;
mod digests;
mod parts;
mod room;

use crate::builtin;
use crate::exit::{CommandError, CommandResult};
use crate::file_digest;
use crate::slides;
use digests::{digest_of, digests};
use pleach_dispatch::cost_model::CostModel;
use pleach_pathology::image_io;
use pleach_planner::{PlanBuilder, PlanTile, PlanningInput, identity};
use pleach_reuse::Merging;
use pleach_sensitivity::fast::HARMONICS;
use pleach_sensitivity::groups::Groups;
use pleach_sensitivity::sampling::points::Sequence;
use pleach_sensitivity::sampling::{Design, Structure, fast, morris, saltelli};
use pleach_sensitivity::table;
use pleach_sensitivity::trajectory::Trajectories;
use pleach_workflow::{
    Annotations, Method, ReferenceSource, RegionDecl, Registry, Study, Value, Workflow, text,
};
use std::cell::OnceCell;
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// Name of the digest part that covers the paths of the image files.
const PLACES: &str = "list of image files";

/// Study that can be planned.
#[derive(Debug)]
pub(crate) struct PreparedStudy {
    pub(crate) study: Study,
    pub(crate) registry: Registry,
    /// Parameter sets of evaluations 1, 2, ….
    pub(crate) design: Design,
    /// All parameter sets to run. Evaluation 0 (the defaults) is the first, if it is run.
    pub(crate) evaluations: Vec<Vec<Value>>,
    /// File that defines the parameter sets: a table or the study file.
    parameter_sets: PathBuf,
    pub(crate) tiles: Vec<PlanTile>,
    /// Cause for each unreadable tile. Runs on these tiles fail.
    unreadable: Vec<String>,
    /// Cost model of operations: the declared costs until measurements are loaded.
    pub(crate) costs: CostModel,
    /// See [`PreparedStudy::file_digests`].
    file_digests: OnceCell<Vec<Option<[u8; 32]>>>,
    /// Digests of the parts of the study's definition, by name.
    digests: Vec<(&'static str, String)>,
    /// Digest of the study's definition. It is independent of planning and execution options.
    pub(crate) digest: String,
}

/// Study as a client submitted it, after reading its files.
#[derive(Debug)]
pub(crate) struct SubmittedStudy {
    pub(crate) study: Study,
    pub(crate) evaluations: Vec<Vec<Value>>,
    /// Whether the parameter sets come from a table instead of the method.
    pub(crate) is_table: bool,
    pub(crate) parameter_sets: PathBuf,
    pub(crate) tiles: Vec<PlanTile>,
    pub(crate) file_digests: Vec<Option<[u8; 32]>>,
}

impl PreparedStudy {
    /// Reads a study. With `table`, that file provides the parameter sets.
    ///
    /// # Errors
    /// [`CommandError::Input`] names the file, the field, the value and the allowed values.
    pub(crate) fn load(file: &Path, table: Option<&Path>) -> CommandResult<Self> {
        let prepared = Self::load_with_any_values(file, table)?;
        prepared.check_runnable()?;
        Ok(prepared)
    }

    /// Reads a study that may have values that operations refuse. Such a study can be planned but not run.
    ///
    /// # Errors
    /// As [`PreparedStudy::load`].
    pub(crate) fn load_with_any_values(file: &Path, table: Option<&Path>) -> CommandResult<Self> {
        let registry = builtin::registry();
        let builtin = |name: &str| builtin::workflow(name, &registry);
        let mut study =
            Study::load(file, &registry, builtin, &builtin::BUILT_IN).map_err(CommandError::input)?;
        if let Some(slides) = &study.slides {
            let tiles = slides::cut(file, &study, slides)?;
            study.cut(tiles);
        }
        let parts = [("phases", !study.phases.is_empty()), ("until", study.until.is_some())];
        if let (Some(table), Some((part, _))) = (table, parts.iter().find(|(_, there)| *there)) {
            return Err(CommandError::Input(format!(
                "--parameter-sets {}: {} has {part}, whose parameter sets are drawn; a study without is allowed",
                table.display(),
                file.display()
            )));
        }
        room::check(file, &study, table)?;
        let design = design(file, &study, table)?;
        let evaluations = evaluations_of(&study, &design, &registry);
        let parameter_sets = match (table, &study.method) {
            (Some(table), _) => table,
            (None, Method::Table { file }) => file,
            (
                None,
                Method::Moat { .. } | Method::Vbd { .. } | Method::Correlation { .. } | Method::Fast { .. },
            ) => file,
        };
        let parameter_sets = parameter_sets.to_owned();
        let looked = look_at_tiles(file, &study)?;
        let (tiles, unreadable) = (looked.tiles, looked.unreadable);
        study.annotations = looked.annotations;
        annotations::check(file, &study)?;
        let digests = digests(&study, &design, &evaluations);
        let digest = digest_of(digests.iter().map(|(_, digest)| digest.as_bytes()));
        let file_digests = OnceCell::new();
        Ok(Self {
            study,
            registry,
            design,
            evaluations,
            parameter_sets,
            tiles,
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
    /// [`CommandError::Input`] if the parameter sets are not those of the method, or if an operation refuses a value.
    pub(crate) fn received(received: SubmittedStudy) -> CommandResult<Self> {
        let SubmittedStudy { study, evaluations: rows, is_table, parameter_sets, tiles, file_digests } =
            received;
        let design = if is_table {
            design_of_rows(&study, &study.method, rows)
        } else {
            room::check(&parameter_sets, &study, None)?;
            let drawn = design(&parameter_sets, &study, None)?;
            if drawn.evaluations != rows {
                let name = &study.name;
                return Err(CommandError::Input(format!(
                    "study {name}: its parameter sets are not those of its method and seed"
                )));
            }
            drawn
        };
        let registry = builtin::registry();
        let evaluations = evaluations_of(&study, &design, &registry);
        let digests = digests(&study, &design, &evaluations);
        let digest = digest_of(digests.iter().map(|(_, digest)| digest.as_bytes()));
        let prepared = Self {
            study,
            registry,
            design,
            evaluations,
            parameter_sets,
            tiles,
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
    pub(crate) fn warnings(&self) -> impl Iterator<Item = String> {
        self.unreadable.iter().map(|cause| format!("warning: {cause}; all runs on this tile will fail"))
    }

    /// Returns the file that defines the parameter sets.
    pub(crate) fn parameter_sets(&self) -> &Path {
        &self.parameter_sets
    }

    /// Returns the image files of the study: the tiles, then the references if those are files.
    pub(crate) fn files(&self) -> impl Iterator<Item = &Path> {
        files(&self.study)
    }

    /// Returns the digests of all parts that the results depend on, by name: the parts of the study's definition and
    /// the content of the image files. Always returns `Ok`.
    pub(crate) fn digests(&self) -> CommandResult<Vec<(&'static str, String)>> {
        let mut content = blake3::Hasher::new();
        // Unreadable files are left out: they only fail their own runs, in every process.
        self.file_digests().iter().flatten().for_each(|file| {
            content.update(file);
        });
        let content = ("image files", content.finalize().to_hex()[..32].to_owned());
        Ok(self.digests.iter().cloned().chain([content]).collect())
    }

    /// Returns the digests of the image files' content: of the tiles, then of the references if those are files. `None`
    /// for an unreadable file.
    pub(crate) fn file_digests(&self) -> &[Option<[u8; 32]>] {
        self.file_digests.get_or_init(|| {
            // The tiles of a slide are one file.
            let mut known: HashMap<&Path, Option<[u8; 32]>> = HashMap::new();
            files(&self.study)
                .map(|file| *known.entry(file).or_insert_with(|| file_digest::digest(file)))
                .collect()
        })
    }

    /// Returns whether evaluation 0, the defaults, is run.
    pub(crate) fn defaults_run(&self) -> bool {
        self.evaluations.len() > self.design.evaluations.len()
    }

    /// Returns whether evaluation 0 is the reference.
    pub(crate) fn reference_run(&self) -> bool {
        self.defaults_run() && is_own_reference(&self.study)
    }

    pub(crate) fn planning_input(&self) -> PlanningInput<'_> {
        PlanningInput {
            workflow: &self.study.workflow,
            registry: &self.registry,
            evaluations: &self.evaluations,
            defaults_run: self.defaults_run(),
            reference_run: self.reference_run(),
            tiles: &self.tiles,
            costs: &self.costs,
        }
    }

    /// Reorders the tasks of each stage so that the instances of this study share the most tasks.
    ///
    /// # Errors
    /// [`CommandError::Input`] if the study has more runs than ids.
    pub(crate) fn order_tasks(&mut self) -> CommandResult {
        let builder =
            PlanBuilder::set_up(self.planning_input(), Merging::Merged).map_err(CommandError::input)?;
        let orders = builder.best_orders();
        for (stage, order) in self.study.workflow.stages.iter_mut().zip(orders) {
            *stage = stage.in_order(&order).ok_or_else(|| CommandError::defect("an order that is none"))?;
        }
        Ok(())
    }

    /// Checks that the operations accept all values of the parameter sets. All constructors of runnable
    /// studies end with it.
    ///
    /// # Errors
    /// [`CommandError::Input`] names the file, the evaluation, the parameter, its value and the values that the
    /// operation accepts.
    fn check_runnable(&self) -> CommandResult {
        let first = usize::from(!self.defaults_run());
        for stage in &self.study.workflow.stages {
            for task in &stage.tasks {
                let Some(operation) = self.registry.get(&task.operation, task.version) else { continue };
                for (argument, index) in operation.arguments().iter().zip(stage.task_parameters(task)) {
                    let bad = self.evaluations.iter().position(|e| !argument.accepts.contains(e[index]));
                    if let Some(evaluation) = bad {
                        return Err(CommandError::Input(format!(
                            "{}: evaluation {}: parameter {} = {}: operation {} accepts {}",
                            self.parameter_sets.display(),
                            evaluation + first,
                            self.study.workflow.parameters[index].name,
                            self.evaluations[evaluation][index],
                            operation.name(),
                            argument.accepts,
                        )));
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
fn evaluations_of(study: &Study, design: &Design, registry: &Registry) -> Vec<Vec<Value>> {
    let workflow = &study.workflow;
    let defaults: Vec<Value> = workflow.parameters.iter().map(|parameter| parameter.default).collect();
    let is_run = workflow.reference.is_some()
        && (is_own_reference(study) || is_accepted(workflow, registry, &defaults));
    let defaults = is_run.then_some(defaults);
    defaults.into_iter().chain(design.evaluations.iter().cloned()).collect()
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

fn design(file: &Path, study: &Study, table: Option<&Path>) -> CommandResult<Design> {
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

fn cannot_be_drawn(file: &Path, study: &Study, error: impl std::error::Error) -> CommandError {
    let phase = study.phase.or((!study.phases.is_empty()).then_some(1));
    let section = phase.map_or_else(|| "method".to_owned(), |phase| format!("phase[{phase}]"));
    CommandError::Input(format!("{}: {section}: {error}", file.display()))
}

/// Reads parameter sets from a file.
fn read_table(table: &Path, study: &Study, method: &Method) -> CommandResult<Design> {
    let fail = |text: String| CommandError::Input(format!("{}: {text}", table.display()));
    let text = text::read(table).map_err(|error| fail(format!("failed to read: {error}")))?;
    let parameters = &study.workflow.parameters;
    let rows = table::parse(&text, parameters).map_err(|error| fail(error.to_string()))?;
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

/// Tiles as described by their headers.
struct Looked {
    tiles: Vec<PlanTile>,
    unreadable: Vec<String>,
    annotations: Vec<Annotations>,
}

/// Reads the size of every image from its header. Polygon files are read in full. Slides are not read again after they
/// were cut into tiles. An unreadable tile counts as 1 pixel in the plan, because its runs end when they read it.
///
/// # Errors
/// [`CommandError::Input`] if a slide is listed as a tile, if a reference does not match its tile, or if no tile is
/// readable.
fn look_at_tiles(study_file: &Path, study: &Study) -> CommandResult<Looked> {
    let (mut tiles, mut annotations) = (Vec::with_capacity(study.tiles.len()), Vec::new());
    let mut unreadable = Vec::new();
    let field =
        |problem: &str| CommandError::Input(format!("{}: input.tiles: {problem}", study_file.display()));
    for (number, file) in study.tiles.iter().enumerate() {
        // Every workflow input is the tile itself, except the core of a slide's tile.
        let key = |input: &RegionDecl| identity::of_tile(&input.region, &file.path, file.slide.as_ref());
        let mut inputs: Vec<_> = study.workflow.inputs.iter().map(key).collect();
        if let Some(part) = &file.slide {
            tiles.push(PlanTile { pixels: part.pixels(), inputs });
            continue;
        }
        let info = match image_io::probe(&file.path) {
            Ok(info) if !slides::has_name_of_several_files(&file.path) => Some(info),
            Ok(_) => return Err(field(&slides::mistaken(&file.path))),
            Err(error) if slides::is_slide(&file.path, &error) => {
                return Err(field(&slides::mistaken(&file.path)));
            }
            Err(error) => {
                unreadable.push(error.to_string());
                None
            }
        };
        let pixels = info.map_or(1, |info| u64::from(info.width_px) * u64::from(info.height_px));
        if let ReferenceSource::Masks(masks) = &study.reference {
            let mask = &masks[number];
            if let Some(info) = info {
                let found = image_io::check_reference(mask, &file.path, info).map_err(CommandError::input)?;
                annotations.extend(found.map(|found| Annotations { tile: number, ..found }));
            }
            // A reference read as a mask and as a label map is two regions.
            let read_as = study.workflow.reference_elements();
            inputs.extend(
                read_as.iter().map(|as_type| identity::of_file(&format!("reference {as_type}"), mask)),
            );
        }
        tiles.push(PlanTile { pixels, inputs });
    }
    match unreadable.first() {
        Some(first) if unreadable.len() == tiles.len() && tiles.len() > 1 => {
            Err(CommandError::Input(format!("{first}; none of the {} tiles can be read", tiles.len())))
        }
        Some(first) if unreadable.len() == tiles.len() => Err(CommandError::Input(first.clone())),
        _ => Ok(Looked { tiles, unreadable, annotations }),
    }
}

/// Returns the image files of a study.
fn files(study: &Study) -> impl Iterator<Item = &Path> {
    let masks: &[PathBuf] = match &study.reference {
        ReferenceSource::Defaults => &[],
        ReferenceSource::Masks(masks) => masks,
    };
    study.tiles.iter().map(|tile| &tile.path).chain(masks).map(PathBuf::as_path)
}
