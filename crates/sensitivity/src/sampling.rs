//! Samplers: parameters and a seed → the parameter sets to evaluate.
//!
//! One module per sampler, each with a `sample` function that returns a [`Design`]. A design evaluates
//! nothing and knows nothing of tiles; it keeps the structure that its method needs to compute indices.

#[cfg(test)]
mod examples;
pub mod fast;
mod marginal;
pub mod morris;
pub mod saltelli;
mod sobol;

use crate::blocks::RowBlocks;
use crate::trajectory::Trajectories;
use pleach_workflow::{Domain, Parameter, Value, ValueType};

/// Designs are held in memory: 10 million sets of 15 parameters are 2.6 GB, and beyond any study.
pub const MOST_EVALUATIONS: u64 = 10_000_000;

/// The parameter sets of a study.
#[derive(Clone, Debug, PartialEq)]
pub struct Design {
    /// Names of all parameters, varying or not: the columns of `evaluations`.
    pub names: Vec<String>,
    /// One parameter set a row, one value a parameter. Row 0 is evaluation 1 in tables and reports.
    pub evaluations: Vec<Vec<Value>>,
    /// How the rows belong together.
    pub structure: Structure,
}

/// How the rows of a design belong together. Each method needs one of them.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Structure {
    /// Any parameter sets, in any order.
    Rows,
    /// Morris trajectories, for [`crate::moat`].
    Trajectories(Trajectories),
    /// Saltelli's row blocks, for variance-based decomposition.
    Saltelli(RowBlocks),
}

impl Design {
    /// Parameter sets without structure, such as those of a user's table. Each row holds one value a parameter.
    #[must_use]
    pub fn of_rows(parameters: &[Parameter], evaluations: Vec<Vec<Value>>) -> Self {
        Self { names: names(parameters), evaluations, structure: Structure::Rows }
    }

    /// The trajectories of a Morris design, and `None` of any other.
    #[must_use]
    pub fn trajectories(&self) -> Option<&Trajectories> {
        match &self.structure {
            Structure::Trajectories(trajectories) => Some(trajectories),
            Structure::Rows | Structure::Saltelli(_) => None,
        }
    }

    /// The row blocks of a Saltelli design, and `None` of any other.
    #[must_use]
    pub fn row_blocks(&self) -> Option<&RowBlocks> {
        match &self.structure {
            Structure::Saltelli(blocks) => Some(blocks),
            Structure::Rows | Structure::Trajectories(_) => None,
        }
    }
}

fn names(parameters: &[Parameter]) -> Vec<String> {
    parameters.iter().map(|parameter| parameter.name.clone()).collect()
}

/// Columns of the parameters that a sampler varies.
fn varying(parameters: &[Parameter]) -> Vec<usize> {
    (0..parameters.len()).filter(|&column| parameters[column].domain.varies()).collect()
}

/// The value of a parameter that does not vary.
fn resting_value(parameter: &Parameter) -> Value {
    match &parameter.domain {
        Domain::Fixed { value } => *value,
        Domain::Levels { values } => values.first().copied().unwrap_or(parameter.default),
        Domain::Continuous { .. } => parameter.default,
    }
}

/// The bounds of a continuous domain; `None` where `f64` numbers cannot divide it, or where whole numbers are wanted.
fn real_range(parameter: &Parameter) -> Option<(f64, f64)> {
    let (low, high) = parameter.domain.bounds();
    let usable = low < high && (high - low).is_finite() && parameter.value_type == ValueType::Real;
    usable.then_some((low, high))
}
