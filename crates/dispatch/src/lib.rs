//! Dispatch (hop 5 of a study): which worker runs which bucket, and in which order a bucket's tasks run.
//!
//! Synchronous state machines, without a clock, a thread, a socket or an actor: events go in through
//! `handle_*`, effects come out of `poll_effect`, which the shell calls until it returns `None` after each
//! event. Faults and thousands of workers are therefore tested in milliseconds, and the same way every time.
//!
//! - [`manager::Manager`]: workers that come and go, and the studies that share them;
//! - [`study::Study`]: instances, buckets and leases of one study;
//! - [`worker::Worker`]: the slots and the memory of one worker, and when to ask for more work;
//! - [`stage::BucketExecution`]: one bucket's reuse tree, depth-first.
//!
//! [`dry_run`] executes a plan on sizes ahead of time, to find the memory without which it cannot be executed.
//! [`scaling`] says how many workers there should be.
//! [`memory_model`] holds the numbers that stages and their worker exchange, [`memory_estimates`] what is believed of operations,
//! [`message`] holds what manager and workers say to each other.

pub mod cost_model;
pub mod dry_run;
mod ids;
pub mod manager;
pub mod memory_estimates;
pub mod memory_model;
pub mod message;
pub mod plan;
pub mod scaling;
pub mod stage;
pub mod study;
pub mod worker;

pub use ids::{BucketId, InstanceId, LeaseId, PlanId, SlotId, WorkerId};
