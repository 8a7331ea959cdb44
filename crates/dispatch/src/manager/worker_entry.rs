//! Workers as the manager knows them: what they can do, what they want, and what studies mean to them.

use super::speed::Speed;
use crate::plan::ExecutionPlan;
use crate::{PlanId, WorkerId};
use pleach_regions::RegionKey;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::time::Duration;

/// What is known of a worker.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerInfo {
    /// Tasks it can run at once.
    pub slots: u32,
    /// Bytes that it may hold.
    pub memory_bytes: u64,
    /// Bytes that it can store in slower tiers besides.
    pub below_bytes: u64,
    /// Names and versions of the operations it can run; `None`: all there are.
    pub operations: Option<BTreeSet<(String, u32)>>,
    /// The host that it runs on, if that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<IpAddr>,
}

impl WorkerInfo {
    /// A worker that can do everything.
    pub const ANY: Self =
        Self { slots: 1, memory_bytes: u64::MAX, below_bytes: 0, operations: None, host: None };
}

/// Who is to fetch a region from a worker that drains.
#[derive(Debug, Default)]
pub(super) struct PendingFetch {
    /// Who has been asked and has not answered.
    pub(super) to: Option<WorkerId>,
    /// Those that could not: they are not asked again.
    pub(super) refused: BTreeSet<WorkerId>,
}

/// What a study means to a worker.
#[derive(Debug)]
pub(super) struct StudyFit {
    /// By stage: whether it can run it.
    pub(super) runs: Vec<bool>,
    /// By stage: it has handed back what it has not the time for.
    pub(super) late: Vec<bool>,
    /// It has been introduced.
    pub(super) told: bool,
}

#[derive(Debug)]
pub(super) struct WorkerEntry {
    pub(super) facts: WorkerInfo,
    /// Buckets asked for and not yet given.
    pub(super) wanted: u32,
    /// Has asked for a bucket after some stage, and not got it yet.
    pub(super) wants_later: bool,
    pub(super) draining: bool,
    /// When it has to end, if that is known.
    pub(super) end: Option<Duration>,
    pub(super) speed: Speed,
    /// Regions on their way to others, since this one drains.
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
        Self { late: vec![false; runs.len()], runs, told: false }
    }
}
