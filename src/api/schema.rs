//! What goes over HTTP: studies and workers as their users see them. `openapi.json` says the same for everybody else.
//!
//! These are plain facts, made by the manager and shown by clients; nothing here knows how they come about.

use crate::service::inputs::InputDigest;
use serde::{Deserialize, Serialize};
use std::fmt;
use time::OffsetDateTime;
use time::serde::rfc3339;

/// How far a study is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum StudyState {
    /// The manager lacks files that it reads.
    Waiting,
    /// It can begin, and has not.
    Queued,
    /// Workers execute it.
    Running,
    /// All evaluations are known or have failed, and the results are written.
    Complete,
    /// A user ended it.
    #[serde(alias = "cancelled")] // as older state directories have it
    Canceled,
    /// It cannot go on, and its message says why; the manager tries again when it is started again.
    Failed,
}

impl StudyState {
    /// Whether it stays as it is.
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

/// A study.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct StudyStatus {
    /// What it is asked for by, unique to this manager.
    pub(crate) id: String,
    /// As its file says; several studies may have the same.
    pub(crate) name: String,
    pub(crate) state: StudyState,
    /// Evaluations of which every run is known or has failed.
    pub(crate) evaluations_done: u64,
    /// As far as is known: of phases that are to come, and of samples that may grow, nothing is.
    pub(crate) evaluations: u64,
    pub(crate) tasks_executed: u64,
    /// As far as is known: what turns out to be reused will not be executed.
    pub(crate) remaining_tasks: u64,
    /// At the present pace, where there is one.
    pub(crate) remaining_seconds: Option<f64>,
    /// Runs (evaluation and tile) that have failed.
    pub(crate) failed: u64,
    #[serde(with = "rfc3339")]
    pub(crate) submitted: OffsetDateTime,
    /// Why it waits or has failed.
    pub(crate) message: Option<String>,
    /// When it should have ended.
    #[serde(default, with = "rfc3339::option")]
    pub(crate) deadline: Option<OffsetDateTime>,
    /// What its workers may cost.
    #[serde(default)]
    pub(crate) budget: Option<f64>,
    /// Seconds of work of one core that are left, as the cost model has them; none where it does not run.
    #[serde(default)]
    pub(crate) remaining_work_seconds: Option<f64>,
    /// The phase that runs, from 1; none where it does not run, or has no phases.
    #[serde(default)]
    pub(crate) phase: Option<u64>,
    /// Of how many; none where it has none.
    #[serde(default)]
    pub(crate) phases: Option<u64>,
    /// The share of its predicted work that is done, of the part that runs; none where it is not known.
    #[serde(default)]
    pub(crate) progress: Option<f64>,
    /// Anything that keeps it waiting or slows it down, each in a few words.
    #[serde(default)]
    pub(crate) remarks: Vec<String>,
}

impl StudyStatus {
    /// Which of its phases runs, in words.
    pub(crate) fn phase_of(&self) -> Option<String> {
        self.phase.zip(self.phases).map(|(phase, phases)| format!("phase {phase} of {phases}"))
    }
}

/// A study that has been removed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Forgotten {
    pub(crate) id: String,
    /// Bytes that were freed, 0 where it was removed before.
    pub(crate) bytes: u64,
}

/// What a worker does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum WorkerState {
    /// It takes work.
    Active,
    /// It ends what it has begun, and leaves.
    Draining,
    /// Its connection is lost; it may come back.
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

/// A worker.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct WorkerStatus {
    pub(crate) name: String,
    pub(crate) state: WorkerState,
    pub(crate) cores: u32,
    /// Tasks that it runs now.
    pub(crate) running: u32,
    /// Data regions that it holds.
    pub(crate) bytes: u64,
    /// The most that it may hold.
    pub(crate) memory_bytes: u64,
    /// Where it is connected from.
    pub(crate) address: String,
    /// Operations of running studies that it does not have: stages with them go to others.
    pub(crate) missing_operations: Vec<String>,
    /// When it will be gone.
    #[serde(with = "rfc3339::option")]
    pub(crate) time_limit: Option<OffsetDateTime>,
    /// Anything that an operator should do something about, each in a few words.
    #[serde(default)]
    pub(crate) remarks: Vec<String>,
}

/// The answer to a submission.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Submitted {
    pub(crate) id: String,
    /// Files that the study reads and the manager lacks; it begins when they have been sent.
    pub(crate) missing: Vec<InputDigest>,
}

/// All studies, those submitted last at the end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Studies {
    pub(crate) studies: Vec<StudyStatus>,
}

/// All workers, by name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Workers {
    pub(crate) workers: Vec<WorkerStatus>,
}

/// How many workers are wanted, and what is predicted. Money is in the currency of the prices.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct ScalingStatus {
    /// Workers wanted, of all pools together; none where the manager knows no pools.
    pub(crate) workers_desired: Option<u32>,
    /// Workers that take work.
    pub(crate) workers_active: u32,
    /// Why so many are wanted: `idle`, `minimum`, `deadline`, `infeasible`, `budget` or `stabilized`.
    pub(crate) reason: Option<String>,
    /// Until all studies are done, with the workers wanted, or with those that are there where the manager knows no pools.
    pub(crate) predicted_remaining_seconds: Option<f64>,
    /// Of those workers until then.
    pub(crate) predicted_cost: Option<f64>,
    /// Of all workers, for the studies that have not ended, so far.
    pub(crate) cost_so_far: Option<f64>,
    /// Where a deadline cannot be met, the fastest that there is.
    pub(crate) fastest: Option<CostEstimate>,
    /// Where the budget does not allow what would meet the deadlines, what that takes.
    pub(crate) without_budget: Option<CostEstimate>,
    pub(crate) pools: Vec<PoolStatus>,
    /// Workers that are more than wanted, in the order in which they should be drained.
    pub(crate) drain_order: Vec<String>,
}

/// What some number of workers takes and costs from now on; none: for ever.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct CostEstimate {
    pub(crate) seconds: Option<f64>,
    pub(crate) cost: Option<f64>,
}

/// A pool of workers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PoolStatus {
    pub(crate) name: String,
    pub(crate) desired: u32,
    pub(crate) running: u32,
    /// Wanted a short time ago, and not there yet.
    pub(crate) starting: u32,
    pub(crate) draining: u32,
}

/// Names of a study's result files.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Results {
    pub(crate) results: Vec<String>,
}

/// A file that has been stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Stored {
    pub(crate) digest: InputDigest,
    pub(crate) bytes: u64,
}

/// That a process answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Health {
    /// `ok` or `ready`.
    pub(crate) status: String,
}

/// Why a request was not met (RFC 9457).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ProblemDetails {
    /// `about:blank`: the status says what kind of problem it is.
    #[serde(rename = "type")]
    pub(crate) kind: String,
    /// The status in words.
    pub(crate) title: String,
    pub(crate) status: u16,
    /// One line that says what is wrong, and what is allowed.
    pub(crate) detail: String,
}

/// Whether a name of a result file stays within a folder wherever it is joined to one: one or more names with `/` between
/// them, none of which leads elsewhere or is hidden.
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
    fn names_of_results_stay_within() {
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
    fn states_are_told_as_they_are_written() {
        use StudyState::{Canceled, Complete, Failed, Queued, Running, Waiting};
        for state in [Waiting, Queued, Running, Complete, Canceled, Failed] {
            assert_eq!(serde_json::to_value(state).unwrap(), state.to_string());
        }
        for state in [WorkerState::Active, WorkerState::Draining, WorkerState::Away] {
            assert_eq!(serde_json::to_value(state).unwrap(), state.to_string());
        }
    }
}
