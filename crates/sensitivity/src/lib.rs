//! Parameter sets and sensitivity indices (hops 2 and 9 of a study).
//!
//! - [`sampling`]: parameters and a seed → a [`sampling::Design`], the parameter sets to evaluate
//! - [`table`]: user-provided parameter sets in a CSV file
//! - [`import`]: studies written for other programs: [`dakota`]'s inputs, SALib's [`problem`]s
//! - [`trajectory`]: the structure of a Morris design, and its recovery from bare parameter sets
//! - [`saltelli_blocks`]: the structure of a Saltelli design
//! - [`design_detection`]: recovery of Saltelli blocks and search curves from bare parameter sets
//! - [`moat`]: responses of a Morris design → elementary effects and their statistics
//! - [`vbd`]: responses of a Saltelli design → first-order, total and second-order Sobol' indices
//! - [`fast`]: responses of search curves → first-order and total indices
//! - [`columns`]: parameter values as columns for given-data methods: [`correlation`], [`regression`], [`pawn`],
//!   [`delta`], [`rbd_fast`]
//! - [`responses`], [`bootstrap`], [`estimate`], [`error`]: inputs and outputs of the methods
//! - [`convergence`]: indices of growing parts of a sample
//! - [`warnings`]: cautions for readers of indices
//! - [`indices`]: the indices of any method, as reports write them
//!
//! Pure: results depend only on the arguments and a seed. The crate opens no file, reads no clock, and evaluates no
//! parameter set. Every message, table and report numbers parameter sets from 1, slices from 0.
//!
//! ```
//! use pleach_sensitivity::{moat, sampling::morris};
//! use pleach_workflow::{Domain, Parameter, Value, ValueType};
//!
//! let domain = Domain::range(ValueType::Integer, 5.0, 80.0, Some(5.0))?;
//! let g1 = Parameter { name: "G1".into(), value_type: ValueType::Integer, default: Value::Integer(80), domain };
//! let design = morris::sample(&[g1], &morris::Morris { trajectories: 10, levels: 20, seed: 500 })?;
//! let responses: Vec<Option<f64>> =
//!     design.evaluations.iter().map(|set| Some(0.5 + set[0].as_f64() / 1000.0)).collect();
//! let trajectories = design.trajectories().expect("a Morris design has them");
//! let indices = moat::indices(trajectories, "dice", &responses, 500)?;
//! assert!((indices.parameters[0].mu - 0.075).abs() < 1e-12);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod design;
mod files;
mod methods;
pub mod sampling;
mod statistics;

pub use design::{columns, design_detection, groups, marginal, saltelli_blocks, trajectory};
pub use files::{dakota, import, problem, table};
pub use methods::{
    convergence, correlation, delta, fast, indices, moat, pawn, rbd_fast, regression, screening, vbd,
    warnings,
};
pub use statistics::{bootstrap, error, estimate, responses};
