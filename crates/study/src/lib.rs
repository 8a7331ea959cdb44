//! Studies prepared for planning and execution: the parameter sets of the method, the tiles of the slides, the headers
//! and content digests of the image files.
//!
//! [`PreparedStudy`] reads a study file and reports every error that is detectable before the study runs.
//! [`SingleRun`](single_run::SingleRun) executes one run on one tile, for a single result. `pleach-planner` plans studies,
//! and `pleach-execution` executes them. This crate writes no files. [`Cause`] and [`Defect`] classify the errors of all
//! crates above.

pub mod applied;
pub mod builtin;
mod cause;
mod defect;
mod error;
pub mod file_digest;
mod prepared;
pub mod references;
pub mod single_run;
pub mod slides;
pub mod spatial;
pub mod volumes;

pub use cause::{Cause, is_full};
pub use defect::Defect;
pub use error::{
    AnnotationsError, PrepareError, SamplingError, SelectionError, SlideTilesError, SlideTilesProblem,
};
pub use prepared::{AppliedStudyError, PreparedStudy, SubmittedStudy};
pub use prepared::{annotations, inputs, units};
