//! Dispatch (hop 5 of a study): assigns buckets to workers and orders the tasks within a bucket.
//!
//! Synchronous state machines, without a clock, a thread, a socket or an actor: events enter through
//! `handle_*`, effects leave through `poll_effect`, which the shell calls until it returns `None` after each
//! event. Tests of faults and of thousands of workers therefore take milliseconds and are deterministic.
//!
//! - [`manager::Manager`]: workers that join and leave, and the studies that share them;
//! - [`study::Study`]: instances, buckets and leases of one study;
//! - [`worker::Worker`]: the slots and the memory of one worker, and its requests for work;
//! - [`stage::BucketExecution`]: one bucket's reuse tree, depth-first;
//! - [`directory`]: the result directory, whose shards are on the workers.
//!
//! [`cost_model`] predicts and learns the times of operations. [`dry_run`] executes a plan on sizes ahead of time, to find its minimum memory.
//! [`scaling`] computes the desired number of workers. [`storage`] selects the regions that leave a node's memory, and the
//! sources of remote regions.
//! [`memory_model`] holds the numbers that stages and their worker exchange, [`memory_estimates`] the estimates
//! of operations, and [`message`] the messages between manager and workers.

pub mod cost_model;
pub mod directory;
pub mod dry_run;
mod ids;
pub mod manager;
pub mod memory_estimates;
pub mod memory_model;
pub mod message;
pub mod plan;
pub mod scaling;
pub mod stage;
pub mod storage;
pub mod study;
pub mod worker;

pub use ids::{BucketId, InstanceId, LeaseId, PlanId, SlotId, SlotKind, WorkerId};
pub use message::content_digest;
