//! Samplers: parameters and a seed → the parameter sets to evaluate.
//!
//! One module per sampler, each with a `sample` function that returns a [`Design`]. A design evaluates nothing and
//! does not know tiles. It keeps the structure that its method needs to compute indices.

pub mod discrepancy;
#[cfg(test)]
pub(crate) mod examples;
pub mod factorial;
pub mod fast;
pub mod footprint;
pub mod halton;
pub mod latin_hypercube;
pub mod monte_carlo;
pub mod morris;
pub mod points;
pub mod saltelli;
pub mod sampler;
pub mod sobol;

use crate::design::curves::Curves;
use crate::design::marginal::Marginal;
use crate::design::saltelli_blocks::RowBlocks;
use crate::design::trajectory::Trajectories;
use pleach_workflow::{Domain, Parameter, Value};
use points::{PointsError, Sequence, UnitPoints};
use std::collections::HashMap;
use thiserror::Error;

/// Designs are held in memory: 10 million sets of 15 parameters take 2.6 GB, and exceed any study.
pub const MAX_EVALUATIONS: u64 = 10_000_000;

/// Parameter sets of a study.
#[derive(Clone, Debug, PartialEq)]
pub struct Design {
    /// Names of all parameters, varying or not: the columns of `evaluations`.
    pub names: Vec<String>,
    /// One row per parameter set, one value per parameter. Row 0 is evaluation 1 in tables and reports.
    pub evaluations: Vec<Vec<Value>>,
    /// Structure of the rows.
    pub structure: Structure,
}

/// Structure of a design's rows. Each method requires one of these.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Structure {
    /// Any parameter sets, in any order.
    Rows,
    /// Morris trajectories, for [`crate::methods::moat`].
    Trajectories(Trajectories),
    /// Saltelli's row blocks, for variance-based decomposition.
    Saltelli(RowBlocks),
    /// Search curves, for [`crate::methods::fast`].
    Curves(Curves),
}

/// A domain without a usable distribution: `f64` numbers cannot divide its range, or it is a range of reals
/// for whole numbers.
#[derive(Clone, Debug, PartialEq, Error)]
#[error(
    "parameter {name} cannot be drawn from [{low}, {high}]; allowed are reals within a finite range, a distribution of reals, \
     or two values and more"
)]
pub struct BadRange {
    /// The parameter.
    pub name: String,
    /// Its smallest value.
    pub low: f64,
    /// Its largest value.
    pub high: f64,
}

