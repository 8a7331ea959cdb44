//! Reuse across studies: the task cache, and the sources of tasks.

mod cache;
mod explain;
#[path = "../support/interrupted.rs"]
mod interrupted;
#[path = "../support/pleach.rs"]
mod pleach;
#[path = "../support/results.rs"]
mod results;
#[path = "../support/runs.rs"]
mod runs;
#[path = "../support/study.rs"]
mod study;
