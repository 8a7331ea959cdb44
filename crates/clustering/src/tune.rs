//! Tunes the limits of DFJS and AFJS by simulation: DFJS* and AFJS* (paper 002, section 5.2).

mod search;
mod workflow;

pub use search::{Trial, Tuned, tune_seconds, tune_seconds_and_bytes};
pub use workflow::{TunedMethod, tune};
