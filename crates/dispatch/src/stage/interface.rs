//! Interface between a bucket's execution and its shell: tasks, input locations and effects.

use crate::InstanceId;
use crate::ids::NodeId;
use crate::message::TaskFailure;
use pleach_regions::RegionKey;
use pleach_workflow::Value;

/// One output of a task instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OutputId {
    /// The task instance.
    pub node: NodeId,
    /// Index into its outputs.
    pub output: usize,
}

/// Location of an input of a task instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InputLocation {
    /// The region of this instance's stage input.
    Stage {
        /// Any instance of the subtree: all have the same region.
        instance: InstanceId,
        /// Index into the stage's inputs.
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
    /// Values and regions that the task's [`Guard`](pleach_workflow::Guard) reads, after the inputs: the shell decides by them
    /// whether the task runs or is skipped. An output of a skipped task may be missing.
    pub guard: Vec<InputLocation>,
    /// For each output of the operation: whether it has a reader. The shell may drop outputs without one at once.
    pub requested: Vec<bool>,
    /// Set for the bucket's first task: the shell must load all inputs of the bucket into storage before it runs, since
    /// the worker admitted all of them.
    pub brings_inputs: bool,
}

/// Effects for the shell to perform.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// A stage instance is finished: store or return its outputs, in the stage's order, and report it. The outputs
    /// stay held for other instances of the bucket, or a later effect drops them.
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
    /// A stage instance misses an input region. Other workers may have it.
    Lacking {
        /// The instance.
        instance: InstanceId,
        /// The region.
        key: RegionKey,
    },
    /// Nothing in this bucket reads the output anymore.
    Drop(OutputId),
    /// Every instance of the bucket is finished, failed or returned, and no task runs.
    Over,
}
