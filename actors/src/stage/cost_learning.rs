//! Time and memory of a bucket's tasks: predictions, and updates from measured runs.

use super::StageActor;
use crate::task::{SHORT_SECONDS, TaskResult};
use pleach_dispatch::stage::TaskRequest;

impl StageActor {
    /// Returns whether a task is known to take less time than a handover to another thread.
    pub(super) fn runs_inline(&self, call: &TaskRequest) -> bool {
        let operation = &*self.operations[call.task];
        // Only learned costs count: a declaration that is too low would block the thread of all actors.
        let costs = self.around.costs.lock();
        costs
            .predict_learned(operation, &call.arguments, self.pixels)
            .is_some_and(|seconds| seconds < SHORT_SECONDS)
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
        let predicted = costs.predict(operation, &call.arguments, self.pixels);
        if result.outputs.is_ok() {
            costs.observe(operation, &call.arguments, self.pixels, result.seconds);
        }
        predicted
    }
}
