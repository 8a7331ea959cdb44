//! Answers from the records, as shown to users and sent over HTTP.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Answer about a study: its runs on request, or totals of all its tasks.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Explanation {
    /// Name of the study.
    pub study: String,
    /// Whether every execution of the study is recorded to its end.
    pub is_complete: bool,
    /// Reasons why records are missing.
    pub notes: Vec<String>,
    /// The runs asked for: one for each phase and tile.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub runs: Vec<ExplainedRun>,
    /// Totals by task. Empty if runs were asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tasks: Vec<TaskSummary>,
    /// Totals by worker. Empty if runs were asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub workers: Vec<WorkerSummary>,
    /// Number of tasks executed. `None` if runs were asked for, like the next three.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tasks_executed: Option<u64>,
    /// Number of tasks reused, by level, without the plan's levels `stage` and `tree`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tasks_reused: Option<BTreeMap<String, u64>>,
    /// Number of instances that a worker left or lost before it reported them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instances_lost: Option<u64>,
    /// Number of finished instances whose only outputs were lost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instances_reopened: Option<u64>,
}

/// One evaluation on one tile.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ExplainedRun {
    /// Folder of the phase. `None` for a study without phases.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<String>,
    /// The evaluation. 0 is the baseline or the reference.
    pub evaluation: usize,
    /// Name of the tile.
    pub tile: String,
    /// Its tasks, stage by stage.
    pub tasks: Vec<RecordedTask>,
}

/// Record of one task of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RecordedTask {
    /// Name of the stage.
    pub stage: String,
    /// Name of the task in its stage.
    pub task: String,
    /// Name of the operation.
    pub operation: String,
    /// `run`: executed for this evaluation. `stage`, `bucket`: executed for `evaluation`, whose stage instance or bucket this
    /// one shares. `dataflow`, `value`: found in the memory of `worker`. `peer`: found at worker `holder`. `cache`: in the
    /// task cache. `earlier`: executed in an earlier phase or round. `skipped`: its loop had ended, or it is of the other
    /// branch of a choice. `unrecorded`: no record.
    pub source: String,
    /// Evaluation that the task was executed for, if it is another. 0 is the baseline or the reference.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evaluation: Option<usize>,
    /// Worker that executed the task or found its result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker: Option<String>,
    /// Worker that had the result (`peer`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holder: Option<String>,
    /// `accelerator` if the task was executed there. `None` for a core.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,
    /// Start of the execution in seconds since 1970, by the clock of the worker.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started: Option<f64>,
    /// Wall seconds of the execution.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds: Option<f64>,
    /// Whether the task failed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub failed: bool,
    /// Further executions of this task, whose results were lost or came too late.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub repeated: Vec<RepeatedExecution>,
}

/// A further execution of a task.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RepeatedExecution {
    /// Worker that executed the task, or had leased it.
    pub worker: String,
    /// `worker lost`, `output lost`, `too late`, `input missing`, `process ended`.
    pub cause: String,
    /// As [`RecordedTask::started`]. `None` if the worker was lost before it reported the task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started: Option<f64>,
    /// Wall seconds of the execution, if reported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds: Option<f64>,
}

/// Totals of one task over all runs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TaskSummary {
    /// Folder of the phase. `None` for a study without phases.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<String>,
    /// Name of the stage.
    pub stage: String,
    /// Name of the task in its stage.
    pub task: String,
    /// Name of the operation.
    pub operation: String,
    /// Number of executions.
    pub executed: u64,
    /// Wall seconds of the executions.
    pub seconds: f64,
    /// Number of reused results by level.
    pub reused: BTreeMap<String, u64>,
    /// Number of times that its guard decided that it does not run.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub skipped: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// Totals of one worker.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WorkerSummary {
    /// Name of the worker.
    pub worker: String,
    /// Number of executed tasks.
    pub executed: u64,
    /// Wall seconds of the executed tasks.
    pub seconds: f64,
    /// Number of reused results.
    pub reused: u64,
}
