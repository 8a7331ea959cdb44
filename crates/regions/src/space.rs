//! Bounds in space and time, resolution, and partition into tiles.

pub(crate) mod bounds;
pub(crate) mod partition;
pub(crate) mod resolution;
