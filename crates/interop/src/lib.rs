//! Studies of external models, and files of other programs.
//!
//! A study of an external model draws samples into a file and analyzes the responses that a program of the user
//! computed for them. [`problem`] reads the parameters (TOML, Dakota, SALib), [`method`] the method and its settings.
//! [`sampling`] writes the samples. [`samples`] and [`responses`] read them and their responses back, [`doubts`] checks
//! the sample, and [`analysis`] computes the indices. [`classification`] classifies slides by the responses of a study.
//! [`export`] writes regions in the formats of other programs, and [`workflow_files`] reads their workflows. [`workflow_stub`] begins the
//! source of operations. The crate executes no workflow and reads no images.

pub mod analysis;
pub mod classification;
pub mod doubts;
pub mod error;
pub mod export;
pub mod method;
pub mod problem;
pub mod responses;
pub mod samples;
pub mod sampling;
pub mod study_start;
pub mod workflow_files;
pub mod workflow_stub;
