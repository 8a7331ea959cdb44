//! Data regions in memory: the RAM tier, the result cache, their bytes, and sizes as text.

pub(crate) mod memory_counter;
pub mod memory_size;
pub(crate) mod ram;
pub(crate) mod result_cache;
