//! One task on its way: what stands for it, how it is done, and all that it takes to run it.

use crate::storage::{GetRegion, RegionUnavailable, StorageActor};
use crate::task::{RunTask, StoredOutputs, TaskActor, TaskResult};
use crate::task_cache::TaskLookup;
use crate::task_results::SpilledTask;
use actix::Addr;
use pleach_dispatch::message::{ReuseSource, TaskFailure};
use pleach_regions::{AcquiredOutputs, DataRegion, RegionKey, TaskKey};
use pleach_workflow::{Operation, Value};
use std::sync::Arc;
use tracing::Span;

/// What stands for a task.
#[derive(Clone, Copy, Debug)]
pub(super) struct TaskKeys {
    /// By what its inputs are known to hold.
    pub(super) key: TaskKey,
    /// By how its inputs came about.
    pub(super) origin: TaskKey,
}

/// The way in which a task is done.
pub(super) enum Execution {
    Run {
        keys: Option<TaskKeys>,
        /// Others may find what it writes.
        shared: bool,
        /// What it writes may be below memory.
        found: Option<SpilledTask>,
    },
    /// Its outputs are there.
    Found { outputs: AcquiredOutputs, origin: TaskKey, reused: ReuseSource },
}

/// An input of a task.
pub(super) enum LoadedInput {
    Here(Arc<DataRegion>),
    Stored(RegionKey),
    Missing,
}

/// All that it takes to run a task.
pub(super) struct TaskJob {
    pub(super) task: Addr<TaskActor>,
    pub(super) name: String,
    pub(super) operation: Arc<dyn Operation>,
    pub(super) inputs: Vec<LoadedInput>,
    pub(super) arguments: Vec<Value>,
    pub(super) digests: Vec<bool>,
    pub(super) recall: Option<TaskLookup>,
    pub(super) back: Option<StoredOutputs>,
    /// It is known to take next to no time.
    pub(super) short: bool,
    /// What is said of it.
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
                    answer
                        .unwrap_or_else(|_| Err(RegionUnavailable::Failed(fail("the storage actor is gone"))))
                }
                LoadedInput::Missing => {
                    Err(RegionUnavailable::Failed(fail("an input that an earlier task wrote is gone")))
                }
            };
            match region {
                Ok(region) => regions.push(region),
                Err(why) => return TaskResult::not_done(why),
            }
        }
        let gone = fail("the task actor is gone");
        let run = RunTask { name, operation, inputs: regions, arguments, digests, recall, back, short, span };
        let answer = task.send(run).await;
        answer.unwrap_or_else(|_| TaskResult::failed(gone))
    }
}
