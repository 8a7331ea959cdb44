//! Parameter sets and sensitivity indices (hops 2 and 9 of a study).
//!
//! - [`sampling`]: parameters and a seed → a [`sampling::Design`], the parameter sets to evaluate;
//! - [`table`]: parameter sets a user brings in a CSV;
//! - [`trajectory`]: the structure of a Morris design, and how it is recovered from bare parameter sets;
//! - [`moat`]: responses of a Morris design → elementary effects and their statistics;
//! - [`indices`]: the indices of any method, as reports write them.
//!
//! Pure: everything follows from the arguments and a seed. Nothing here opens a file, reads a clock, knows of
//! images, or evaluates a parameter set. Parameter sets are numbered from 1 in every message, as in tables
//! and reports, and from 0 in slices.

pub mod indices;
pub mod moat;
mod random;
pub mod sampling;
pub mod table;
pub mod trajectory;
