//! JSON types of the HTTP interface: studies and workers as clients see them. `openapi.json` describes the same types
//! for other programs.
//!
//! The manager fills these plain data types, and clients show them.

use crate::api::digest::InputDigest;
use serde::{Deserialize, Serialize};
use std::fmt;
use time::OffsetDateTime;
use time::serde::rfc3339;

/// State of a study.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum StudyState {
    /// The manager lacks files that the study reads.
    Waiting,
    /// The study is ready to start.
    Queued,
    /// Workers execute the study.
    Running,
    /// All evaluations have a result or have failed, and the results are written.
    Complete,
    /// A user canceled the study.
    #[serde(alias = "cancelled")] // as older state directories have it
    Canceled,
    /// The study cannot continue, and its message gives the reason. The manager tries again after its next start.
    Failed,
}

impl StudyState {
    /// Returns whether the state is final.
    pub(crate) fn is_over(self) -> bool {
        matches!(self, Self::Complete | Self::Canceled | Self::Failed)
    }
}

impl fmt::Display for StudyState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Waiting => "waiting",
            Self::Queued => "queued",
            Self::Running => "running",
            Self::Complete => "complete",
            Self::Canceled => "canceled",
            Self::Failed => "failed",
        })
    }
}

/// Status of a study.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct StudyStatus {
    /// Unique id on this manager.
    pub(crate) id: String,
    /// Name in the study file. Several studies may have the same name.
    pub(crate) name: String,
    pub(crate) state: StudyState,
    /// Evaluations with a result, or a failure, for every run.
    pub(crate) evaluations_done: u64,
    /// Number of known evaluations. Later phases and growing samples add more.
    pub(crate) evaluations: u64,
    pub(crate) tasks_executed: u64,
    /// Number of known tasks left. Reuse may remove some of them.
    pub(crate) remaining_tasks: u64,
    /// Prediction at the present throughput. `None` if it is unknown.
    pub(crate) remaining_seconds: Option<f64>,
    /// Failed runs. A run is one evaluation on one tile.
    pub(crate) failed: u64,
    #[serde(with = "rfc3339")]
    pub(crate) submitted: OffsetDateTime,
    /// Reason for waiting or for the failure.
    pub(crate) message: Option<String>,
    /// Latest desired time of its end.
    #[serde(default, with = "rfc3339::option")]
    pub(crate) deadline: Option<OffsetDateTime>,
    /// Maximum cost of its workers.
    #[serde(default)]
    pub(crate) budget: Option<f64>,
    /// Remaining work of one core in seconds, as the cost model predicts it. `None` if the study is not running.
    #[serde(default)]
    pub(crate) remaining_work_seconds: Option<f64>,
    /// Number of the running phase, from 1. `None` if the study is not running or has no phases.
    #[serde(default)]
    pub(crate) phase: Option<u64>,
    /// Number of phases. `None` if the study has none.
    #[serde(default)]
    pub(crate) phases: Option<u64>,
    /// Finished share of the predicted work of the running round. `None` if it is unknown.
    #[serde(default)]
    pub(crate) progress: Option<f64>,
    /// Remarks of a few words each on conditions that delay the study.
    #[serde(default)]
    pub(crate) remarks: Vec<String>,
}

impl StudyStatus {
    /// Returns the running phase in words, `None` without one.
    pub(crate) fn phase_of(&self) -> Option<String> {
        self.phase.zip(self.phases).map(|(phase, phases)| format!("phase {phase} of {phases}"))
    }
}

/// Answer to the removal of a study.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Forgotten {
    pub(crate) id: String,
    /// Freed bytes, 0 if the study was removed before.
    pub(crate) bytes: u64,
}

/// State of a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum WorkerState {
    /// The worker takes work.
    Active,
    /// The worker finishes its started instances and leaves.
    Draining,
    /// The worker is disconnected and may reattach.
    Away,
}

impl fmt::Display for WorkerState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Active => "active",
            Self::Draining => "draining",
            Self::Away => "away",
        })
    }
}

/// Status of a worker.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct WorkerStatus {
    pub(crate) name: String,
    pub(crate) state: WorkerState,
    pub(crate) cores: u32,
    /// Tasks that it executes now.
    pub(crate) running: u32,
    /// Bytes of data regions that it holds.
    pub(crate) bytes: u64,
    /// Maximum of these bytes.
    pub(crate) memory_bytes: u64,
    /// Remote address of its connection, or `local`.
    pub(crate) address: String,
    /// Operations of running studies that it lacks. Stages with these operations run on other workers.
    pub(crate) missing_operations: Vec<String>,
    /// Known end of the worker.
    #[serde(with = "rfc3339::option")]
    pub(crate) time_limit: Option<OffsetDateTime>,
    /// Remarks of a few words each on conditions that an operator should resolve.
    #[serde(default)]
    pub(crate) remarks: Vec<String>,
}

