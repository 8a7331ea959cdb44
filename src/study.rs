//! A study made ready: its file read, its parameter sets drawn or read, its files looked at.
//!
//! Everything that can be wrong with a study before it runs is found here.

use crate::application;
use crate::exit::{Outcome, Stop};
use crate::weave::{Material, TileFacts, identity};
use pleach_pathology::tile;
use pleach_sensitivity::sampling::{Design, Structure, morris};
use pleach_sensitivity::table;
use pleach_sensitivity::trajectory::Trajectories;
use pleach_workflow::{Method, Reference, Registry, Study, Value};
use std::path::{Path, PathBuf};

/// A study that can be planned.
#[derive(Debug)]
pub(crate) struct Prepared {
    pub(crate) study: Study,
    pub(crate) registry: Registry,
    /// The parameter sets of evaluations 1, 2, ….
    pub(crate) design: Design,
    /// All parameter sets to run: evaluation 0 (the defaults) first where that is the reference.
    pub(crate) evaluations: Vec<Vec<Value>>,
    /// The file that says which: a table, or the study file.
    parameter_sets: PathBuf,
    pub(crate) tiles: Vec<TileFacts>,
    /// A digest of what is asked: the same for every way of computing it.
    pub(crate) digest: String,
}

impl Prepared {
    /// Reads a study; with `table`, its parameter sets come from that file.
    ///
    /// # Errors
    /// [`Stop::Input`], naming file, field, value and what is allowed.
    pub(crate) fn load(file: &Path, table: Option<&Path>) -> Outcome<Self> {
        let registry = application::registry();
        let builtin = |name: &str| application::workflow(name, &registry);
        let study = Study::load(file, &registry, builtin, &application::BUILT_IN).map_err(Stop::input)?;
        let design = design(file, &study, table)?;
        let reference_run = study.reference == Reference::Defaults && study.workflow.reference.is_some();
        let defaults = || study.workflow.parameters.iter().map(|parameter| parameter.default).collect();
        let mut evaluations: Vec<Vec<Value>> = reference_run.then(defaults).into_iter().collect();
        evaluations.extend(design.evaluations.iter().cloned());
        let parameter_sets = match (table, &study.method) {
            (Some(table), _) => table,
            (None, Method::Table { file }) => file,
            (None, Method::Moat { .. }) => file,
        };
        let parameter_sets = parameter_sets.to_owned();
        let tiles = tiles(&study)?;
        let digest = digest(&study, &evaluations);
        Ok(Self { study, registry, design, evaluations, parameter_sets, tiles, digest })
    }

    /// Whether evaluation 0 is run and serves as reference.
    pub(crate) fn reference_run(&self) -> bool {
        self.evaluations.len() > self.design.evaluations.len()
    }

