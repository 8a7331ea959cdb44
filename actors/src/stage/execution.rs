//! One task in execution: its keys, the way it is executed, and all inputs of a run.

use super::guard::PassedRegion;
use super::live_outputs::RemoteOutput;
use crate::exchange::{Exchange, HolderError};
use crate::storage::{GetRegion, RegionUnavailable, StorageActor};
use crate::task::{DeviceCall, RunTask, StoredOutputs, TaskActor, TaskResult};
use crate::task_cache::TaskLookup;
use crate::task_results::StoredTask;
use actix::Addr;
use pleach_dispatch::message::{ReuseSource, TaskFailure, TaskSource};
use pleach_dispatch::stage::OutputId;
use pleach_regions::{AcquiredOutputs, DataRegion, RegionKey, TaskKey};
use pleach_workflow::{Operation, Value};
use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use tracing::{Span, warn};

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
    Found { outputs: AcquiredOutputs, origin: TaskKey, reused: ReuseSource, ran_for: Option<TaskSource> },
    /// The guard of the task has decided that it does not run.
    Skipped { passed: Vec<PassedRegion> },
}

/// An input of a task.
pub(super) enum LoadedInput {
    Here(Arc<DataRegion>),
    Stored(RegionKey),
    /// One of the outputs to fetch.
    Remote(OutputId),
    Missing,
}

/// Outputs of other workers, fetched before a task runs or an instance ends.
#[derive(Default)]
pub(super) struct RemoteFetches {
    exchange: Option<Exchange>,
    outputs: Vec<(OutputId, RemoteOutput)>,
}

/// Fetched outputs, or the first one that no holder sent as announced.
pub(super) type Fetched = Result<Vec<(OutputId, Arc<DataRegion>)>, OutputId>;

impl RemoteFetches {
    pub(super) fn new(exchange: Option<Exchange>, mut outputs: Vec<(OutputId, RemoteOutput)>) -> Self {
        outputs.sort_unstable_by_key(|(output, _)| *output);
        outputs.dedup_by_key(|(output, _)| *output);
        Self { exchange, outputs }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.outputs.is_empty()
    }

    /// Fetches all outputs at once.
    pub(super) async fn fetch(self) -> Fetched {
        let Self { exchange, outputs } = self;
        // Begun together, and awaited one after the other: the transfers run on the network's threads.
        let begun: Vec<_> = outputs
            .into_iter()
            .map(|(output, remote)| {
                let from: Vec<SocketAddr> = remote.task.holders.iter().map(|holder| holder.address).collect();
                let fetch =
                    exchange.as_ref().map(|it| it.fetch_result(remote.fetch_key(), remote.digest, &from));
                (output, fetch)
            })
            .collect();
        let mut fetched = Vec::with_capacity(begun.len());
        for (output, fetch) in begun {
            let Some(fetch) = fetch else { return Err(output) };
            match fetch.await {
                Ok(region) => fetched.push((output, region)),
                Err(error) => {
                    let is_corrupt =
                        error.tried.iter().any(|tried| matches!(tried.failure, HolderError::Corrupt(_)));
                    // A holder that has evicted the result, or has left, is nothing unusual.
                    if is_corrupt {
                        warn!("refused a task result, which is computed again: {error}");
                    }
                    return Err(output);
                }
            }
        }
        Ok(fetched)
    }
}

/// Everything needed to run a task.
pub(super) struct TaskJob {
    pub(super) task: Addr<TaskActor>,
    pub(super) name: String,
    pub(super) operation: Arc<dyn Operation>,
    pub(super) inputs: Vec<LoadedInput>,
    pub(super) remote: RemoteFetches,
    pub(super) arguments: Vec<Value>,
    pub(super) digests: Vec<bool>,
    pub(super) recall: Option<TaskLookup>,
    pub(super) back: Option<StoredOutputs>,
    /// The task is known to take so little time that it runs on the thread of the actors.
    pub(super) short: bool,
    /// Use of the slot's device.
    pub(super) device: Option<DeviceCall>,
    /// Span of the task.
    pub(super) span: Span,
}

/// Result of a task, with the outputs of other workers that were fetched for it.
pub(super) struct JobResult {
    /// `None` if the task did not run, because its outputs are known or an input is lost.
    pub(super) result: Option<TaskResult>,
    pub(super) fetched: Fetched,
}

impl TaskJob {
    pub(super) async fn run(self, storage: &Addr<StorageActor>) -> JobResult {
        let Self {
            task,
            name,
            operation,
            inputs,
            remote,
            arguments,
            digests,
            recall,
            back,
            short,
            device,
            span,
        } = self;
        let fetched = match remote.fetch().await {
            Ok(fetched) => fetched,
            Err(lost) => return JobResult { result: None, fetched: Err(lost) },
        };
        let by_output: HashMap<OutputId, &Arc<DataRegion>> =
            fetched.iter().map(|(output, region)| (*output, region)).collect();
        let fail = |cause: &str| TaskFailure { at: name.clone(), cause: cause.to_owned() };
        let missing = || RegionUnavailable::Failed(fail("an input region from an earlier task is missing"));
        let mut regions = Vec::with_capacity(inputs.len());
        for input in inputs {
            let region = match input {
                LoadedInput::Here(region) => Ok(region),
                LoadedInput::Remote(output) => by_output.get(&output).copied().cloned().ok_or_else(missing),
                LoadedInput::Stored(key) => {
                    let answer = storage.send(GetRegion(key)).await;
                    answer.unwrap_or_else(|_| {
                        Err(RegionUnavailable::Failed(fail("the storage actor has ended")))
                    })
                }
                LoadedInput::Missing => Err(missing()),
            };
            match region {
                Ok(region) => regions.push(region),
                Err(why) => {
                    return JobResult { result: Some(TaskResult::not_done(why)), fetched: Ok(fetched) };
                }
            }
        }
        let gone = fail("the task actor has ended");
        let inputs = regions;
        let run = RunTask { name, operation, inputs, arguments, digests, recall, back, short, device, span };
        let answer = task.send(run).await;
        let result = answer.unwrap_or_else(|_| TaskResult::failed(gone));
        JobResult { result: Some(result), fetched: Ok(fetched) }
    }
}
