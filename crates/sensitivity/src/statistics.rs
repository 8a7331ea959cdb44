//! Statistics that the methods share: responses, bootstrap, ranks, linear algebra and the errors of an analysis.

pub mod bootstrap;
pub(crate) mod cholesky;
pub mod error;
pub mod estimate;
pub(crate) mod ranks;
pub mod responses;
pub(crate) mod rng;
