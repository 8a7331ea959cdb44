//! What a bucket's execution and its shell say to each other: tasks, where their inputs are, and what to do.

use crate::InstanceId;
use crate::message::TaskFailure;
use pleach_regions::RegionKey;
use pleach_workflow::Value;

/// A task instance of the bucket. Numbers follow the order of execution: depth-first, parents before children.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub u32);

impl NodeId {
    pub(super) fn index(self) -> usize {
        self.0 as usize
    }
}

/// One output of a task instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OutputId {
    /// The task instance.
    pub node: NodeId,
    /// Which of its outputs.
    pub output: usize,
}

/// Where a task instance finds an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InputLocation {
    /// The region that this instance's stage input holds.
    Stage {
        /// Any instance of the subtree: they agree on it.
        instance: InstanceId,
        /// Which stage input.
        input: usize,
    },
    /// An output of an ancestor in the tree.
    Task(OutputId),
}

/// A task to run.
#[derive(Clone, Debug, PartialEq)]
pub struct TaskRequest {
    /// The task instance.
    pub node: NodeId,
    /// Index into the stage's tasks.
    pub task: usize,
    /// Arguments of the operation.
    pub arguments: Vec<Value>,
    /// Inputs of the operation.
    pub inputs: Vec<InputLocation>,
    /// For each output of the operation: whether anything reads it. Others may be dropped at once.
    pub wanted: Vec<bool>,
    /// The bucket's first task: what the bucket reads is to be brought into storage before it runs, all of it, since
    /// that is what was admitted.
    pub brings_inputs: bool,
}

/// What the shell is to do.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// A stage instance is finished: hand over its outputs, in the stage's order, and report it. The outputs
    /// are still held for others of the bucket, or dropped by a later effect.
    Done {
        /// The instance.
        instance: InstanceId,
        /// Its outputs.
        outputs: Vec<OutputId>,
    },
    /// A stage instance failed.
    Failed {
        /// The instance.
        instance: InstanceId,
        /// Why.
        cause: TaskFailure,
    },
    /// A stage instance lacks a region that it reads: others may have it.
    Lacking {
        /// The instance.
        instance: InstanceId,
        /// The region.
        key: RegionKey,
    },
    /// Nothing in this bucket reads the output any more.
    Drop(OutputId),
    /// Every instance of the bucket is finished, failed or handed back, and none of its tasks runs.
    Over,
}
