//! Method of an external study and its settings, from a file and from the command line. Command-line
//! arguments take precedence.

use crate::error::{MethodError, SettingLocation, SettingProblem};
use crate::problem::Problem;
use pleach_results::analysis::GivenDataAnalysis;
use pleach_sensitivity::sampling::points::Sequence;
use pleach_sensitivity::sampling::sampler::{SamplePurpose, Sampler};
use pleach_sensitivity::vbd::Estimator;
use pleach_sensitivity::{fast, pawn, rbd_fast};
use pleach_workflow::{BasePoints, MethodSpec};

/// A method with its settings.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ExternalMethod {
    /// Morris screening.
    Moat {
        /// Number of trajectories to draw. Unused for a sample read from a file.
        trajectories: u32,
        /// Number of levels of continuous parameters. Determines the size of their steps.
        levels: u32,
        /// Sequence of the base points. `None` draws them at random, with the step directions.
        base: Option<Sequence>,
        /// Number of candidate trajectories. The most distant of them are selected. `None` uses all drawn
        /// trajectories.
        candidates: Option<u32>,
    },
    /// Variance-based decomposition. For a sample read from a file, `second_order: None` means the order of
    /// the sample.
    Vbd {
        /// Whether the sample has rows for second-order indices. `None` draws no such rows.
        second_order: Option<bool>,
        /// Sampling of the base samples. Unused for a sample read from a file.
        base: BasePoints,
        /// Estimator of first-order and total indices. Unused for drawing a sample.
        estimator: Estimator,
    },
    /// Given-data methods.
    Columns(GivenDataAnalysis),
    /// eFAST.
    Fast {
        /// Number of harmonics summed for a first-order index. A curve needs more than 4·harmonics² rows.
        harmonics: u32,
    },
}

/// Requested method, with the keys of the file and of the arguments.
#[derive(Debug)]
pub struct MethodRequest<'a> {
    /// Requested method. Settings that neither the arguments nor the file give have their defaults.
    pub method: ExternalMethod,
    /// Number of bootstrap resamples, 0–100,000. 0 gives no confidence intervals. `None` if neither the arguments
    /// nor the file give it.
    pub resamples: Option<u32>,
    recipe: MethodSpec,
    kind: &'static str,
    problem: &'a Problem,
    /// Keys given on the command line.
    given: Vec<&'static str>,
}

/// Names of the methods, each with its allowed keys.
const METHODS: [(&str, &[&str]); 8] = [
    ("moat", &["sampler", "base", "trajectories", "levels", "candidates"]),
    ("vbd", &["sampler", "base", "samples", "second_order", "estimator", "resamples"]),
    ("correlation", &["sampler", "samples", "levels", "resamples"]),
    ("regression", &["sampler", "samples", "levels", "resamples"]),
    ("pawn", &["sampler", "samples", "slices", "resamples"]),
    ("delta", &["sampler", "samples", "resamples"]),
    ("fast", &["sampler", "samples", "harmonics", "resamples"]),
    ("rbd-fast", &["sampler", "samples", "harmonics", "resamples"]),
];

/// Default number of levels of a trajectory, as in study files.
const LEVELS: u32 = 20;
/// Default number of levels of a grid: the two bounds.
const GRID_LEVELS: u32 = 2;

/// Default number of trajectories, as in study files.
const TRAJECTORIES: u32 = 10;

/// Maximum number of resamples. More take hours and do not improve the intervals.
const MAX_RESAMPLES: u64 = 100_000;

impl<'a> MethodRequest<'a> {
    /// Creates the request from the arguments, or else from the file.
    ///
    /// # Errors
    /// [`MethodError`] if neither names a method, or if a setting does not belong to the method or is out of
    /// range.
    pub fn of(problem: &'a Problem, arguments: MethodSpec) -> Result<Self, MethodError> {
        let given = arguments.given();
        let named = arguments.kind.as_deref().or(problem.recipe.kind.as_deref());
        let (file, allowed) = (|| problem.file.clone(), || METHODS.map(|(name, _)| name).to_vec());
        let Some(named) = named else {
            return Err(MethodError::Missing { file: file(), allowed: allowed() });
        };
        let named = usual(named);
        let Some(&(kind, keys)) = METHODS.iter().find(|(name, _)| *name == named) else {
            let kind = named.to_owned();
            return Err(MethodError::Unknown { file: file(), kind, allowed: allowed() });
        };
        // Ignore the file's settings if they belong to another method.
        let mine = problem.recipe.kind.as_deref().is_none_or(|of_file| usual(of_file) == named);
        let of_file = if mine { problem.recipe.clone() } else { MethodSpec::default() };
        let recipe = merged(of_file, arguments);
        let mut wanted = Self {
            method: ExternalMethod::Columns(GivenDataAnalysis::Delta),
            resamples: None,
            recipe,
            kind,
            problem,
            given,
        };
        for key in wanted.recipe.given() {
            if key != "kind" && !keys.contains(&key) {
                return Err(wanted.fault(key, SettingProblem::OtherMethod { kind, keys }));
            }
        }
        wanted.resamples = wanted.number("resamples", wanted.recipe.resamples, 0, MAX_RESAMPLES)?;
        wanted.method = wanted.method()?;
        Ok(wanted)
    }

