//! JSON types of the HTTP interface: studies and workers as clients see them. `openapi.json` in `pleach-server`
//! describes the same types for other programs.
//!
//! The manager fills these plain data types, and clients show them.

use crate::digest::InputDigest;
use serde::{Deserialize, Serialize};
use std::fmt;
use time::OffsetDateTime;
use time::serde::rfc3339;

/// State of a study.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StudyState {
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
    pub fn is_over(self) -> bool {
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
pub struct StudyStatus {
    /// Unique id on this manager.
    pub id: String,
    /// Name in the study file. Several studies may have the same name.
    pub name: String,
    /// Present state. `message` explains why the study waits or has failed.
    pub state: StudyState,
    /// Evaluations with a result, or a failure, for every run.
    pub evaluations_done: u64,
    /// Number of known evaluations. Later phases and growing samples add more.
    pub evaluations: u64,
    /// Number of executed tasks of all phases, without reused tasks. Only a complete study includes tasks that ran
    /// before a restart of the manager.
    pub tasks_executed: u64,
    /// Number of known tasks left. Reuse may remove some of them.
    pub remaining_tasks: u64,
    /// Prediction at the present throughput. `None` if it is unknown.
    pub remaining_seconds: Option<f64>,
    /// Failed runs. A run is one evaluation on one tile.
    pub failed: u64,
    /// Time when the manager accepted the submission.
    #[serde(with = "rfc3339")]
    pub submitted: OffsetDateTime,
    /// Reason for waiting or for the failure.
    pub message: Option<String>,
    /// Latest desired time of its end.
    #[serde(default, with = "rfc3339::option")]
    pub deadline: Option<OffsetDateTime>,
    /// Maximum cost of its workers.
    #[serde(default)]
    pub budget: Option<f64>,
    /// Remaining work of one core in seconds, as the cost model predicts it. `None` if the study is not running.
    #[serde(default)]
    pub remaining_work_seconds: Option<f64>,
    /// Number of the running phase, from 1. `None` if the study is not running or has no phases.
    #[serde(default)]
    pub phase: Option<u64>,
    /// Number of phases. `None` if the study has none.
    #[serde(default)]
    pub phases: Option<u64>,
    /// Finished share of the predicted work of the running round. `None` if it is unknown.
    #[serde(default)]
    pub progress: Option<f64>,
    /// Remarks of a few words each on conditions that delay the study.
    #[serde(default)]
    pub remarks: Vec<String>,
    /// Predicted and paid cost. `None` if the manager has no pools or the study has not started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<StudyCost>,
}

/// Cost of a study, predicted and paid, in the currency of the prices. Studies that run at the same time share the cost of
/// all workers in equal parts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StudyCost {
    /// Seconds from its start to its end, as the first scaling decision predicted them. `None` if it could not.
    pub predicted_seconds: Option<f64>,
    /// Its cost, as the same decision predicted it.
    pub predicted_cost: Option<f64>,
    /// Seconds from its start to its end, or until now.
    pub seconds: f64,
    /// Paid cost of workers and egress.
    pub cost: f64,
    /// Cost by pool, in the order of the names. Pools without a worker are omitted.
    pub pools: Vec<PoolCost>,
    /// Number of workers that were started while it ran.
    pub workers_started: u32,
    /// Number of workers that ended before they were drained or stopped.
    pub workers_lost: u32,
    /// Number of workers that were started for lost ones.
    pub workers_replaced: u32,
    /// Whether no worker can add costs any more.
    pub is_final: bool,
}

/// Part of a study's cost for the workers of one pool.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PoolCost {
    /// Name in the pool file.
    pub name: String,
    /// Paid seconds of workers, from their request to their end, in whole billing periods.
    pub paid_seconds: f64,
    /// Seconds of workers from their request until they joined. Part of the paid seconds.
    pub starting_seconds: f64,
    /// Cost of the paid seconds.
    pub worker_cost: f64,
    /// Bytes that workers sent to the manager.
    pub sent_bytes: u64,
    /// Cost of these bytes.
    pub egress_cost: f64,
}

impl StudyStatus {
    /// Returns the running phase in words, `None` without one.
    pub fn phase_of(&self) -> Option<String> {
        self.phase.zip(self.phases).map(|(phase, phases)| format!("phase {phase} of {phases}"))
    }
}

/// Answer to the removal of a study.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Forgotten {
    /// Id of the removed study.
    pub id: String,
    /// Freed bytes, 0 if the study was removed before.
    pub bytes: u64,
}

/// State of a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WorkerState {
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
pub struct WorkerStatus {
    /// Name of the worker, unique among the connected workers.
    pub name: String,
    /// Present state.
    pub state: WorkerState,
    /// Maximum number of tasks that it executes at once on cores.
    pub cores: u32,
    /// Maximum number of tasks that it executes at once on accelerators, closed ones included.
    #[serde(default)]
    pub accelerators: u32,
    /// Accelerators that execute no further task, after errors of the device. The remarks name them.
    #[serde(default)]
    pub closed_accelerators: u32,
    /// Tasks that it executes now.
    pub running: u32,
    /// Bytes of data regions that it holds.
    pub bytes: u64,
    /// Maximum of these bytes.
    pub memory_bytes: u64,
    /// Remote address of its connection, or `local`.
    pub address: String,
    /// Operations of running studies that it lacks. Stages with these operations run on other workers.
    pub missing_operations: Vec<String>,
    /// Known end of the worker.
    #[serde(with = "rfc3339::option")]
    pub time_limit: Option<OffsetDateTime>,
    /// Remarks of a few words each on conditions that an operator should resolve.
    #[serde(default)]
    pub remarks: Vec<String>,
}

