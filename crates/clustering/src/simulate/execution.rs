//! Result of a simulated execution: times of each job, bytes moved and sums of each phase.

/// A job in a simulated execution. Times are seconds from the start of the workflow.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct JobRecord {
    /// Worker that executes the job, from 0.
    pub worker: u32,
    /// End of its last parent and the post delay of that parent. 0 without parents.
    pub released: f64,
    /// Submission: the release and the engine delay.
    pub submitted: f64,
    /// Start on the worker. The worker is occupied until the end.
    pub started: f64,
    /// Queue delay in seconds, from the start.
    pub queue: f64,
    /// Transfer of missing inputs in seconds, after the queue delay.
    pub transfer: f64,
    /// Clustering delay in seconds, after the transfer. 0 for a job of 1 task.
    pub clustering: f64,
    /// Run times of its tasks in seconds.
    pub run: f64,
    /// End on the worker.
    pub ended: f64,
    /// Bytes of inputs that the worker had not got.
    pub moved_bytes: u64,
}

/// Sums over all jobs, in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct PhaseSeconds {
    /// Engine delays: from release to submission.
    pub engine: f64,
    /// Waits for an idle worker: from submission to start.
    pub wait: f64,
    /// Queue delays.
    pub queue: f64,
    /// Data transfers.
    pub transfer: f64,
    /// Clustering delays.
    pub clustering: f64,
    /// Run times.
    pub run: f64,
}

/// A simulated execution of a workflow.
#[derive(Debug, Clone, PartialEq)]
pub struct Execution {
    /// Seconds from the start to the end of the last job on its worker.
    pub makespan: f64,
    /// The jobs, in the order of the clustering.
    pub jobs: Vec<JobRecord>,
    /// Bytes moved to workers. A file counts once for each worker that fetches it.
    pub moved_bytes: u64,
    /// Occupied seconds of each worker.
    pub busy_seconds: Vec<f64>,
    /// Sums of the phases of all jobs.
    pub phases: PhaseSeconds,
}

impl Execution {
    pub(crate) fn new(jobs: Vec<JobRecord>, workers: usize) -> Self {
        let mut execution = Self {
            makespan: jobs.iter().map(|job| job.ended).fold(0.0, f64::max),
            moved_bytes: jobs.iter().fold(0, |sum, job| sum.saturating_add(job.moved_bytes)),
            busy_seconds: vec![0.0; workers],
            phases: PhaseSeconds::default(),
            jobs,
        };
        for job in &execution.jobs {
            execution.busy_seconds[job.worker as usize] +=
                job.queue + job.transfer + job.clustering + job.run;
            execution.phases.engine += job.submitted - job.released;
            execution.phases.wait += job.started - job.submitted;
            execution.phases.queue += job.queue;
            execution.phases.transfer += job.transfer;
            execution.phases.clustering += job.clustering;
            execution.phases.run += job.run;
        }
        execution
    }

    /// Returns the occupied share of all workers, from 0 to 1. 0 for a makespan of 0.
    #[must_use]
    pub fn utilization(&self) -> f64 {
        let available = self.makespan * self.busy_seconds.len() as f64;
        if available > 0.0 { self.busy_seconds.iter().sum::<f64>() / available } else { 0.0 }
    }
}

/// Makespan of a clustered workflow beside that of the same workflow without clustering.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Gain {
    /// Makespan with clustering, in seconds.
    pub makespan: f64,
    /// Makespan without clustering, in seconds.
    pub baseline: f64,
}

impl Gain {
    /// Returns the performance gain μ: 1 − makespan / baseline. 0 for a baseline of 0.
    ///
    /// Paper 002 does not define μ. This definition fits its results of up to 48 %.
    #[must_use]
    pub fn gain(self) -> f64 {
        if self.baseline > 0.0 { 1.0 - self.makespan / self.baseline } else { 0.0 }
    }

    /// Returns baseline / makespan. 1 for a baseline of 0.
    #[must_use]
    pub fn ratio(self) -> f64 {
        if self.baseline > 0.0 { self.baseline / self.makespan } else { 1.0 }
    }
}
