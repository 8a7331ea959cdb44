//! Manager process: stores submitted studies, has its workers execute them, and keeps their results.
//!
//! - [`state`]: the state directory, which outlives the process: the manager's identity and a folder for each study;
//! - [`results`]: result files of a study and their checksums;
//! - [`studies`]: all studies of the manager and the operations on them over HTTP;
//! - `study_runner`: one study from its plan to its results;
//! - `scaling`: the desired number of workers;
//! - [`provision`]: starts and ends workers of pools that have a driver;
//! - [`scaled_pools`]: sets the number of workers of pools that a Kubernetes cluster scales;
//! - `retained`: regions that workers retain for queries;
//! - `mend`: corrupt files of an unfinished study;
//! - `input_files`, `local`: input files as workers get them, from the input store or at their client's paths;
//! - [`metrics`]: metrics sampled at a scrape;
//! - [`pod_deletion_cost`]: deletion costs of surplus pods, sent to the Kubernetes cluster.
//!
//! The manager actor assigns work to workers. Results have the format of `pleach run`.

mod input_files;
mod local;
mod mend;
pub mod metrics;
pub mod pod_deletion_cost;
pub mod provision;
pub mod results;
mod retained;
pub mod scaled_pools;
mod scaling;
pub mod state;
pub mod studies;
mod study_runner;

pub use scaling::StoredLedger;