/// Answer to a submission.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Submitted {
    /// Id of the study on this manager. A repeated submission under the same idempotency key gets the same id.
    pub id: String,
    /// Files that the study reads and the manager lacks. The study starts when clients have sent them.
    pub missing: Vec<InputDigest>,
}

/// All studies in the order of their submission.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Studies {
    /// Status of each study.
    pub studies: Vec<StudyStatus>,
}

/// All workers by name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Workers {
    /// Status of each worker.
    pub workers: Vec<WorkerStatus>,
}

/// Scaling decision and predictions. Costs are in the currency of the prices.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ScalingStatus {
    /// Desired workers of all pools together. `None` if the manager has no pools.
    pub workers_desired: Option<u32>,
    /// Number of workers that take work.
    pub workers_active: u32,
    /// Reason for this number: `idle`, `minimum`, `deadline`, `infeasible`, `budget` or `stabilized`.
    pub reason: Option<String>,
    /// Seconds until all studies end, with the desired workers, or with the connected ones if the manager has no
    /// pools.
    pub predicted_remaining_seconds: Option<f64>,
    /// Cost of those workers until they have ended themselves.
    pub predicted_cost: Option<f64>,
    /// Cost so far of all workers, for the studies that have not ended.
    pub cost_so_far: Option<f64>,
    /// Fastest possible end, if a deadline cannot be met.
    pub fastest: Option<CostEstimate>,
    /// Time and cost of meeting the deadlines, if the budget does not allow it.
    pub without_budget: Option<CostEstimate>,
    /// Status of each pool, in the order of the pool file. Empty if the manager has no pools.
    pub pools: Vec<PoolStatus>,
    /// Surplus workers in removal order.
    pub drain_order: Vec<String>,
    /// Remaining work for ascending numbers of slots, if more slots cost reuse. Empty if the work is the same for all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub work_by_slots: Vec<WorkBySlots>,
}

/// Remaining work of all studies if it were partitioned for a number of slots.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct WorkBySlots {
    /// Number of slots. The last one also counts for more.
    pub slots: u32,
    /// Remaining seconds of work on one slot.
    pub seconds: f64,
}

/// Time and cost of a number of workers from now on. `None` means no end.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct CostEstimate {
    /// Seconds until all studies end.
    pub seconds: Option<f64>,
    /// Cost of the workers until then, in the currency of the prices.
    pub cost: Option<f64>,
}

/// Status of a worker pool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PoolStatus {
    /// Name in the pool file.
    pub name: String,
    /// Number of workers that the scaling decision requests.
    pub desired: u32,
    /// Number of workers that take work.
    pub running: u32,
    /// Workers that were desired a short time ago and have not joined yet.
    pub starting: u32,
    /// Number of workers that finish their started instances and leave.
    pub draining: u32,
    /// Workers that the manager has started itself. `None` if the pool has no driver.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provisioned: Option<ProvisionStatus>,
}

/// Workers that the manager starts and ends through the driver of a pool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProvisionStatus {
    /// Number of workers that were requested and have not joined.
    pub starting: u32,
    /// Number of workers that joined and do not leave.
    pub joined: u32,
    /// Number of workers that drain or are being stopped.
    pub leaving: u32,
    /// Number of starts that failed since the start of the manager.
    pub failed_starts: u64,
    /// Whether the driver has capacity. After 3 failed starts in a row, the manager waits and uses other pools.
    pub has_capacity: bool,
    /// Last warning about the pool.
    pub remark: Option<String>,
}

/// Names of a study's result files.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Results {
    /// Names relative to the result folder, sorted. Files of a phase have the name of its folder and a `/` in front.
    pub results: Vec<String>,
}

/// Answer to the upload of an input file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stored {
    /// BLAKE3 of the file, as in the path of the request.
    pub digest: InputDigest,
    /// Number of received bytes.
    pub bytes: u64,
}

/// Answer of a probe.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Health {
    /// `ok` or `ready`.
    pub status: String,
}

/// Problem details of a refused request (RFC 9457).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProblemDetails {
    /// `about:blank`: the status alone identifies the kind of problem.
    #[serde(rename = "type")]
    pub kind: String,
    /// The status in words.
    pub title: String,
    /// HTTP status code of the response.
    pub status: u16,
    /// One line with the problem and the allowed values.
    pub detail: String,
}

/// Returns whether a path made of a folder and this name of a result file stays within the folder. Such a name has
/// one or more components separated by `/`. No component is empty or has a leading dot, and the name contains neither
/// control characters nor backslashes.
pub fn is_result_name(name: &str) -> bool {
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
