//! State of the worker actor, in contexts with private fields. Each context lists its invariants.
//!
//! - `connection`: the link to the manager, and the reports to repeat over the next link.
//! - `leases`: instances of leases whose reports are not acknowledged.
//! - `running`: buckets with a stage actor.
//! - `studies`: running studies, and the study of each region.
//! - `retained`: regions for queries.
//! - `replication`: reports that wait for durable outputs, and replicas of other workers' regions.
//! - `departure`: time limit and drain.
//! - `task_resources`: slots, task results and memory estimates.
//!
//! Assertions check what this process alone decides. They end the process, so no message of a manager or peer may cause
//! one to fail: an unexpected message is ignored.

mod connection;
mod departure;
mod leases;
mod replication;
mod retained;
mod running;
mod studies;
mod task_resources;

pub(super) use connection::{ManagerConnection, ReportError};
pub(super) use departure::Departure;
pub(super) use leases::OpenLeases;
pub(super) use replication::{FinishedInstance, Replication};
pub(super) use retained::RetainedRegions;
pub(super) use running::{Bucket, RunningBuckets};
pub(super) use studies::RunningStudies;
pub(super) use task_resources::TaskResources;
