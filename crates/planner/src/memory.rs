//! Memory of plans: bounds, checks, the fit to workers, and the limits of this process.

pub(crate) mod memory_bounds;
pub(crate) mod memory_check;
pub(crate) mod memory_fit;
pub mod memory_limit;
