//! Parameter sets and sensitivity indices (hops 2 and 9 of a study).
//!
//! - [`sampling`]: parameters and a seed → a [`sampling::Design`], the parameter sets to evaluate;
//! - [`table`]: parameter sets a user brings in a CSV;
//! - [`import`]: studies written for other programs: [`dakota`]'s inputs, SALib's [`problem`]s;
//! - [`trajectory`]: the structure of a Morris design, and how it is recovered from bare parameter sets;
//! - [`saltelli_blocks`]: the structure of a Saltelli design;
//! - [`design_detection`]: how that, and search curves, are recovered from bare parameter sets;
//! - [`moat`]: responses of a Morris design → elementary effects and their statistics;
//! - [`vbd`]: responses of a Saltelli design → first-order, total and second-order Sobol' indices;
//! - [`fast`]: responses of search curves → first-order and total indices;
//! - [`columns`]: values of parameters as columns, for methods that need no structure: [`correlation`],
//!   [`regression`], [`pawn`], [`delta`], [`rbd_fast`];
//! - [`responses`], [`bootstrap`], [`estimate`], [`error`]: what methods take and give;
//! - [`convergence`]: indices of growing parts of a sample;
//! - [`warnings`]: what a reader of indices has to be told;
//! - [`indices`]: the indices of any method, as reports write them.
//!
//! Pure: everything follows from the arguments and a seed. Nothing here opens a file, reads a clock, knows of
//! images, or evaluates a parameter set. Parameter sets are numbered from 1 in every message, as in tables
//! and reports, and from 0 in slices.
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

pub mod bootstrap;
mod cholesky;
pub mod columns;
pub mod convergence;
pub mod correlation;
pub mod dakota;
pub mod delta;
pub mod design_detection;
pub mod error;
pub mod estimate;
pub mod fast;
pub mod import;
pub mod indices;
mod linear;
pub mod moat;
pub mod pawn;
pub mod problem;
mod ranks;
pub mod rbd_fast;
pub mod regression;
pub mod responses;
mod rng;
pub mod saltelli_blocks;
pub mod sampling;
pub mod screening;
mod spectrum;
pub mod table;
pub mod trajectory;
pub mod vbd;
pub mod warnings;
