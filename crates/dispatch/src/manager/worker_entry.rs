//! The manager's record of a worker: its facts, its requests, and its relation to each study.

use super::speed::Speed;
use crate::plan::ExecutionPlan;
use crate::{PlanId, WorkerId};
use pleach_regions::RegionKey;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::time::Duration;

/// Facts about a worker.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerInfo {
    /// Tasks it can run at once.
    pub slots: u32,
    /// Its memory limit in bytes.
    pub memory_bytes: u64,
    /// Bytes that it can store in its spill tier in addition.
    pub below_bytes: u64,
    /// Names and versions of the operations it can run. `None` means all.
    pub operations: Option<BTreeSet<(String, u32)>>,
    /// The host that it runs on, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<IpAddr>,
}

impl WorkerInfo {
    /// A worker without restrictions.
    pub const ANY: Self =
        Self { slots: 1, memory_bytes: u64::MAX, below_bytes: 0, operations: None, host: None };
}

/// Pending fetch of a region from a draining worker.
#[derive(Debug, Default)]
pub(super) struct PendingFetch {
    /// The worker that has been asked and has not answered.
    pub(super) to: Option<WorkerId>,
    /// Workers that could not fetch it and are not asked again.
    pub(super) refused: BTreeSet<WorkerId>,
}

/// Relation of a worker to a study.
#[derive(Debug)]
pub(super) struct StudyFit {
    /// By stage: whether the worker can run it.
    pub(super) runs: Vec<bool>,
    /// By stage: the worker has returned instances for lack of time.
    pub(super) late: Vec<bool>,
    /// The facts of the study have been sent to the worker.
    pub(super) introduced: bool,
}

#[derive(Debug)]
pub(super) struct WorkerEntry {
    pub(super) facts: WorkerInfo,
    /// Buckets requested and not granted yet.
    pub(super) wanted: u32,
    /// Whether it has an open request for a bucket after some stage.
    pub(super) wants_later: bool,
    pub(super) draining: bool,
    /// Its time limit, if any.
    pub(super) end: Option<Duration>,
    pub(super) speed: Speed,
    /// Its regions that other workers are asked to fetch while it drains.
    pub(super) copied: BTreeMap<(PlanId, RegionKey), PendingFetch>,
    pub(super) studies: BTreeMap<PlanId, StudyFit>,
}

impl StudyFit {
    pub(super) fn of(facts: &WorkerInfo, plan: &ExecutionPlan) -> Self {
        let has = |operation: &str, version: u32| {
            facts.operations.as_ref().is_none_or(|all| all.contains(&(operation.to_owned(), version)))
        };
        let fits = plan.needs.with_spill(facts.below_bytes) <= facts.memory_bytes;
        let runs = plan
            .stages
            .iter()
            .map(|stage| fits && stage.tasks.iter().all(|task| has(&task.operation, task.version)));
        let runs: Vec<bool> = runs.collect();
        Self { late: vec![false; runs.len()], runs, introduced: false }
    }
}
