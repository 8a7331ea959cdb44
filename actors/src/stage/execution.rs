//! One task in execution: its keys, the way it is executed, and all inputs of a run.

use crate::storage::{GetRegion, RegionUnavailable, StorageActor};
use crate::task::{RunTask, StoredOutputs, TaskActor, TaskResult};
use crate::task_cache::TaskLookup;
use crate::task_results::StoredTask;
use actix::Addr;
use pleach_dispatch::message::{ReuseSource, TaskFailure};
use pleach_regions::{AcquiredOutputs, DataRegion, RegionKey, TaskKey};
use pleach_workflow::{Operation, Value};
use std::sync::Arc;
use tracing::Span;

/// Keys of a task.
#[derive(Clone, Copy, Debug)]
pub(super) struct TaskKeys {
    /// Key by the known content of its inputs.
    pub(super) key: TaskKey,
    /// Key by the provenance of its inputs.
    pub(super) origin: TaskKey,
}

/// Way to execute a task.
pub(super) enum Execution {
    Run {
        keys: Option<TaskKeys>,
        /// Other buckets may reuse its outputs.
        shared: bool,
        /// Encoded or spilled outputs that may make the run unnecessary.
        found: Option<StoredTask>,
    },
    /// The outputs are in the result cache.
    Found { outputs: AcquiredOutputs, origin: TaskKey, reused: ReuseSource },
}

/// An input of a task.
pub(super) enum LoadedInput {
    Here(Arc<DataRegion>),
    Stored(RegionKey),
    Missing,
}

/// Everything needed to run a task.
pub(super) struct TaskJob {
    pub(super) task: Addr<TaskActor>,
    pub(super) name: String,
    pub(super) operation: Arc<dyn Operation>,
    pub(super) inputs: Vec<LoadedInput>,
    pub(super) arguments: Vec<Value>,
    pub(super) digests: Vec<bool>,
    pub(super) recall: Option<TaskLookup>,
    pub(super) back: Option<StoredOutputs>,
    /// The task is known to take almost no time.
    pub(super) short: bool,
    /// Span of the task.
    pub(super) span: Span,
}

impl TaskJob {
    pub(super) async fn run(self, storage: &Addr<StorageActor>) -> TaskResult {
        let Self { task, name, operation, inputs, arguments, digests, recall, back, short, span } = self;
        let fail = |cause: &str| TaskFailure { at: name.clone(), cause: cause.to_owned() };
        let mut regions = Vec::with_capacity(inputs.len());
        for input in inputs {
            let region = match input {
                LoadedInput::Here(region) => Ok(region),
                LoadedInput::Stored(key) => {
                    let answer = storage.send(GetRegion(key)).await;
                    answer.unwrap_or_else(|_| {
                        Err(RegionUnavailable::Failed(fail("the storage actor has ended")))
                    })
                }
                LoadedInput::Missing => {
                    Err(RegionUnavailable::Failed(fail("an input region from an earlier task is missing")))
                }
            };
            match region {
                Ok(region) => regions.push(region),
                Err(why) => return TaskResult::not_done(why),
            }
        }
        let gone = fail("the task actor has ended");
        let run = RunTask { name, operation, inputs: regions, arguments, digests, recall, back, short, span };
        let answer = task.send(run).await;
        answer.unwrap_or_else(|_| TaskResult::failed(gone))
    }
}