/// Answer to a submission.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Submitted {
    pub(crate) id: String,
    /// Files that the study reads and the manager lacks. The study starts when clients have sent them.
    pub(crate) missing: Vec<InputDigest>,
}

/// All studies in the order of their submission.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Studies {
    pub(crate) studies: Vec<StudyStatus>,
}

/// All workers by name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Workers {
    pub(crate) workers: Vec<WorkerStatus>,
}

/// Scaling decision and predictions. Costs are in the currency of the prices.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct ScalingStatus {
    /// Desired workers of all pools together. `None` if the manager has no pools.
    pub(crate) workers_desired: Option<u32>,
    /// Number of workers that take work.
    pub(crate) workers_active: u32,
    /// Reason for this number: `idle`, `minimum`, `deadline`, `infeasible`, `budget` or `stabilized`.
    pub(crate) reason: Option<String>,
    /// Seconds until all studies end, with the desired workers, or with the connected ones if the manager has no
    /// pools.
    pub(crate) predicted_remaining_seconds: Option<f64>,
    /// Cost of those workers until then.
    pub(crate) predicted_cost: Option<f64>,
    /// Cost so far of all workers, for the studies that have not ended.
    pub(crate) cost_so_far: Option<f64>,
    /// Fastest possible end, if a deadline cannot be met.
    pub(crate) fastest: Option<CostEstimate>,
    /// Time and cost of meeting the deadlines, if the budget does not allow it.
    pub(crate) without_budget: Option<CostEstimate>,
    pub(crate) pools: Vec<PoolStatus>,
    /// Surplus workers in removal order.
    pub(crate) drain_order: Vec<String>,
}

/// Time and cost of a number of workers from now on. `None` means no end.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct CostEstimate {
    pub(crate) seconds: Option<f64>,
    pub(crate) cost: Option<f64>,
}

/// Status of a worker pool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PoolStatus {
    pub(crate) name: String,
    pub(crate) desired: u32,
    pub(crate) running: u32,
    /// Workers that were desired a short time ago and have not joined yet.
    pub(crate) starting: u32,
    pub(crate) draining: u32,
}

/// Names of a study's result files.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Results {
    pub(crate) results: Vec<String>,
}

/// Answer to the upload of an input file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Stored {
    pub(crate) digest: InputDigest,
    pub(crate) bytes: u64,
}

/// Answer of a probe.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Health {
    /// `ok` or `ready`.
    pub(crate) status: String,
}

/// Problem details of a refused request (RFC 9457).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ProblemDetails {
    /// `about:blank`: the status alone identifies the kind of problem.
    #[serde(rename = "type")]
    pub(crate) kind: String,
    /// The status in words.
    pub(crate) title: String,
    pub(crate) status: u16,
    /// One line with the problem and the allowed values.
    pub(crate) detail: String,
}

/// Returns whether a path made of a folder and this name of a result file stays within the folder. Such a name has
/// one or more components separated by `/`. No component is empty or has a leading dot, and the name contains neither
/// control characters nor backslashes.
pub(crate) fn is_result_name(name: &str) -> bool {
    let is_plain = |part: &str| !part.is_empty() && !part.starts_with('.');
    let no_odd_letter = name.chars().all(|letter| !letter.is_control() && letter != '\\');
    no_odd_letter && name.split('/').all(is_plain)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::{Component, Path};

    #[test]
    fn result_names_stay_within_their_folder() {
        for name in ["run.json", "previews/0-tile.png", "a b", "ä..b", "a/b/c"] {
            assert!(is_result_name(name), "{name:?}");
            assert!(Path::new(name).components().all(|part| matches!(part, Component::Normal(_))));
        }
        for name in [
            "",
            "/",
            "/etc/passwd",
            "..",
            "../a",
            "a/../b",
            "a/..",
            "a//b",
            "a/",
            ".",
            "a/.b",
            "a\\b",
            "a\0",
            "a\nb",
        ] {
            assert!(!is_result_name(name), "{name:?}");
        }
    }

    #[test]
    fn states_serialize_as_displayed() {
        use StudyState::{Canceled, Complete, Failed, Queued, Running, Waiting};
        for state in [Waiting, Queued, Running, Complete, Canceled, Failed] {
            assert_eq!(serde_json::to_value(state).unwrap(), state.to_string());
        }
        for state in [WorkerState::Active, WorkerState::Draining, WorkerState::Away] {
            assert_eq!(serde_json::to_value(state).unwrap(), state.to_string());
        }
    }
}
