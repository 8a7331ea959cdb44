//! A study written for another program, in neutral terms: its parameters, their ranges, method and sampler.
//!
//! [`crate::files::dakota`] and [`crate::files::problem`] read files into it. The caller maps it to a pleach study. Values are
//! kept as written.

mod sections;

use crate::design::groups::{GroupError, Groups};
use pleach_workflow::{Distribution, Domain, DomainError, Parameter, Value, ValueType};
use thiserror::Error;

/// Contents of a file.
#[derive(Clone, Debug, PartialEq)]
pub struct Imported {
    /// Method. `None` for files with parameters only.
    pub method: Option<ImportedMethod>,
    /// Sampler. `None` for files without one.
    pub sampler: Option<ImportedSampler>,
    /// Seed of the other program, whose random numbers differ from pleach's.
    pub seed: Option<u64>,
    /// Requested evaluations, or base samples of a variance-based decomposition.
    pub samples: Option<u64>,
    /// The parameters, at least one.
    pub parameters: Vec<ImportedParameter>,
    /// Contradictions in the file and how they were resolved, one line each.
    pub notes: Vec<String>,
}

/// Method of an imported study.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImportedMethod {
    /// Morris one-at-a-time. `partitions` is one less than Morris' levels, as Dakota counts.
    Moat {
        /// Partitions of each range, if given.
        partitions: Option<u64>,
    },
    /// Variance-based decomposition.
    Vbd,
    /// Responses at sampled points, for correlations and statistics.
    Sampling,
    /// Responses on a grid.
    Grid,
}

/// Sampler of an imported study.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImportedSampler {
    /// Independent random points.
    MonteCarlo,
    /// A Latin hypercube.
    LatinHypercube,
    /// Halton's points.
    Halton,
    /// Hammersley's points.
    Hammersley,
    /// Morris' trajectories.
    Morris,
    /// All combinations of levels.
    Factorial,
}

/// A parameter, as written.
#[derive(Clone, Debug, PartialEq)]
pub struct ImportedParameter {
    /// Its name.
    pub name: String,
    /// Range or set of values.
    pub range: ImportedRange,
    /// Initial value, if given. It is also the default.
    pub initial: Option<f64>,
    /// Intervals into which a grid divides the range. 0 keeps the parameter at its default.
    pub partitions: Option<u64>,
    /// Group of the parameter, if given.
    pub group: Option<String>,
}

/// Range or set of values of a parameter.
#[derive(Clone, Debug, PartialEq)]
pub enum ImportedRange {
    /// Uniform reals. Equal bounds are a single value.
    Reals {
        /// Smallest value.
        low: f64,
        /// Largest value.
        high: f64,
    },
    /// Whole numbers.
    Integers {
        /// Smallest value.
        low: i64,
        /// Largest value.
        high: i64,
    },
    /// A set of numbers.
    Set {
        /// Whether the numbers are whole.
        integers: bool,
        /// The numbers.
        values: Vec<f64>,
    },
    /// Reals that are not all equally likely.
    Distributed(Distribution),
}

/// Error of an imported parameter or group.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum ImportError {
    /// The domain is invalid.
    #[error("parameter {name}: {problem}")]
    Domain {
        /// The parameter.
        name: String,
        /// The invalid domain.
        problem: DomainError,
    },
    /// The groups are invalid.
    #[error(transparent)]
    Groups(#[from] GroupError),
}

impl ImportedRange {
    /// Returns the smallest and the largest value. Infinite without bounds.
    #[must_use]
    pub fn bounds(&self) -> (f64, f64) {
        match self {
            Self::Reals { low, high } => (*low, *high),
            Self::Integers { low, high } => (*low as f64, *high as f64),
            Self::Set { values, .. } => {
                let least = values.iter().copied().fold(f64::INFINITY, f64::min);
                (least, values.iter().copied().fold(f64::NEG_INFINITY, f64::max))
            }
            Self::Distributed(distribution) => distribution.bounds(),
        }
    }

    fn value_type(&self) -> ValueType {
        match self {
            Self::Integers { .. } | Self::Set { integers: true, .. } => ValueType::Integer,
            _ => ValueType::Real,
        }
    }

