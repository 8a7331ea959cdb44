//! Selects the tasks of a stage that get a key, and the outputs that get a digest.
//!
//! A lookup pays only for a task that costs more than the lookup. A digest pays only if a task that reads the region costs
//! more than the digest.

use crate::stage::ResolvedStage;
use pleach_dispatch::plan::ReuseScope;
use pleach_workflow::{Operation, TaskInput};
use std::sync::Arc;

/// Generous bound on the seconds for a key, a lookup and their messages.
const KEY_SECONDS: f64 = 20e-6;

/// Bytes digested per second on a core with other work: one third of the rate of BLAKE3 alone.
const DIGEST_BYTES_PER_SECOND: f64 = 1.5e9;

/// Policy by task of the stage.
#[derive(Debug)]
pub(super) struct KeyPolicy {
    /// Tasks whose outputs are looked up before a run and kept for other buckets afterwards.
    pub(super) keyed: Vec<bool>,
    /// Outputs that get a digest.
    pub(super) digests: Vec<Vec<bool>>,
}

impl KeyPolicy {
    /// Computes the policy for images of `pixels` pixels. Returns `None` without reuse between buckets. With a task cache
    /// every task gets a key, because the actor searches the worker's results before the cache.
    pub(super) fn of(
        sharing: ReuseScope,
        runnable: &ResolvedStage,
        pixels: u64,
        has_cache: bool,
    ) -> Option<Self> {
        if sharing == ReuseScope::Tree {
            return None;
        }
        let ResolvedStage { stage, operations, readers } = runnable;
        let cost = |operation: &Arc<dyn Operation>| operation.cost_seconds(pixels);
        let costs: Vec<f64> = operations.iter().map(cost).collect();
        let digest = |task: usize, output: usize| {
            let bytes = stage.tasks[task].writes[output].element.bytes(pixels);
            #[expect(clippy::cast_precision_loss, reason = "an estimate")]
            let seconds = bytes as f64 / DIGEST_BYTES_PER_SECOND + KEY_SECONDS;
            let read = TaskInput::Task { task, output };
            let is_worth =
                |(task, cost): (&pleach_workflow::Task, &f64)| *cost > seconds && task.reads.contains(&read);
            let given = stage.outputs.iter().zip(readers);
            let mut given = given.filter(|(given, _)| (given.task, given.output) == (task, output));
            let is_read = |readers: &Vec<_>| readers.iter().any(|reader| cost(reader) > seconds);
            let others = given.any(|(_, readers)| is_read(readers));
            sharing == ReuseScope::Value && (others || stage.tasks.iter().zip(&costs).any(is_worth))
        };
        let outputs = |(number, task): (usize, &pleach_workflow::Task)| {
            (0..task.writes.len()).map(|output| digest(number, output)).collect()
        };
        let digests = stage.tasks.iter().enumerate().map(outputs).collect();
        Some(Self { keyed: costs.iter().map(|cost| has_cache || *cost > KEY_SECONDS).collect(), digests })
    }
}
