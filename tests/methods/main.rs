//! Methods of sensitivity analysis through the program: designs, indices, phases and responses.

mod constant;
mod correlation;
mod fast;
#[path = "../support/interrupted.rs"]
mod interrupted;
mod phases;
#[path = "../support/pleach.rs"]
mod pleach;
#[path = "../support/registration.rs"]
mod registration;
mod responses;
#[path = "../support/results.rs"]
mod results;
#[path = "../support/runs.rs"]
mod runs;
mod sequential;
#[path = "../support/study.rs"]
mod study;
#[path = "../support/tables.rs"]
mod tables;
mod vbd;
mod volumes;
