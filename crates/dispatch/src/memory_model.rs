//! Memory model: task sizes, bucket forecasts, and worker budgets, in bytes.
//!
//! Stages and their worker exchange these numbers. [`stage`](crate::stage) computes a bucket's forecast,
//! [`worker`](crate::worker) admits tasks by it, and the shell measures. The predicted time of the
//! next task travels with them.

use crate::ids::NodeId;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Memory of one task of a stage.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskMemory {
    /// Bytes in use while it runs, without its outputs.
    pub scratch: u64,
    /// Bytes of each output.
    pub outputs: Vec<u64>,
}

impl TaskMemory {
    /// Returns all bytes that the task uses while it runs.
    #[must_use]
    pub fn running(&self) -> u64 {
        self.outputs.iter().sum::<u64>() + self.scratch
    }
}

/// Memory of a bucket once its running tasks are done, and its maximum until its end. Stage inputs that are being loaded
/// into storage are counted separately, as [`BucketDemand::load_bytes`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryForecast {
    /// Bytes that the running tasks add to the held bytes by the time they are done, including the outputs that their
    /// instances leave in storage. 0 if they release more.
    pub growth_bytes: u64,
    /// Maximum of additional bytes when the running tasks end first, then the rest runs one task
    /// at a time, and each finished instance's outputs are read and released before the next task begins.
    pub finish_bytes: u64,
}

/// A bucket's next task and the memory to finish the bucket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BucketDemand {
    /// Grants received so far.
    pub heard: u64,
    /// Tasks that could start now.
    pub ready: u32,
    /// The first of them. The next grant is for this task, even if others become ready before the stage receives it.
    pub next: Option<NodeId>,
    /// A task is being looked up for a slot, or for several: the bucket will need a slot that is free now.
    pub resolving: bool,
    /// Near the end of the bucket: its tasks by their paths.
    pub tail: TailDemand,
    /// Minimum predicted time until the first instance that needs the next task is finished. Only a worker
    /// with a time limit asks for it.
    pub next_time: Duration,
    /// A task of the bucket has been started: only its progress releases the held bytes.
    pub started: bool,
    /// Bytes of the outputs that the bucket holds. A shell that has measured them sets them here.
    pub held_bytes: u64,
    /// Memory of the next task while it runs: scratch and all its outputs.
    pub next_bytes: u64,
    /// Stage inputs that the first task loads into storage, where they may outlast the bucket.
    pub load_bytes: u64,
    /// Stage inputs of the bucket that are in storage already. Only a worker with a spill tier asks for them.
    pub local_bytes: u64,
    /// Maximum that one finished instance leaves in storage for its readers.
    pub store_bytes: u64,
    /// Bytes that unfinished instances and their readers leave in storage beyond the end of the bucket.
    pub stay_bytes: u64,
    /// Forecast for the current state.
    pub now: MemoryForecast,
    /// Forecast after a start of the next task.
    pub then: MemoryForecast,
}

/// A bucket's tasks by their predicted paths to the end of an instance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TailDemand {
    /// Tasks that are neither done, failed nor withdrawn.
    pub open_tasks: u32,
    /// The other fields are known: few tasks are open, and the bucket has predicted paths.
    pub is_tail: bool,
    /// Tasks are being looked up, or wait for other workers that run them. The shell sets it.
    pub waits: bool,
    /// Path from the start of the next task. Zero if this worker has claimed it, or it is not looked up.
    pub next_path: Duration,
    /// The next task is among the last ones of its instances: its path is short beside the longest of the stage.
    pub is_last: bool,
    /// Longest path of an instance that another worker can continue: one with a ready task that has no claim.
    pub spare_path: Option<Duration>,
}

impl TailDemand {
    /// Returns the demand after a grant that the stage has not received: its task may be that of the spare instance.
    #[must_use]
    pub fn after_grant(self) -> Self {
        Self { next_path: Duration::ZERO, is_last: false, spare_path: None, ..self }
    }
}

/// Memory to have one finished instance's outputs read and released.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutputConsumption {
    /// Maximum, including the outputs.
    pub bytes: u64,
    /// Bytes that remain in storage afterwards, such as inputs that its readers have loaded.
    pub rest_bytes: u64,
    /// Maximum if regions that no running bucket reads can spill. Nothing remains in memory then.
    pub busy_bytes: u64,
}

/// Minimum memory of a study, computed by a [dry run](crate::dry_run).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MinimumMemory {
    /// Minimum for the whole study, executed by one worker one task at a time.
    #[serde(rename = "least_bytes")]
    pub min_bytes: u64,
    /// Minimum memory when regions that no running bucket reads can spill.
    pub busy_bytes: u64,
    /// Maximum of each stage. Missing stages take nothing.
    pub drains: Vec<OutputConsumption>,
}

impl MinimumMemory {
    /// Returns the minimum memory with a spill tier of `spill_bytes`. The spill tier holds all regions that are ever
    /// stored at once if it has the size of the minimum without it.
    #[must_use]
    pub fn with_spill(&self, spill_bytes: u64) -> u64 {
        if spill_bytes >= self.min_bytes { self.busy_bytes } else { self.min_bytes }
    }
}

/// Memory limit of a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryBudget {
    /// Maximum of held and reserved bytes.
    pub bytes: u64,
    /// As [`MinimumMemory::min_bytes`]: kept free when a task that leaves regions behind starts out of order.
    pub min_bytes: u64,
}

impl MemoryBudget {
    /// No limit.
    pub const UNLIMITED: Self = Self { bytes: u64::MAX, min_bytes: 0 };
}
