//! Selects the tasks of a stage that get a key, and the outputs that get a digest.
//!
//! A lookup pays only for a task that costs more than the lookup. A digest pays only if a task that reads the region costs
//! more than the digest.

use crate::plan::ReuseScope;
use pleach_workflow::{Operation, Stage, Task, TaskInput};
use std::sync::Arc;

/// Generous bound on the seconds for a key, a lookup and their messages.
const KEY_SECONDS: f64 = 20e-6;

/// Bytes digested per second on a core with other work: one third of the rate of BLAKE3 alone.
const DIGEST_BYTES_PER_SECOND: f64 = 1.5e9;

/// Policy by task of the stage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyPolicy {
    /// Tasks whose outputs are looked up before a run and kept for other buckets afterwards.
    pub keyed: Vec<bool>,
    /// Outputs that get a digest.
    pub digests: Vec<Vec<bool>>,
}

/// Seconds of the tasks that a policy compares with keys and digests.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DeclaredCosts {
    /// By task of the stage.
    pub tasks: Vec<f64>,
    /// By output of the stage: the tasks of other stages that read it.
    pub readers: Vec<Vec<f64>>,
}

impl DeclaredCosts {
    /// Returns the costs that the operations declare for images of `pixels` pixels. `readers` has the operations of other
    /// stages that read each output.
    #[must_use]
    pub fn new(operations: &[Arc<dyn Operation>], readers: &[Vec<Arc<dyn Operation>>], pixels: u64) -> Self {
        let costs = |operations: &[Arc<dyn Operation>]| {
            operations.iter().map(|operation| operation.cost_seconds(pixels)).collect()
        };
        Self { tasks: costs(operations), readers: readers.iter().map(|readers| costs(readers)).collect() }
    }
}

impl KeyPolicy {
    /// Computes the policy for images of `pixels` pixels. Returns `None` without reuse between buckets. With a task cache
    /// every task gets a key, because the actor searches the worker's results before the cache.
    #[must_use]
    pub fn new(
        sharing: ReuseScope,
        stage: &Stage,
        costs: &DeclaredCosts,
        pixels: u64,
        has_cache: bool,
    ) -> Option<Self> {
        if sharing == ReuseScope::Tree {
            return None;
        }
        let digest = |task: usize, output: usize| {
            let bytes = stage.tasks[task].writes[output].element.bytes(pixels);
            #[expect(clippy::cast_precision_loss, reason = "an estimate")]
            let seconds = bytes as f64 / DIGEST_BYTES_PER_SECOND + KEY_SECONDS;
            let read = TaskInput::Task { task, output };
            let is_worth = |(task, cost): (&Task, &f64)| *cost > seconds && task.reads.contains(&read);
            let given = stage.outputs.iter().zip(&costs.readers);
            let mut given = given.filter(|(given, _)| (given.task, given.output) == (task, output));
            let others = given.any(|(_, readers)| readers.iter().any(|cost| *cost > seconds));
            // Only the value scope compares content.
            sharing == ReuseScope::Value && (others || stage.tasks.iter().zip(&costs.tasks).any(is_worth))
        };
        let outputs = |(number, task): (usize, &Task)| {
            (0..task.writes.len()).map(|output| digest(number, output)).collect()
        };
        let digests = stage.tasks.iter().enumerate().map(outputs).collect();
        let keyed = costs.tasks.iter().map(|cost| has_cache || *cost > KEY_SECONDS).collect();
        Some(Self { keyed, digests })
    }

    /// Digests every output of the stage with readers in other stages, too. Workers that fetch it know only its digest, and
    /// must compute the same task keys as the worker that wrote it.
    #[must_use]
    pub fn for_cluster(mut self, sharing: ReuseScope, stage: &Stage, costs: &DeclaredCosts) -> Self {
        let read = stage.outputs.iter().zip(&costs.readers).filter(|(_, readers)| !readers.is_empty());
        for (output, _) in read.filter(|_| sharing == ReuseScope::Value) {
            self.digests[output.task][output.output] = true;
        }
        self
    }
}
