//! Bounds in space and time, resolution, partition into tiles, and regions across them.

pub(crate) mod bounds;
pub(crate) mod partition;
pub(crate) mod query;
pub(crate) mod resolution;
pub(crate) mod units;
