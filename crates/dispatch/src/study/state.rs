//! Contexts of a study's state. The fields of each are private to its file, and so are its invariants.
//!
//! `instances` has the states of instances and the open instances of buckets, `ready_queue` the buckets that can be
//! granted, `ready_runs` those of them that follow each other in the plan's order, as `positions` has it, `leases` the grants and their twins, `regions` the readers and holders of regions, `failures` the causes of
//! failed instances and the evidence against suspects, `slot_clocks` the leases without a report, `throughput` the measured times. No context uses the others.
//! [`Study`](super::Study) applies an event to all that it concerns, and `invariants` compares them with each other.

mod failures;
mod instances;
mod leases;
mod positions;
mod ready_queue;
mod ready_runs;
mod regions;
mod slot_clocks;
mod throughput;

pub(super) use failures::Failures;
pub use instances::StudySnapshot;
pub(super) use instances::{InstanceState, Instances};
pub(super) use leases::{Lease, Leases, ReturnedInstances};
pub(super) use positions::{Positions, Span};
pub(super) use ready_queue::ReadyQueue;
pub(super) use regions::Regions;
pub(super) use slot_clocks::{GrantedLease, SlotClocks};
pub(super) use throughput::Throughput;
