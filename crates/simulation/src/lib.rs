//! The manager under a simulated clock, network and cluster: its decisions for thousands of workers that join, leave
//! and fail, in milliseconds and deterministic.
//!
//! - [`event`]: the manager's input, as values.
//! - [`audit`]: an independent model that checks all of the manager's effects.
//! - [`recorder`]: runs a manager on events, timed, recorded and audited.
//! - [`workload`], [`scenario`]: the plans to execute, and the incidents meanwhile.
//! - [`cluster`]: the workers and the network around the manager.
//! - [`burst`]: a study on a cluster that rents workers in a cloud.
//! - [`sharing`]: workers that share task results through the result directory.
//! - [`hybrid`]: workers with cores and accelerators, and their schedule policies.
//! - [`log`], [`replay`]: writes the manager's events to a log and replays them.
//!
//! No running manager or worker uses this crate.

pub mod audit;
pub mod burst;
pub mod cluster;
pub mod event;
mod event_queue;
pub mod hybrid;
pub mod log;
pub mod random;
pub mod recorder;
pub mod replay;
pub mod scenario;
pub mod sharing;
pub mod workload;
