//! Sensitivity analysis methods and their indices, with warnings about small or unsuitable samples.

pub mod convergence;
pub mod correlation;
pub mod delta;
pub mod fast;
pub mod indices;
pub(crate) mod linear;
pub mod moat;
pub mod pawn;
pub mod rbd_fast;
pub mod regression;
pub mod screening;
pub(crate) mod spectrum;
pub mod vbd;
pub mod warnings;
