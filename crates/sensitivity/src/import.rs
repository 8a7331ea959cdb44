//! A study that was written for another program, in terms of none: what is varied, over what, and how points are chosen.
//!
//! [`crate::dakota`] and [`crate::problem`] read files into it. What pleach makes of it is decided elsewhere; values are
//! kept as written.

mod sections;

use crate::sampling::groups::{GroupError, Groups};
use pleach_workflow::{Distribution, Domain, DomainError, Parameter, Value, ValueType};
use thiserror::Error;

/// What a file says.
#[derive(Clone, Debug, PartialEq)]
pub struct Imported {
    /// What is to be known; `None` of files that say parameters only.
    pub method: Option<ImportedMethod>,
    /// How points are chosen; `None` of files that do not say.
    pub sampler: Option<ImportedSampler>,
    /// Seed, as a number of the other program: its random numbers are others.
    pub seed: Option<u64>,
    /// Evaluations asked for, or base samples of a variance-based decomposition.
    pub samples: Option<u64>,
    /// What is varied, at least one parameter.
    pub parameters: Vec<ImportedParameter>,
    /// Where the file contradicts itself, and what was taken: a line each, for whoever imports it.
    pub notes: Vec<String>,
}

/// What is to be known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImportedMethod {
    /// Morris one-at-a-time. `partitions` are one less than Morris' levels, in Dakota's count.
    Moat {
        /// Partitions of each range, where they are said.
        partitions: Option<u64>,
    },
    /// Variance-based decomposition.
    Vbd,
    /// Responses at sampled points, for correlations and statistics.
    Sampling,
    /// Responses on a grid.
    Grid,
}

/// How points are chosen.
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
    /// What it is drawn from.
    pub range: ImportedRange,
    /// Where it starts and rests, if that is said.
    pub initial: Option<f64>,
    /// Intervals that a grid divides its range into; 0 holds it where it rests.
    pub partitions: Option<u64>,
    /// The group that it moves with, if that is said.
    pub group: Option<String>,
}

/// What a parameter is drawn from.
#[derive(Clone, Debug, PartialEq)]
pub enum ImportedRange {
    /// Reals, uniformly. Equal bounds are one value.
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
    /// Some numbers.
    Set {
        /// Whether they are whole numbers.
        integers: bool,
        /// The numbers.
        values: Vec<f64>,
    },
    /// Reals that are not all equally likely.
    Distributed(Distribution),
}

/// Why an imported parameter is none of pleach's.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum ImportError {
    /// Its domain cannot be.
    #[error("parameter {name}: {problem}")]
    Domain {
        /// The parameter.
        name: String,
        /// What is wrong.
        problem: DomainError,
    },
    /// Its groups cannot be.
    #[error(transparent)]
    Groups(#[from] GroupError),
}

impl ImportedRange {
    /// The smallest and the largest value; infinite without bounds.
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
    /// Whether it never varies: one value, or held by a grid.
    #[must_use]
    pub fn rests(&self) -> bool {
        let (low, high) = self.range.bounds();
        self.partitions == Some(0) || low == high
    }

    /// Where it rests: where the file says. Else a grid holds it at Dakota's initial point, 0 or the bound next to it, and
    /// its default is the middle of its range, or of its values.
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
    /// Its name in study files.
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
    /// The parameters in pleach's terms. What rests nowhere has its middle for a default.
    ///
    /// # Errors
    /// [`ImportError`] when a range is none, such as one whose bounds are reversed.
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

    /// The parameters as sections `[parameters.NAME]` of a study file, whose workflow has parameters of these names.
    #[must_use]
    pub fn parameter_sections(&self) -> String {
        sections::of(self)
    }

    /// The groups of the parameters; each alone where none are said.
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

    /// Trajectories of a MOAT study. Dakota takes the number of samples for a wish, and goes up to whole trajectories, of
    /// one evaluation more than there are parameters: 630 samples of 15 parameters are 40 (as its version 6.3 says).
    #[must_use]
    pub fn trajectories(&self) -> Option<u64> {
        let Some(ImportedMethod::Moat { .. }) = self.method else { return None };
        let rows = self.parameters.len() as u64 + 1;
        self.samples.map(|samples| samples.div_ceil(rows).max(1))
    }

    /// Morris' levels of a MOAT study. Dakota goes up to an odd number of partitions, of which levels are one more: 20
    /// partitions are 22 levels (as its version 6.3 says).
    #[must_use]
    pub fn levels(&self) -> Option<u64> {
        let Some(ImportedMethod::Moat { partitions }) = self.method else { return None };
        partitions.map(|partitions| (partitions | 1).saturating_add(1))
    }
}
