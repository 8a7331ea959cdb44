//! Time and memory of a bucket's tasks: predictions, and updates from measured runs.

use super::StageActor;
use crate::task::{SHORT_SECONDS, TaskResult};
use parking_lot::Mutex;
use pleach_dispatch::cost_model::CostModel;
use pleach_dispatch::message::BucketWork;
use pleach_dispatch::stage::TaskRequest;
use pleach_workflow::{Operation, Stage, TaskInput, Value};
use std::sync::Arc;
use std::time::Duration;

/// Predicted seconds up to which a task runs on the thread of the actors if the worker has one core: a handover to another thread
/// and back takes 0.1 ms then, and no other task can run meanwhile. Messages wait for the task. With more cores, the thread serves
/// more slots, and the limit is the share of one.
const INLINE_SECONDS: f64 = 250e-6;

/// Speed of digests, a careful value: BLAKE3 on one core digests 2 to 7 GB/s.
const DIGESTED_BYTES_A_SECOND: f64 = 2e9;

/// Returns, for each task of a stage, the predicted time of the longest path from its start to the end of an instance: with
/// the parameters of the bucket's first instance.
pub(super) fn paths(
    stage: &Stage,
    operations: &[Arc<dyn Operation>],
    work: &BucketWork,
    costs: &Mutex<CostModel>,
) -> Vec<Duration> {
    let costs = costs.lock();
    let mut paths = vec![Duration::ZERO; stage.tasks.len()];
    for (level, (task, operation)) in stage.tasks.iter().zip(operations).enumerate().rev() {
        let parameters = work.instances.first().map_or(&[][..], |instance| &instance.parameters);
        let arguments: Vec<Value> =
            task.arguments.iter().filter_map(|&a| parameters.get(a).copied()).collect();
        let seconds = costs.predict(operation.as_ref(), &arguments, work.pixels);
        // Readers come after the tasks that they read.
        let reads = |read: &TaskInput| matches!(*read, TaskInput::Task { task, .. } if task == level);
        let readers = stage.tasks.iter().zip(&paths).filter(|(task, _)| task.reads.iter().any(reads));
        let rest = readers.map(|(_, path)| *path).max().unwrap_or_default();
        paths[level] = Duration::try_from_secs_f64(seconds).unwrap_or_default().saturating_add(rest);
    }
    paths
}

impl StageActor {
    /// Returns whether a task is known to take, with the digests of these outputs, so little time that it runs on the thread of
    /// the actors.
    pub(super) fn runs_inline(&self, call: &TaskRequest, digests: &[bool]) -> bool {
        let operation = &*self.operations[call.task];
        // A process may hang.
        if operation.is_external() {
            return false;
        }
        let limit = (INLINE_SECONDS / self.around.cores.max(1) as f64).max(SHORT_SECONDS);
        let digested = operation.outputs().iter().zip(digests).filter(|(_, wanted)| **wanted);
        let digested_bytes: u64 = digested.map(|(port, _)| port.element.bytes(self.pixels)).sum();
        let digest_seconds = digested_bytes as f64 / DIGESTED_BYTES_A_SECOND;
        // Only learned costs count: a declaration that is too low would block the thread of all actors.
        let costs = self.around.costs.lock();
        costs
            .predict_learned(operation, &call.arguments, self.pixels)
            .is_some_and(|seconds| seconds + digest_seconds < limit)
    }

    /// Records the measured memory of a task.
    pub(super) fn observe(&self, task: usize, result: &TaskResult) {
        // A failed run may have ended early, so its peak is no estimate.
        if let (Some(measured), Ok(_)) = (result.peak_bytes, &result.outputs) {
            let task_of = &self.stage.tasks[task];
            let mut estimates = self.around.estimates.lock();
            estimates.observe(&task_of.operation, task_of.version, self.declared_bytes[task], measured);
        }
    }

    /// Records the measured seconds of a task. Returns the seconds predicted before.
    pub(super) fn learn(&self, call: &TaskRequest, result: &TaskResult) -> f64 {
        let operation = &*self.operations[call.task];
        let mut costs = self.around.costs.lock();
        // Predicted before the update: otherwise the reported error would already include this run.
        let predicted = self.predict_on(&costs, result.device, call);
        if result.outputs.is_ok() {
            costs.observe_on(result.device, operation, &call.arguments, self.pixels, result.seconds);
        }
        predicted
    }
}
