//! Laws of the planner, each checked against a slow reference implementation.

#[path = "../support/application.rs"]
mod application;
#[path = "../../../../tests/support/data.rs"]
mod data;
mod dataflow;
mod granularity;
mod hrb;
mod minimize;
mod oracle;
mod order;
mod overhead;
mod plans;
mod ranges;
mod replan;
mod trtma;
