//! The manager under a simulated clock, network and cluster: what it decides with thousands of workers that come, go and
//! fail, in milliseconds and the same way every time.
//!
//! - [`event`]: what is said to a manager, as values;
//! - [`audit`]: what must be true of all that it does, by a model of its own.
//!
//! Nothing here is part of a running manager or worker.

pub mod audit;
pub mod event;