    fn method(&self) -> Result<ExternalMethod, MethodError> {
        let recipe = &self.recipe;
        Ok(match self.kind {
            "moat" => ExternalMethod::Moat {
                trajectories: self
                    .number("trajectories", recipe.trajectories, 1, 1_000_000)?
                    .unwrap_or(TRAJECTORIES),
                levels: self.number("levels", recipe.levels, 2, 100_000)?.unwrap_or(LEVELS),
                base: self.base_of_moat()?,
                candidates: self.number("candidates", recipe.candidates, 2, 2_000)?,
            },
            "vbd" => ExternalMethod::Vbd {
                second_order: recipe.second_order,
                base: self.base_of_vbd()?,
                estimator: self.estimator()?,
            },
            "fast" => {
                if let Some(name) = &recipe.sampler {
                    self.sampler_named("sampler", name, 1)?
                        .serves(SamplePurpose::Curves)
                        .map_err(|error| self.fault("sampler", error))?;
                }
                ExternalMethod::Fast { harmonics: self.harmonics(fast::HARMONICS)? }
            }
            "correlation" => ExternalMethod::Columns(GivenDataAnalysis::Correlation),
            "regression" => ExternalMethod::Columns(GivenDataAnalysis::Regression),
            "pawn" => {
                let slices = self.number("slices", recipe.slices, 2, 10_000)?.unwrap_or(pawn::SLICES as u32);
                ExternalMethod::Columns(GivenDataAnalysis::Pawn { slices })
            }
            "delta" => ExternalMethod::Columns(GivenDataAnalysis::Delta),
            _ => ExternalMethod::Columns(GivenDataAnalysis::RbdFast {
                harmonics: self.harmonics(rbd_fast::HARMONICS)?,
            }),
        })
    }

    /// Returns the sampler of a given-data method and its number of samples.
    ///
    /// # Errors
    /// [`MethodError`] if the number is missing or the sampler does not serve the method.
    pub(crate) fn sampler(&self) -> Result<(Sampler, u32), MethodError> {
        let named = self.recipe.sampler.as_deref().unwrap_or("lhs");
        // The levels of a grid determine its number of samples.
        let is_grid = named.ends_with("factorial");
        let samples = if is_grid { 0 } else { self.samples()? };
        let sampler = self.sampler_named("sampler", named, samples)?;
        let wanted = match self.method {
            ExternalMethod::Columns(GivenDataAnalysis::Correlation | GivenDataAnalysis::Regression) => {
                SamplePurpose::Correlation
            }
            ExternalMethod::Columns(_) => SamplePurpose::Distribution,
            ExternalMethod::Moat { .. } => SamplePurpose::Moat,
            ExternalMethod::Vbd { .. } => SamplePurpose::Vbd,
            ExternalMethod::Fast { .. } => SamplePurpose::Curves,
        };
        sampler.serves(wanted).map_err(|error| self.fault("sampler", error))?;
        Ok((sampler, samples))
    }

    /// Returns the requested number of samples.
    ///
    /// # Errors
    /// [`MethodError`] if it is missing or out of range.
    pub(crate) fn samples(&self) -> Result<u32, MethodError> {
        let samples = self.number("samples", self.recipe.samples, 1, 10_000_000)?;
        samples.ok_or_else(|| MethodError::NoSamples { file: self.problem.file.clone(), kind: self.kind })
    }

    fn sampler_named(&self, key: &'static str, name: &str, samples: u32) -> Result<Sampler, MethodError> {
        let levels = self.number("levels", self.recipe.levels, 1, 1_000_000)?.unwrap_or(GRID_LEVELS);
        Sampler::named(name, samples, levels)
            .ok_or_else(|| self.fault(key, unknown_name(name, &Sampler::NAMES)))
    }

