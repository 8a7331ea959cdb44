//! Simulated execution, tuning and choice of clustering methods.
#![expect(clippy::unwrap_used, reason = "tests")]

mod chooser;
#[path = "../../../../tests/support/data.rs"]
mod data;
mod experiments;
mod model;
mod portfolio;
mod reference;
mod support;
mod traces;
mod tuning;
