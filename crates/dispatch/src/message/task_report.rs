//! Report of a finished task: its outcome, and the provenance of its outputs.

use crate::InstanceId;
use crate::SlotKind;
use crate::directory::MemberId;
use serde::{Deserialize, Serialize};

/// Report of one finished task.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct TaskReport {
    /// Index into the stage's tasks.
    pub task: u32,
    /// Index into the study's stages.
    pub stage: u32,
    /// Whether it ran or was reused.
    pub done: TaskOutcome,
    /// Wall seconds spent in the task cache to look up and store its outputs.
    pub cache_seconds: f64,
    /// For the provenance records of the study.
    #[serde(default)] // simulation logs of earlier versions
    pub provenance: TaskProvenance,
}

/// Instance, time and source of a finished task, for the provenance records of the study.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskProvenance {
    /// Number of the first instance of the bucket that needs the task. Equal tasks of further instances are the same task.
    pub instance: u32,
    /// Start of an execution in µs since 1970 by the worker's clock. 0 for a reused task.
    pub started_micros: u64,
    /// Execution that a reused result stems from, as far as the worker knows it.
    pub source: Option<TaskSource>,
    /// Kind of slot of an execution. Results do not depend on it.
    #[serde(default)] // simulation logs of earlier versions
    pub device: SlotKind,
}

/// Execution that a reused result stems from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum TaskSource {
    /// The task ran for this instance of the same plan.
    Instance(InstanceId),
    /// This worker has the result. It has run the task, or has fetched all outputs.
    Holder(MemberId),
}

/// Outcome of a finished task.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum TaskOutcome {
    /// It was run.
    Ran {
        /// Wall seconds it took.
        seconds: f64,
        /// Predicted wall seconds.
        predicted_seconds: f64,
        /// Outputs with a computed digest.
        digests: u32,
        /// Wall seconds spent on digests.
        digest_seconds: f64,
    },
    /// Its outputs were available from an earlier execution.
    Reused(ReuseSource),
    /// Its guard decided that it does not run.
    Skipped,
}

/// Source of a reused task's outputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum ReuseSource {
    /// Another bucket has run the same operation with the same values on regions of the same provenance.
    Dataflow,
    /// The same operation has been run with the same values on regions of equal content.
    Value,
    /// An earlier study has run it.
    Cache,
    /// An earlier round of the same study has run it, in the same process.
    Before,
    /// Another worker has run it (result directory).
    Peer,
}

/// Cause of a task failure, as serializable text.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct TaskFailure {
    /// The task, such as `t6`, or the input that could not be read.
    pub at: String,
    /// The cause, as a text fragment that fits after a colon.
    pub cause: String,
}