/// Cause of a failed sampling of points.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum SampleError {
    /// The points are invalid.
    #[error(transparent)]
    Points(#[from] PointsError),
    /// Every parameter is fixed or has one value.
    #[error("no parameter varies; at least one needs a range or two values")]
    NothingVaries,
    /// A domain that cannot be drawn from.
    #[error(transparent)]
    BadRange(#[from] BadRange),
    /// More parameter sets than are held in memory.
    #[error("{evaluations} evaluations; at most {MAX_EVALUATIONS} are allowed")]
    TooManyEvaluations {
        /// Requested evaluations.
        evaluations: u64,
    },
    /// The dimension of the points differs from the number of varying parameters.
    #[error("points have {columns} coordinates; {varying} are needed, one per varying parameter")]
    Dimensions {
        /// Dimensions of the points.
        columns: usize,
        /// Parameters that vary.
        varying: usize,
    },
}

impl Design {
    /// Creates a parameter set for each point. Its coordinates are positions within the domains of the varying
    /// parameters, in their order: quantiles of distributions, equally likely levels.
    ///
    /// # Errors
    /// [`SampleError`] if a domain cannot be sampled, or coordinates and varying parameters do not match.
    pub fn of_points(parameters: &[Parameter], points: &UnitPoints) -> Result<Self, SampleError> {
        let mut evaluations = Vec::with_capacity(points.rows());
        rows_of_points(parameters, points, |row| evaluations.push(row))?;
        Ok(Self::of_rows(parameters, evaluations))
    }

    /// Returns for each row the first equal one, which may be the row itself. Discrete parameters make equal rows,
    /// which need one evaluation.
    #[must_use]
    pub fn first_equal_rows(&self) -> Vec<usize> {
        let mut first: HashMap<&[Value], usize> = HashMap::with_capacity(self.evaluations.len());
        self.evaluations.iter().enumerate().map(|(row, set)| *first.entry(set).or_insert(row)).collect()
    }

    /// Returns the number of rows without an equal earlier one.
    #[must_use]
    pub fn distinct_rows(&self) -> usize {
        self.first_equal_rows().into_iter().enumerate().filter(|&(row, first)| row == first).count()
    }

    /// Creates parameter sets without structure, such as those of a user's table. Each row holds one value per
    /// parameter.
    #[must_use]
    pub fn of_rows(parameters: &[Parameter], evaluations: Vec<Vec<Value>>) -> Self {
        Self { names: names(parameters), evaluations, structure: Structure::Rows }
    }

    /// Returns the trajectories of a Morris design. Returns `None` for any other.
    #[must_use]
    pub fn trajectories(&self) -> Option<&Trajectories> {
        match &self.structure {
            Structure::Trajectories(trajectories) => Some(trajectories),
            Structure::Rows | Structure::Saltelli(_) | Structure::Curves(_) => None,
        }
    }

    /// Returns the row blocks of a Saltelli design. Returns `None` for any other.
    #[must_use]
    pub fn row_blocks(&self) -> Option<&RowBlocks> {
        match &self.structure {
            Structure::Saltelli(blocks) => Some(blocks),
            Structure::Rows | Structure::Trajectories(_) | Structure::Curves(_) => None,
        }
    }
}

fn rows_of_points(
    parameters: &[Parameter],
    points: &UnitPoints,
    mut each: impl FnMut(Vec<Value>),
) -> Result<(), SampleError> {
    let varying = varying(parameters);
    if points.columns() != varying.len() {
        return Err(SampleError::Dimensions { columns: points.columns(), varying: varying.len() });
    }
    let marginals = marginals(parameters, &varying)?;
    let resting: Vec<Value> = parameters.iter().map(resting_value).collect();
    for point in points.iter() {
        let mut row = resting.clone();
        for ((&column, marginal), &place) in varying.iter().zip(&marginals).zip(point) {
            row[column] = marginal.value(place).ok_or_else(|| bad_range(&parameters[column]))?;
        }
        each(row);
    }
    Ok(())
}

/// Draws a design from points of a sequence, without further structure.
fn plain(
    parameters: &[Parameter],
    sequence: Sequence,
    samples: u32,
    seed: u64,
) -> Result<Design, SampleError> {
    let mut evaluations = Vec::new();
    draw_points(parameters, sequence, samples, seed, |row| evaluations.push(row))?;
    Ok(Design::of_rows(parameters, evaluations))
}

/// Passes on the parameter sets of points of a sequence one by one. Memory holds only the points, 8 bytes for
/// each parameter and set.
fn draw_points(
    parameters: &[Parameter],
    sequence: Sequence,
    samples: u32,
    seed: u64,
    each: impl FnMut(Vec<Value>),
) -> Result<(), SampleError> {
    let varying = varying(parameters);
    if varying.is_empty() {
        return Err(SampleError::NothingVaries);
    }
    if u64::from(samples) > MAX_EVALUATIONS {
        return Err(SampleError::TooManyEvaluations { evaluations: u64::from(samples) });
    }
    // Reports invalid domains before any set is drawn.
    marginals(parameters, &varying)?;
    rows_of_points(parameters, &sequence.points(samples as usize, varying.len(), seed)?, each)
}

/// Returns the marginals of the parameters in these columns.
fn marginals<'a>(parameters: &'a [Parameter], columns: &[usize]) -> Result<Vec<Marginal<'a>>, BadRange> {
    let marginal =
        |&column: &usize| Marginal::of(&parameters[column]).ok_or_else(|| bad_range(&parameters[column]));
    columns.iter().map(marginal).collect()
}

fn bad_range(parameter: &Parameter) -> BadRange {
    let (low, high) = parameter.domain.bounds();
    BadRange { name: parameter.name.clone(), low, high }
}

fn names(parameters: &[Parameter]) -> Vec<String> {
    parameters.iter().map(|parameter| parameter.name.clone()).collect()
}

/// Returns the columns of the parameters that a sampler varies.
fn varying(parameters: &[Parameter]) -> Vec<usize> {
    (0..parameters.len()).filter(|&column| parameters[column].domain.varies()).collect()
}

/// Returns the value of a parameter that does not vary.
fn resting_value(parameter: &Parameter) -> Value {
    match &parameter.domain {
        Domain::Fixed { value } => *value,
        Domain::Levels { values } => values.first().copied().unwrap_or(parameter.default),
        Domain::Continuous { .. } | Domain::Distributed { .. } => parameter.default,
    }
}
