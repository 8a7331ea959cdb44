//! Costs of plans: savings, makespan bounds, memory, limits of buckets, transfers, granularity.

pub(crate) mod bucket_overhead;
pub(crate) mod dataflow;
pub(crate) mod granularity;
pub(crate) mod peak_memory;
pub(crate) mod runtime_sharing;
pub(crate) mod savings;
pub(crate) mod schedule;
pub(crate) mod transfer;
