//! The manager's process: studies that are submitted, executed by its workers, and kept.
//!
//! - [`submission`]: what a client submits, and what the manager makes of it;
//! - [`state`]: the folder that survives the process: who it is, and a folder for each study;
//! - [`results`]: result files of a study and their checksums;
//! - [`studies`]: the studies there are, and what can be done with them over HTTP;
//! - [`study_runner`]: one study from its plan to its results;
//! - [`mend`]: corrupt files of a study that goes on;
//! - [`pod_deletion_cost`]: what the cluster is told of pods that may go;
//! - [`inputs`]: files that clients have sent.
//!
//! Who executes what is decided by the manager actor; results are written as `pleach run` writes them.

pub(crate) mod inputs;
pub(crate) mod local;
mod mend;
pub(crate) mod metrics;
pub(crate) mod pod_deletion_cost;
pub(crate) mod results;
pub(crate) mod scaling;
pub(crate) mod state;
pub(crate) mod studies;
pub(crate) mod study_runner;
pub(crate) mod submission;
