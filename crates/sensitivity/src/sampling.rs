//! Samplers: parameters and a seed → the parameter sets to evaluate.
//!
//! One module per sampler, each with a `sample` function that returns a [`Design`]. A design evaluates
//! nothing and knows nothing of tiles; it keeps the structure that its method needs to compute indices.

pub mod morris;

use crate::trajectory::Trajectories;
use pleach_workflow::{Parameter, Value};

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
            Structure::Rows => None,
        }
    }
}

fn names(parameters: &[Parameter]) -> Vec<String> {
    parameters.iter().map(|parameter| parameter.name.clone()).collect()
}