    fn domain(&self) -> Result<Domain, DomainError> {
        let value_type = self.value_type();
        let (low, high) = self.bounds();
        match self {
            Self::Distributed(distribution) => Domain::distributed(value_type, *distribution),
            Self::Set { values, .. } => Domain::set(value_type, values),
            _ if low == high => Domain::fixed(value_type, low),
            _ => Domain::range(value_type, low, high, None),
        }
    }
}

impl ImportedParameter {
    /// Returns whether the parameter never varies: it has a single value, or a grid keeps it at its default.
    #[must_use]
    pub fn rests(&self) -> bool {
        let (low, high) = self.range.bounds();
        self.partitions == Some(0) || low == high
    }

    /// Returns the default: the initial value, if given. Otherwise a grid keeps the parameter at Dakota's initial
    /// point, 0 or the bound next to it, and any other default is the middle of the range or of the values.
    #[must_use]
    pub fn default(&self) -> f64 {
        let (low, high) = self.range.bounds();
        match (&self.range, self.initial) {
            (_, Some(initial)) => initial,
            _ if self.partitions == Some(0) && low <= high => 0.0_f64.clamp(low, high),
            (ImportedRange::Distributed(Distribution::Normal { mean, .. }), _) => *mean,
            (ImportedRange::Distributed(Distribution::LogNormal { mean, .. }), _) => mean.exp(),
            (ImportedRange::Set { values, .. }, _) => {
                values.get(values.len().saturating_sub(1) / 2).copied().unwrap_or(f64::NAN)
            }
            (ImportedRange::Integers { .. }, _) => f64::midpoint(low, high).floor(),
            _ => f64::midpoint(low, high),
        }
    }
}

impl ImportedSampler {
    /// Name of the sampler in study files.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::MonteCarlo => "mc",
            Self::LatinHypercube => "lhs",
            Self::Halton => "halton",
            Self::Hammersley => "hammersley",
            Self::Morris => "morris",
            Self::Factorial => "factorial",
        }
    }
}

impl Imported {
    /// Returns the parameters as pleach's. Without an initial value, the default is the middle.
    ///
    /// # Errors
    /// [`ImportError`] for an invalid range, such as one with reversed bounds.
    pub fn parameters(&self) -> Result<Vec<Parameter>, ImportError> {
        let parameter = |imported: &ImportedParameter| {
            let fail = |problem| ImportError::Domain { name: imported.name.clone(), problem };
            let value_type = imported.range.value_type();
            let domain = imported.range.domain().map_err(fail)?;
            let rests = imported.default();
            let default =
                Value::from_f64(rests, value_type).ok_or_else(|| fail(DomainError::NotAnInteger(rests)))?;
            let domain = if imported.rests() { Domain::Fixed { value: default } } else { domain };
            Ok(Parameter { name: imported.name.clone(), value_type, default, domain })
        };
        self.parameters.iter().map(parameter).collect()
    }

    /// Formats the parameters as sections `[parameters.NAME]` of a study file, whose workflow has parameters of
    /// these names.
    #[must_use]
    pub fn parameter_sections(&self) -> String {
        sections::of(self)
    }

    /// Returns the groups of the parameters. Without groups each parameter is alone in its own.
    ///
    /// # Errors
    /// [`ImportError`] as [`Imported::parameters`].
    pub fn groups(&self) -> Result<Groups, ImportError> {
        let labels: Vec<String> = self
            .parameters
            .iter()
            .map(|parameter| parameter.group.clone().unwrap_or_else(|| parameter.name.clone()))
            .collect();
        Ok(Groups::labeled(&self.parameters()?, &labels)?)
    }

    /// Returns the number of trajectories of a MOAT study. Dakota rounds the number of samples up to whole
    /// trajectories, each one evaluation longer than the number of parameters: 630 samples of 15 parameters make 40
    /// (output of version 6.3).
    #[must_use]
    pub fn trajectories(&self) -> Option<u64> {
        let Some(ImportedMethod::Moat { .. }) = self.method else { return None };
        let rows = self.parameters.len() as u64 + 1;
        self.samples.map(|samples| samples.div_ceil(rows).max(1))
    }

    /// Returns Morris' levels of a MOAT study. Dakota rounds partitions up to an odd number, and levels are one
    /// more: 20 partitions are 22 levels (output of version 6.3).
    #[must_use]
    pub fn levels(&self) -> Option<u64> {
        let Some(ImportedMethod::Moat { partitions }) = self.method else { return None };
        partitions.map(|partitions| (partitions | 1).saturating_add(1))
    }
}
