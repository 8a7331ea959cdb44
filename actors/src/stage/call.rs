//! One task on its way: what stands for it, how it is done, and all that it takes to run it.

use crate::recall::Recall;
use crate::results::Found;
use crate::storage::{Get, NotDone, StorageActor};
use crate::task::{Back, RunTask, TaskActor, TaskResult};
use actix::Addr;
use pleach_dispatch::message::{Reused, TaskFailure};
use pleach_regions::{DataRegion, HeldOutputs, RegionKey, TaskKey};
use pleach_workflow::{Operation, Value};
use std::sync::Arc;
use tracing::Span;

/// What stands for a task.
#[derive(Clone, Copy, Debug)]
pub(super) struct Keys {
    /// By what its inputs are known to hold.
    pub(super) key: TaskKey,
    /// By how its inputs came about.
    pub(super) origin: TaskKey,
}

/// The way in which a task is done.
pub(super) enum How {
    Run {
        keys: Option<Keys>,
        /// Others may find what it writes.
        shared: bool,
        /// What it writes may be below memory.
        found: Option<Found>,
    },
    /// Its outputs are there.
    Found { outputs: HeldOutputs, origin: TaskKey, reused: Reused },
}

/// An input of a task.
pub(super) enum Input {
    Here(Arc<DataRegion>),
    Stored(RegionKey),
    Missing,
}

/// All that it takes to run a task.
pub(super) struct ToRun {
    pub(super) task: Addr<TaskActor>,
    pub(super) name: String,
    pub(super) operation: Arc<dyn Operation>,
    pub(super) inputs: Vec<Input>,
    pub(super) arguments: Vec<Value>,
    pub(super) digests: Vec<bool>,
    pub(super) recall: Option<Recall>,
    pub(super) back: Option<Back>,
    /// It is known to take next to no time.
    pub(super) short: bool,
    /// What is said of it.
    pub(super) span: Span,
}

impl ToRun {
    pub(super) async fn run(self, storage: &Addr<StorageActor>) -> TaskResult {
        let Self { task, name, operation, inputs, arguments, digests, recall, back, short, span } = self;
        let fail = |cause: &str| TaskFailure { at: name.clone(), cause: cause.to_owned() };
        let mut regions = Vec::with_capacity(inputs.len());
        for input in inputs {
            let region = match input {
                Input::Here(region) => Ok(region),
                Input::Stored(key) => {
                    let answer = storage.send(Get(key)).await;
                    answer.unwrap_or_else(|_| Err(NotDone::Failed(fail("the storage actor is gone"))))
                }
                Input::Missing => Err(NotDone::Failed(fail("an input that an earlier task wrote is gone"))),
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
