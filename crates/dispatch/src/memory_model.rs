//! Bytes: what tasks take, what a bucket holds and will need, and what a worker may admit.
//!
//! These are the numbers that stages and their worker exchange. How a bucket arrives at them is
//! [`stage`](crate::stage)'s, what the worker makes of them [`worker`](crate::worker)'s; measuring is the shell's. What the
//! next task will take is a time, and travels with them.

use crate::stage::NodeId;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// What one task of a stage takes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskMemory {
    /// In use while it runs, its outputs not counted.
    pub scratch: u64,
    /// Of each output.
    pub outputs: Vec<u64>,
}

impl TaskMemory {
    /// All that the task takes while it runs.
    #[must_use]
    pub fn running(&self) -> u64 {
        self.outputs.iter().sum::<u64>() + self.scratch
    }
}

/// What a bucket holds once its running tasks are done, and at most until its end. Stage inputs on their way into
/// storage are counted apart, as [`BucketDemand::load_bytes`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryForecast {
    /// What the running tasks will have added to the bytes held when they are done, outputs that their instances leave
    /// in storage included; 0 where they let go of more.
    pub growth_bytes: u64,
    /// The most that is needed beyond what is held now, when the running tasks end first, then the rest runs one task
    /// at a time, and each finished instance's outputs are read and let go of before the next task begins.
    pub finish_bytes: u64,
}

/// What a bucket could use now, and what it takes to bring it to its end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BucketDemand {
    /// Grants heard of so far.
    pub heard: u64,
    /// Tasks that could start now.
    pub ready: u32,
    /// The first of them: a grant is for this one, whatever happens until it is heard.
    pub next: Option<NodeId>,
    /// What it is believed to take until the first instance that needs the next task is finished, at least. Only a worker
    /// that has to end at some time asks.
    pub next_time: Duration,
    /// A task of the bucket has been started: what it holds goes only when the bucket goes on.
    pub started: bool,
    /// Outputs that the bucket holds; a shell that has measured them says so here.
    pub held_bytes: u64,
    /// What the next task takes while it runs: scratch and all its outputs.
    pub next_bytes: u64,
    /// Stage inputs that the first task will bring, or is bringing, into storage, where they may outlast the bucket.
    pub load_bytes: u64,
    /// Stage inputs of the bucket that are in storage already; only a worker that has room below its memory asks.
    pub here_bytes: u64,
    /// What one finished instance leaves in storage for others, at most.
    pub store_bytes: u64,
    /// What instances not finished yet, and their readers, will leave there for longer than the bucket lasts.
    pub stay_bytes: u64,
    /// As things are.
    pub now: MemoryForecast,
    /// If the next task starts as well.
    pub then: MemoryForecast,
}

/// What it takes to have one finished instance's outputs read by others and let go of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutputConsumption {
    /// At most, outputs included.
    pub bytes: u64,
    /// What is left of it in storage afterwards, such as inputs that its readers have brought.
    pub rest_bytes: u64,
    /// At most, with room below memory for whatever no bucket under way reads; nothing is left in memory then.
    pub busy_bytes: u64,
}

/// What a study takes at least; found by [`rehearsal`](crate::dry_run).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MinimumMemory {
    /// All of it, executed by one worker one task at a time: with less it cannot be executed.
    pub least_bytes: u64,
    /// The same for a worker that has room below its memory for whatever no bucket under way reads.
    pub busy_bytes: u64,
    /// By stage, the most of each. Stages that are missing take nothing.
    pub drains: Vec<OutputConsumption>,
}

impl MinimumMemory {
    /// What it takes at least where so much can be stored below memory: all that has to be stored at some time fits there
    /// if as much does as is ever held.
    #[must_use]
    pub fn with_spill(&self, below_bytes: u64) -> u64 {
        if below_bytes >= self.least_bytes { self.busy_bytes } else { self.least_bytes }
    }
}

/// What a worker may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryBudget {
    /// Bytes held and reserved at most.
    pub bytes: u64,
    /// As [`MinimumMemory::least_bytes`]: kept free when something is begun ahead of its turn that will leave regions behind.
    pub least_bytes: u64,
}

impl MemoryBudget {
    /// No limit.
    pub const UNLIMITED: Self = Self { bytes: u64::MAX, least_bytes: 0 };
}
