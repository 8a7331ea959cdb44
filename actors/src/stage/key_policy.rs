//! Which of a stage's tasks are worth a key, and which of their outputs a digest.
//!
//! A task is looked up among what has been computed only when it costs more than that; and a region is digested only when
//! some task that reads it costs more than the digest.

use crate::stage::ResolvedStage;
use pleach_dispatch::plan::ReuseScope;
use pleach_workflow::{Operation, TaskInput};
use std::sync::Arc;

/// What making a key, a look-up and the messages around it take, generously.
const KEY_SECONDS: f64 = 20e-6;

/// Bytes of a region that are digested in a second, on a core that is busy with other things too: a third of what BLAKE3
/// reaches alone.
const DIGEST_BYTES_PER_SECOND: f64 = 1.5e9;

/// By task of the stage.
#[derive(Debug)]
pub(super) struct KeyPolicy {
    /// Whether its outputs are looked for before it is run, and kept for others afterwards.
    pub(super) keyed: Vec<bool>,
    /// Which of its outputs are digested.
    pub(super) digests: Vec<Vec<bool>>,
}

impl KeyPolicy {
    /// On images of `pixels` pixels; `None` where buckets share nothing with each other. With a cache every task is looked
    /// for: here before it is looked for there.
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
