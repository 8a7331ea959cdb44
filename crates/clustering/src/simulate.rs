//! Simulates the execution of a clustered workflow with overheads: the o-DAG model of paper 002, section 3.
//!
//! A job is released at the end of its last parent plus the post delay `p` of that parent, and submitted after the engine delay
//! `e`. Submitted jobs start in the order of their submission (the same time: by number), each on the idle worker that misses
//! the fewest bytes of its inputs (the same bytes: the lowest number), as the data-aware scheduling of section 5.3. The job
//! occupies its worker for the queue delay `q`, the transfer of missing inputs, the clustering delay `c` if it has two tasks or
//! more, and the run times of its tasks. WorkflowSim, the simulator of the paper, occupies the worker for the queue delay too.
//!
//! A worker has the files that it wrote or fetched, for the rest of the execution. Initial files are on no worker. Transfers do
//! not slow each other down. The post delay of a job without children does not count.
//!
//! The simulation is deterministic: the same arguments give the same bits. A drawn delay depends on the seed and the first task
//! of its job only.

mod delay;
pub(crate) mod draw;
mod engine;
mod execution;
mod jobs;
mod locality;
mod platform;
mod prepared;

pub use delay::{Delay, Overheads, WORKFLOWSIM_SHAPE};
pub use execution::{Execution, Gain, JobRecord, PhaseSeconds};
pub(crate) use jobs::Jobs;
pub use platform::{Platform, PlatformError};
pub(crate) use prepared::Prepared;

use crate::clustering::Clustering;
use crate::workflow::Workflow;

/// Simulates the execution of a workflow in the jobs of a clustering. `seed` selects the draws of Weibull delays.
///
/// # Panics
/// If the clustering is not of this workflow.
#[must_use]
pub fn simulate(workflow: &Workflow, clustering: &Clustering, platform: &Platform, seed: u64) -> Execution {
    let seconds: Vec<f64> = workflow.tasks().iter().map(|task| task.seconds).collect();
    simulate_jobs(workflow, &seconds, clustering.jobs(), platform, seed)
}

/// Simulates the execution of some tasks of a workflow, with other run times in seconds by task. Parents outside the jobs count
/// as finished.
pub(crate) fn simulate_jobs(
    workflow: &Workflow,
    seconds: &[f64],
    jobs: &[Vec<u32>],
    platform: &Platform,
    seed: u64,
) -> Execution {
    let jobs = Jobs::new(&Prepared::new(workflow), seconds, jobs.iter().map(Vec::as_slice));
    Execution::new(engine::execute(workflow.files(), &jobs, platform, seed), platform.workers().get())
}

/// Returns the makespan of jobs in seconds, as [`simulate`] does.
pub(crate) fn makespan(workflow: &Workflow, jobs: &Jobs, platform: &Platform, seed: u64) -> f64 {
    let records = engine::execute(workflow.files(), jobs, platform, seed);
    records.iter().map(|job| job.ended).fold(0.0, f64::max)
}

/// Returns the makespan in seconds without clustering: one job for each task.
#[must_use]
pub fn baseline(workflow: &Workflow, platform: &Platform, seed: u64) -> f64 {
    simulate(workflow, &Clustering::single(workflow), platform, seed).makespan
}

/// Simulates a workflow with and without clustering.
///
/// # Panics
/// If the clustering is not of this workflow.
#[must_use]
pub fn gain(workflow: &Workflow, clustering: &Clustering, platform: &Platform, seed: u64) -> Gain {
    Gain {
        makespan: simulate(workflow, clustering, platform, seed).makespan,
        baseline: baseline(workflow, platform, seed),
    }
}
