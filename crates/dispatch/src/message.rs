//! What manager and workers say to each other; the same over QUIC as within a process.

use crate::memory::Drain;
use crate::plan::{OutputPlan, Sharing};
use crate::{BucketId, InstanceId, LeaseId, WorkerId};
use pleach_regions::{RegionKey, Table};
use pleach_workflow::{Stage, Value};
use serde::{Deserialize, Serialize};

/// From a worker to the manager.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum ToManager {
    /// The worker is there and can run this many tasks at once.
    Join {
        /// Its slots.
        slots: u32,
    },
    /// Slots are free: send up to this many buckets, now or when there are any.
    Request {
        /// Buckets wanted beyond those already asked for.
        buckets: u32,
        /// Only of later stages than this one; takes the place of such a request that has not been answered.
        after: Option<u32>,
    },
    /// Asks for an [`Echo`](ToWorker::Echo).
    Call {
        /// The call's number.
        call: u64,
    },
    /// An instance is finished, and what others read of it is stored.
    Done {
        /// The lease it was granted under.
        lease: LeaseId,
        /// The instance.
        instance: InstanceId,
        /// Outputs that are results of the study, in the stage's order.
        results: Vec<Table>,
        /// Tasks run since the last report.
        tasks: Vec<TaskReport>,
    },
    /// An instance cannot be finished.
    Failed {
        /// The lease it was granted under.
        lease: LeaseId,
        /// The instance.
        instance: InstanceId,
        /// Why.
        cause: TaskFailure,
        /// Tasks run since the last report.
        tasks: Vec<TaskReport>,
    },
    /// The worker leaves; what it has not reported is free for others.
    Leave,
}

/// From the manager to a worker.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum ToWorker {
    /// The stages of the study, once, before anything else.
    Study {
        /// In the plan's order.
        stages: Vec<Stage>,
        /// What the study takes, one task at a time.
        least_bytes: u64,
    },
    /// A bucket to execute.
    Assign {
        /// The lease to report under.
        lease: LeaseId,
        /// The bucket.
        work: BucketWork,
        /// It answers the request that was made with `after`, not one for any bucket.
        later: bool,
    },
    /// Nobody will read these regions again.
    Release {
        /// Their keys.
        keys: Vec<RegionKey>,
    },
    /// The answer to a [`Call`](ToManager::Call): all that there was to say before it has been said.
    Echo {
        /// The call's number.
        call: u64,
    },
    /// Start nothing more, and leave when nothing runs any more.
    Stop,
    /// The study is over.
    Finished,
}

/// A bucket as a worker gets it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BucketWork {
    /// Which bucket of the plan: those of one stage have their turns in this order.
    pub bucket: BucketId,
    /// Index into the study's stages.
    pub stage: u32,
    /// Size of the images it works on, from which operations estimate what they take.
    pub pixels: u64,
    /// What it takes to have one finished instance's outputs read.
    pub drain: Drain,
    /// What its tasks share.
    pub sharing: Sharing,
    /// The instances to execute.
    pub instances: Vec<InstanceWork>,
    /// What they read that this worker does not hold, and others do: it is fetched from one of them.
    pub elsewhere: Vec<Elsewhere>,
}

/// A region that other workers hold.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Elsewhere {
    /// Its key.
    pub key: RegionKey,
    /// Those that hold it, at least one.
    pub workers: Vec<WorkerId>,
}

/// A stage instance as a worker gets it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InstanceWork {
    /// Its id, for the reports.
    pub id: InstanceId,
    /// Values of the stage's parameters.
    pub parameters: Vec<Value>,
    /// Keys of the stage's inputs.
    pub inputs: Vec<RegionKey>,
    /// What becomes of the stage's outputs.
    pub outputs: Vec<OutputPlan>,
    /// Not all that read them can run as soon as this instance is finished: they stay for longer.
    pub stays: bool,
}

/// One task that is done.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct TaskReport {
    /// Index into the stage's tasks.
    pub task: u32,
    /// Index into the study's stages.
    pub stage: u32,
    /// How it was done.
    pub done: TaskDone,
    /// Wall seconds of finding and keeping it among what earlier studies have computed.
    pub cache_seconds: f64,
}

/// How a task was done.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum TaskDone {
    /// It was run.
    Ran {
        /// Wall seconds it took.
        seconds: f64,
        /// Wall seconds that it was believed to take.
        predicted_seconds: f64,
        /// Outputs of which the digest was taken.
        digests: u32,
        /// Wall seconds that took.
        digest_seconds: f64,
    },
    /// Its outputs were there, since somebody had run the same before.
    Reused(Reused),
}

/// Why a task need not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Reused {
    /// Another bucket has run the same operation with the same values on regions that came about in the same way.
    Dataflow,
    /// The same operation has been run with the same values on regions that turned out to be equal.
    Value,
    /// An earlier study has run it.
    Cache,
}

/// Why a task gave no result, in words that can travel.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct TaskFailure {
    /// The task, such as `t6`, or the input that could not be read.
    pub at: String,
    /// What went wrong, as a fragment that fits after a colon.
    pub cause: String,
}