    /// Returns the key and the name of the base points. `None` if neither key is given or the name is the
    /// method's `own` sampler. Either of the keys `base` and `sampler` may name them, but not both.
    fn base(&self, own: &str, wanted: SamplePurpose) -> Result<Option<(&'static str, &str)>, MethodError> {
        let (key, name) = match (&self.recipe.base, &self.recipe.sampler) {
            (Some(_), Some(_)) => return Err(self.fault("sampler", SettingProblem::BaseTwice)),
            (Some(base), None) => ("base", base.as_str()),
            (None, Some(sampler)) => ("sampler", sampler.as_str()),
            (None, None) => return Ok(None),
        };
        if name == own {
            return Ok(None);
        }
        let sampler = self.sampler_named(key, name, 1)?;
        sampler.serves(wanted).map_err(|error| self.fault(key, error))?;
        Ok(Some((key, name)))
    }

    fn base_of_moat(&self) -> Result<Option<Sequence>, MethodError> {
        let Some((key, name)) = self.base("morris", SamplePurpose::Moat)? else { return Ok(None) };
        match self.sampler_named(key, name, self.recipe.trajectories.unwrap_or(1) as u32)? {
            Sampler::Points(sequence) => Ok(Some(sequence)),
            Sampler::Factorial { .. } | Sampler::Fraction(_) => Ok(None),
        }
    }

    fn base_of_vbd(&self) -> Result<BasePoints, MethodError> {
        let Some((key, name)) = self.base("saltelli", SamplePurpose::Vbd)? else {
            return Ok(BasePoints::default());
        };
        let found = BasePoints::ALL.into_iter().find(|base| base.name() == name);
        found.ok_or_else(|| {
            let allowed = BasePoints::ALL.map(BasePoints::name).to_vec();
            self.fault(key, SettingProblem::NoPairs { name: name.to_owned(), allowed })
        })
    }

    fn estimator(&self) -> Result<Estimator, MethodError> {
        match self.recipe.estimator.as_deref() {
            None | Some("saltelli") => Ok(Estimator::Saltelli),
            Some("jansen") => Ok(Estimator::Jansen),
            Some("janon") => Ok(Estimator::Janon),
            Some(other) => {
                Err(self.fault("estimator", unknown_name(other, &["saltelli", "jansen", "janon"])))
            }
        }
    }

    fn harmonics(&self, usual: usize) -> Result<u32, MethodError> {
        Ok(self.number("harmonics", self.recipe.harmonics, 1, 1_000)?.unwrap_or(usual as u32))
    }

    fn number(
        &self,
        key: &'static str,
        number: Option<u64>,
        low: u64,
        high: u64,
    ) -> Result<Option<u32>, MethodError> {
        match number {
            Some(given) if !(low..=high).contains(&given) => {
                Err(self.fault(key, SettingProblem::OutOfRange { given, low, high }))
            }
            number => Ok(number.map(|number| number as u32)),
        }
    }

    fn fault(&self, key: &'static str, problem: impl Into<SettingProblem>) -> MethodError {
        let location = if self.given.contains(&key) {
            SettingLocation::Option(key)
        } else {
            SettingLocation::Field { file: self.problem.file.clone(), key }
        };
        MethodError::Setting { location, problem: problem.into() }
    }

    /// Returns the name of the method.
    pub fn kind(&self) -> &'static str {
        self.kind
    }
}

/// Returns the name of a method used in this module. `efast` is an alias of `fast`.
fn usual(name: &str) -> &str {
    if name == "efast" { "fast" } else { name }
}

fn unknown_name(name: &str, allowed: &[&'static str]) -> SettingProblem {
    SettingProblem::UnknownName { name: name.to_owned(), allowed: allowed.to_vec() }
}

/// Merges the keys of the arguments with those of the file. Arguments take precedence.
fn merged(file: MethodSpec, given: MethodSpec) -> MethodSpec {
    // `sampler` on the command line replaces `base` in the file: only one of the keys may be set.
    let base = if given.sampler.is_some() { None } else { given.base.or(file.base) };
    MethodSpec {
        kind: given.kind.or(file.kind),
        sampler: given.sampler.or(file.sampler),
        base,
        samples: given.samples.or(file.samples),
        trajectories: given.trajectories.or(file.trajectories),
        levels: given.levels.or(file.levels),
        candidates: given.candidates.or(file.candidates),
        second_order: given.second_order.or(file.second_order),
        estimator: given.estimator.or(file.estimator),
        slices: given.slices.or(file.slices),
        harmonics: given.harmonics.or(file.harmonics),
        resamples: given.resamples.or(file.resamples),
        file: given.file.or(file.file),
    }
}
