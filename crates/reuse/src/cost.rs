//! Costs of plans: savings, makespan bounds, memory, limits of buckets, transfers.

pub(crate) mod dataflow;
pub(crate) mod peak_memory;
pub(crate) mod runtime_sharing;
pub(crate) mod savings;
pub(crate) mod schedule;
pub(crate) mod transfer;
