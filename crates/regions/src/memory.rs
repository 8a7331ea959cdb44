//! Data regions in memory: the RAM tier, the result cache, and their bytes.

pub(crate) mod memory_counter;
pub(crate) mod ram;
pub(crate) mod result_cache;
