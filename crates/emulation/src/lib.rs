//! Emulated tasks of other systems' workflows: operations that wait and copy bytes, and the workflow of stages that executes a
//! clustering with them.
//!
//! A job becomes a stage, whose tasks run one after the other: the queue delay, the transfer of each input, the clustering
//! delay, the run time of each task, and the outputs that other jobs read. Files between jobs are byte regions between stages.
//! An emulated task computes nothing: it takes the time and moves the bytes of the task that it replaces.
//!
//! Limits: engine and post delays occupy no worker, so no emulated task takes them. A worker executes one job at a time if it
//! has one slot and the manager grants in the order of release.

mod context;
mod error;
mod faults;
mod job_stage;
mod kernels;
mod operations;
mod parameters;
mod present_files;
mod workflow;

pub use context::JobDelays;
pub use error::{EmulationError, MAX_BYTES, MAX_TASKS};
pub use faults::FAULTY_OPERATION;
pub use kernels::KERNELS;
pub use operations::JOB_OPERATION;
pub use workflow::{EmulatedWorkflow, JOBS_METRIC, emulated_workflow};

use pleach_workflow::Operation;
use std::sync::Arc;

/// Returns all operations of emulated tasks, and the stand-ins of image operations.
pub fn operations() -> impl Iterator<Item = Arc<dyn Operation>> {
    let faulty = std::iter::once(Arc::new(faults::Faulty) as Arc<dyn Operation>);
    operations::task_operations().chain(kernels::kernels()).chain(faulty)
}
