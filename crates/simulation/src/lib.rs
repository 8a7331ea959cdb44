//! The manager under a simulated clock, network and cluster: what it decides with thousands of workers that come, go and
//! fail, in milliseconds and the same way every time.
//!
//! - [`event`]: what is said to a manager, as values;
//! - [`audit`]: what must be true of all that it does, by a model of its own;
//! - [`recorder`]: a manager that is told events, timed, recorded and audited;
//! - [`workload`], [`scenario`]: what is to be executed, and what is to happen meanwhile;
//! - [`cluster`]: the workers and the network around it;
//! - [`burst`]: a study on a cluster that takes workers of a cloud, for money;
//! - [`log`], [`replay`]: what the manager was told, written down and told again.
//!
//! Nothing here is part of a running manager or worker.

pub mod audit;
pub mod burst;
pub mod cluster;
pub mod event;
pub mod log;
pub mod random;
pub mod recorder;
pub mod replay;
pub mod scenario;
pub mod workload;