    pub(crate) fn material(&self) -> Material<'_> {
        Material {
            workflow: &self.study.workflow,
            registry: &self.registry,
            evaluations: &self.evaluations,
            reference_run: self.reference_run(),
            tiles: &self.tiles,
        }
    }

    /// Whether every parameter set can be run: a plan may hold values that an operation refuses, a run may not.
    ///
    /// # Errors
    /// [`Stop::Input`] that names the file, the evaluation, the parameter, its value and what the operation accepts.
    pub(crate) fn check_runnable(&self) -> Outcome {
        let first = usize::from(!self.reference_run());
        for stage in &self.study.workflow.stages {
            for task in &stage.tasks {
                let Some(operation) = self.registry.get(&task.operation, task.version) else { continue };
                for (argument, index) in operation.arguments().iter().zip(stage.task_parameters(task)) {
                    let bad = self.evaluations.iter().position(|e| !argument.accepts.contains(e[index]));
                    if let Some(evaluation) = bad {
                        return Err(Stop::Input(format!(
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

fn design(file: &Path, study: &Study, table: Option<&Path>) -> Outcome<Design> {
    let parameters = &study.workflow.parameters;
    match (table, &study.method) {
        (Some(table), method) => read_table(table, study, method),
        (None, method @ Method::Table { file }) => read_table(file, study, method),
        (None, Method::Moat { trajectories, levels }) => {
            let (trajectories, levels) = (*trajectories as u32, *levels as u32);
            let morris = morris::Morris { trajectories, levels, seed: study.seed };
            morris::sample(parameters, &morris)
                .map_err(|error| Stop::Input(format!("{}: method: {error}", file.display())))
        }
    }
}

/// Parameter sets from a file. A table that holds Morris trajectories is analysed as such.
fn read_table(table: &Path, study: &Study, method: &Method) -> Outcome<Design> {
    let fail = |text: String| Stop::Input(format!("{}: {text}", table.display()));
    let text = std::fs::read_to_string(table).map_err(|error| fail(format!("failed to read: {error}")))?;
    let parameters = &study.workflow.parameters;
    let rows = table::parse(&text, parameters).map_err(|error| fail(error.to_string()))?;
    let mut design = Design::of_rows(parameters, rows);
    if let Method::Moat { levels, .. } = method
        && let Ok(found) = Trajectories::recover(parameters, &design.evaluations, Some(*levels as u32))
        && !found.complete().is_empty()
    {
        design.structure = Structure::Trajectories(found);
    }
    Ok(design)
}

/// Reads the header of every image: sizes, and whether it is an image at all.
fn tiles(study: &Study) -> Outcome<Vec<TileFacts>> {
    let mut tiles = Vec::with_capacity(study.tiles.len());
    for (number, file) in study.tiles.iter().enumerate() {
        let info = tile::probe(&file.path).map_err(Stop::input)?;
        let pixels = u64::from(info.width_px) * u64::from(info.height_px);
        // Every workflow input is the tile itself: other inputs come with slides.
        let inputs = study.workflow.inputs.iter().map(|input| identity::of_file(&input.region, &file.path));
        let mut inputs: Vec<_> = inputs.collect();
        if let Reference::Masks(masks) = &study.reference {
            let mask = &masks[number];
            let found = tile::probe(mask).map_err(Stop::input)?;
            if (found.width_px, found.height_px) != (info.width_px, info.height_px) {
                return Err(Stop::Input(format!(
                    "{}: {} x {} px, but its tile {} has {} x {} px; a reference mask has its tile's size",
                    mask.display(),
                    found.width_px,
                    found.height_px,
                    file.path.display(),
                    info.width_px,
                    info.height_px,
                )));
            }
            inputs.push(identity::of_file("reference", mask));
        }
        tiles.push(TileFacts { pixels, inputs });
    }
    Ok(tiles)
}

fn digest(study: &Study, evaluations: &[Vec<Value>]) -> String {
    let mut hash = blake3::Hasher::new();
    let mut part = |bytes: &[u8]| {
        hash.update(&(bytes.len() as u64).to_le_bytes());
        hash.update(bytes);
    };
    part(study.name.as_bytes());
    part(&study.seed.to_le_bytes());
    part(study.metric_name().as_bytes());
    // The workflow's Debug form names every operation, version, parameter and connection.
    part(format!("{:?}", study.workflow).as_bytes());
    // What a table holds is below; where it lies does not matter.
    match study.method {
        Method::Moat { trajectories, levels } => part(format!("moat {trajectories} {levels}").as_bytes()),
        Method::Table { .. } => part(b"table"),
    }
    let masks: &[PathBuf] = match &study.reference {
        Reference::Defaults => &[],
        Reference::Masks(masks) => masks,
    };
    part(&[u8::from(masks.is_empty())]);
    for file in study.tiles.iter().map(|tile| &tile.path).chain(masks) {
        // The same file from whichever folder the command is given.
        let place = file.canonicalize().unwrap_or_else(|_| file.clone());
        part(place.as_os_str().as_encoded_bytes());
    }
    for value in evaluations.iter().flatten() {
        part(value.to_string().as_bytes());
    }
    hash.finalize().to_hex()[..32].to_owned()
}
