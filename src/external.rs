//! Studies of external models: draws samples into a file and analyzes the responses that a user's program
//! computed for them.
//!
//! [`problem`] reads the parameters, [`method`] the method and its settings. [`sampling`] writes the samples.
//! [`samples`] and [`responses`] read them and their responses back, [`doubts`] checks the sample, and
//! [`analysis`] computes the indices. [`error`] has the errors of these operations. `pleach-tables` handles table files, and `pleach-sensitivity` handles
//! designs and indices. These modules execute no workflow and read no images.

pub(crate) mod analysis;
pub(crate) mod doubts;
pub(crate) mod error;
pub(crate) mod method;
pub(crate) mod problem;
pub(crate) mod responses;
pub(crate) mod samples;
pub(crate) mod sampling;
