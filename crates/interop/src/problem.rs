//! Reads the parameters of an external model from any of the supported file formats.

use crate::error::{ImportFileError, ImportProblem, ProblemError};
use pleach_sensitivity::groups::Groups;
use pleach_sensitivity::import::{
    Imported, ImportedMethod, ImportedParameter, ImportedRange, ImportedSampler,
};
use pleach_sensitivity::{dakota, problem};
use pleach_study::{Defect, builtin};
use pleach_workflow::{
    Aggregate, MethodSpec, Parameter, ParameterSpace, ProgramParameter, Registry, StudyError, text,
};
use std::path::{Path, PathBuf};

/// Parameters, and the method that the file names.
#[derive(Debug)]
pub struct Problem {
    pub(crate) file: PathBuf,
    /// Seed of all random numbers. 0 if the file names none.
    pub seed: u64,
    /// All parameters of the file, varying or fixed.
    pub parameters: Vec<Parameter>,
    /// Group of each parameter. A parameter that moves alone forms a group of its own name.
    labels: Vec<String>,
    pub(crate) recipe: MethodSpec,
    /// Declared responses with their aggregation over tiles.
    pub(crate) metrics: Vec<(String, Aggregate)>,
}

impl Problem {
    /// Reads a file. Its extension determines the format: a study, a SALib problem, a Dakota input or a
    /// parameter file.
    ///
    /// # Errors
    /// [`ProblemError`] with the file, the field, its value and the allowed values.
    pub fn load(file: &Path, registry: &Registry) -> Result<Self, ProblemError> {
        let ending = file.extension().map(|ending| ending.to_string_lossy().to_ascii_lowercase());
        if ending.as_deref() == Some("toml") {
            return Ok(Self::of_study(file, registry)?);
        }
        let imported = import(file)?;
        let parameters = imported.parameters().map_err(|error| invalid(file, error))?;
        let label = |p: &ImportedParameter| p.group.clone().unwrap_or_else(|| p.name.clone());
        let labels = imported.parameters.iter().map(label).collect();
        let (file, seed, recipe) = (file.to_owned(), imported.seed.unwrap_or(0), recipe(&imported));
        Ok(Self { file, seed, parameters, labels, recipe, metrics: Vec::new() })
    }

    fn of_study(file: &Path, registry: &Registry) -> Result<Self, StudyError> {
        let builtin = |name: &str| builtin::workflow(name, registry);
        Ok(Self::of_space(file, ParameterSpace::load(file, registry, builtin, &builtin::BUILT_IN)?))
    }

    /// Reads a study file whose parameters are settings of a program.
    ///
    /// # Errors
    /// [`StudyError`] with the file, the field, its value and the allowed values.
    pub fn of_program(file: &Path, known: &[ProgramParameter]) -> Result<Self, StudyError> {
        Ok(Self::of_space(file, ParameterSpace::of_program(file, known)?))
    }

    fn of_space(file: &Path, space: ParameterSpace) -> Self {
        let ParameterSpace { seed, parameters, groups, method, metrics } = space;
        let names = || parameters.iter().map(|parameter| parameter.name.clone()).collect();
        let labels = groups.unwrap_or_else(names);
        Self { file: file.to_owned(), seed, parameters, labels, recipe: method, metrics }
    }

    /// Returns the groups of the parameters at `places`.
    ///
    /// # Errors
    /// [`Defect`] if labels and parameters differ in number.
    pub(crate) fn groups_of(&self, places: &[usize]) -> Result<Groups, Defect> {
        let parameters: Vec<Parameter> = places.iter().map(|&place| self.parameters[place].clone()).collect();
        let labels: Vec<String> = places.iter().map(|&place| self.labels[place].clone()).collect();
        Groups::labeled(&parameters, &labels).map_err(Defect::new)
    }

    /// Returns the groups of all parameters.
    ///
    /// # Errors
    /// [`Defect`] if labels and parameters differ in number.
    pub(crate) fn groups(&self) -> Result<Groups, Defect> {
        Groups::labeled(&self.parameters, &self.labels).map_err(Defect::new)
    }
}

/// Reads a file in the format of another program: SALib or Dakota.
///
/// # Errors
/// [`ImportFileError`] with the file, the position and the allowed values.
pub fn import(file: &Path) -> Result<Imported, ImportFileError> {
    let content = text::read(file).map_err(|error| invalid(file, ImportProblem::Unreadable(error)))?;
    let ending = file.extension().map(|ending| ending.to_string_lossy().to_ascii_lowercase());
    let imported = match ending.as_deref() {
        Some("json") => problem::parse(&content).map_err(ImportProblem::from),
        Some("in") => dakota::parse(&content).map_err(ImportProblem::from),
        Some("txt" | "csv" | "tsv") => problem::parse_file(&content).map_err(ImportProblem::from),
        _ => Err(ImportProblem::UnknownFormat),
    };
    imported.map(with_levels).map_err(|problem| invalid(file, problem))
}

fn invalid(file: &Path, problem: impl Into<ImportProblem>) -> ImportFileError {
    ImportFileError { file: file.to_owned(), problem: Box::new(problem.into()) }
}

/// Converts the levels of a grid to lists of values if their numbers differ between parameters.
fn with_levels(mut imported: Imported) -> Imported {
    if imported.method == Some(ImportedMethod::Grid) && grid_levels(&imported).is_none() {
        for parameter in imported.parameters.iter_mut().filter(|parameter| !parameter.rests()) {
            let (ImportedRange::Reals { low, high }, Some(partitions)) =
                (&parameter.range, parameter.partitions)
            else {
                continue;
            };
            let (low, width) = (*low, high - low);
            let level = |level: u64| low + width * level as f64 / partitions as f64;
            parameter.range =
                ImportedRange::Set { integers: false, values: (0..=partitions).map(level).collect() };
        }
    }
    imported
}

/// Returns the number of levels of a grid. `None` if it differs between varying parameters.
fn grid_levels(imported: &Imported) -> Option<u64> {
    let mut varying = imported.parameters.iter().filter(|parameter| !parameter.rests());
    let first = varying.next()?.partitions?;
    varying.all(|parameter| parameter.partitions == Some(first)).then_some(first + 1)
}

/// Returns the method of an imported file as pleach's keys.
pub fn recipe(imported: &Imported) -> MethodSpec {
    let sampler = imported.sampler.map(ImportedSampler::name);
    let base = MethodSpec { samples: imported.samples, ..MethodSpec::default() };
    let kind = |kind: &str| Some(kind.to_owned());
    let sampler = |recipe: MethodSpec| MethodSpec { sampler: sampler.map(str::to_owned), ..recipe };
    match imported.method {
        None => MethodSpec::default(),
        Some(ImportedMethod::Moat { .. }) => MethodSpec {
            kind: kind("moat"),
            trajectories: imported.trajectories(),
            levels: imported.levels(),
            ..MethodSpec::default()
        },
        Some(ImportedMethod::Vbd) => {
            let drawn = imported.sampler.map(|sampler| sampler.name().to_owned());
            MethodSpec { kind: kind("vbd"), base: drawn, ..base }
        }
        Some(ImportedMethod::Sampling) => sampler(MethodSpec { kind: kind("correlation"), ..base }),
        Some(ImportedMethod::Grid) => sampler(MethodSpec {
            kind: kind("correlation"),
            levels: grid_levels(imported),
            ..MethodSpec::default()
        }),
    }
}
