//! The manager's record of each worker: its facts, its requests, and its relation to each study.
//!
//! Invariants: ids are never reused. The sum of speeds counts the members that are not draining. A member that was
//! dismissed drains until it leaves.

use super::speed::{Speed, Speeds};
use crate::plan::ExecutionPlan;
use crate::storage::{ReadRates, Reader, TransferCost};
use crate::study::TaskTimings;
use crate::{PlanId, WorkerId};
use pleach_regions::RegionKey;
use pleach_workflow::{TierKind, is_joining};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::time::Duration;

/// Facts about a worker.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerInfo {
    /// Tasks it can run at once.
    pub slots: u32,
    /// Its memory limit in bytes.
    pub memory_bytes: u64,
    /// Bytes that it can store in its spill tier in addition.
    #[serde(rename = "below_bytes")]
    pub spill_bytes: u64,
    /// Names and versions of the operations it can run. `None` means all.
    pub operations: Option<BTreeSet<(String, u32)>>,
    /// Accelerators among its slots.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub accelerators: u32,
    /// Memory of its smallest accelerator in bytes.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub device_bytes: u64,
    /// The host that it runs on, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<IpAddr>,
}

impl WorkerInfo {
    /// A worker without restrictions.
    pub const ANY: Self = Self {
        slots: 1,
        memory_bytes: u64::MAX,
        spill_bytes: 0,
        operations: None,
        accelerators: 0,
        device_bytes: 0,
        host: None,
    };
}

fn is_zero<T: Default + PartialEq>(number: &T) -> bool {
    *number == T::default()
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

impl StudyFit {
    pub(super) fn of(facts: &WorkerInfo, plan: &ExecutionPlan) -> Self {
        let has = |operation: &str, version: u32| {
            let is_known = |all: &BTreeSet<_>| all.contains(&(operation.to_owned(), version));
            is_joining(operation, version) || facts.operations.as_ref().is_none_or(is_known)
        };
        let fits = plan.needs.with_spill(facts.spill_bytes) <= facts.memory_bytes;
        let runs = plan
            .stages
            .iter()
            .map(|stage| fits && stage.tasks.iter().all(|task| has(&task.operation, task.version)));
        let runs: Vec<bool> = runs.collect();
        Self { late: vec![false; runs.len()], runs, introduced: false }
    }
}

/// A joined worker.
#[derive(Debug)]
pub(super) struct WorkerEntry {
    facts: WorkerInfo,
    /// Buckets requested and not granted yet.
    pub(super) requested: u32,
    /// Whether it has an open request for a bucket after some stage.
    pub(super) wants_later: bool,
    draining: bool,
    /// Its time limit, if any.
    end: Option<Duration>,
    speed: Speed,
    /// Measured cost of transfers to it from other workers.
    link: Option<TransferCost>,
    /// Rates of its reads.
    rates: ReadRates,
    /// Its regions that other workers are asked to fetch while it drains.
    pub(super) copied: BTreeMap<(PlanId, RegionKey), PendingFetch>,
    pub(super) studies: BTreeMap<PlanId, StudyFit>,
}

impl WorkerEntry {
    pub(super) fn facts(&self) -> &WorkerInfo {
        &self.facts
    }

    /// Adds operations that the worker can run from now on. Returns whether any of them is new.
    pub(super) fn add_operations(&mut self, operations: BTreeSet<(String, u32)>) -> bool {
        let Some(known) = &mut self.facts.operations else { return false };
        let before = known.len();
        known.extend(operations);
        known.len() > before
    }

    pub(super) fn is_draining(&self) -> bool {
        self.draining
    }

    pub(super) fn end(&self) -> Option<Duration> {
        self.end
    }

    pub(super) fn speed(&self) -> Speed {
        self.speed
    }

    pub(super) fn link(&self) -> Option<TransferCost> {
        self.link
    }

    /// Returns this member, `worker`, as a reader of regions.
    pub(super) fn reader(&self, worker: WorkerId) -> Reader<'_> {
        Reader { worker, rates: &self.rates }
    }
}

/// All joined workers.
#[derive(Debug, Default)]
pub(super) struct Members {
    by_id: BTreeMap<WorkerId, WorkerEntry>,
    /// Draining members that have not been dismissed.
    draining: BTreeSet<WorkerId>,
    /// Members with a time limit.
    ending: BTreeSet<WorkerId>,
    /// Sum of the speeds of members that are not draining.
    speeds: Speeds,
    next: u32,
}

impl Members {
    /// Adds a worker under a new id.
    pub(super) fn add(&mut self, facts: WorkerInfo, studies: BTreeMap<PlanId, StudyFit>) -> WorkerId {
        let worker = WorkerId(self.next);
        self.next += 1;
        let entry = WorkerEntry {
            facts,
            requested: 0,
            wants_later: false,
            draining: false,
            end: None,
            speed: Speed::default(),
            link: None,
            rates: ReadRates::default(),
            copied: BTreeMap::new(),
            studies,
        };
        self.speeds.add(entry.facts.slots, entry.speed);
        let before = self.by_id.insert(worker, entry);
        assert!(before.is_none(), "{worker} joined twice, before as {before:?}");
        worker
    }

    /// Removes a worker. Returns whether it was a member.
    pub(super) fn remove(&mut self, worker: WorkerId) -> bool {
        let Some(entry) = self.by_id.remove(&worker) else { return false };
        if entry.draining {
            let requested = (entry.requested, entry.wants_later);
            assert!(requested == (0, false), "{worker} drains, and has the requests {requested:?}");
        } else {
            // The speed of a draining member left the sum at the start of its drain.
            self.speeds.remove(entry.facts.slots, entry.speed);
        }
        let was_draining = self.draining.remove(&worker);
        assert!(entry.draining || !was_draining, "{worker} was not draining, and was counted as such");
        let was_ending = self.ending.remove(&worker);
        assert!(was_ending == entry.end.is_some(), "{worker} has the end {:?}: {was_ending}", entry.end);
        true
    }

    pub(super) fn get(&self, worker: WorkerId) -> Option<&WorkerEntry> {
        self.by_id.get(&worker)
    }

    pub(super) fn get_mut(&mut self, worker: WorkerId) -> Option<&mut WorkerEntry> {
        self.by_id.get_mut(&worker)
    }

    pub(super) fn contains(&self, worker: WorkerId) -> bool {
        self.by_id.contains_key(&worker)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.by_id.is_empty()
    }

    /// Returns all members, in the order of their ids.
    pub(super) fn iter(&self) -> impl Iterator<Item = (WorkerId, &WorkerEntry)> {
        self.by_id.iter().map(|(worker, entry)| (*worker, entry))
    }

    /// As [`iter`](Self::iter), to update them.
    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = (WorkerId, &mut WorkerEntry)> {
        self.by_id.iter_mut().map(|(worker, entry)| (*worker, entry))
    }

    /// Returns the members that are not draining, in the order of their ids.
    pub(super) fn staying(&self) -> impl Iterator<Item = (WorkerId, &WorkerEntry)> {
        self.iter().filter(|(_, entry)| !entry.draining)
    }

    /// Marks a member as draining: its requests are void. Returns false if it is no member, or draining already.
    pub(super) fn drain(&mut self, worker: WorkerId) -> bool {
        let Some(entry) = self.by_id.get_mut(&worker).filter(|entry| !entry.draining) else { return false };
        entry.draining = true;
        (entry.requested, entry.wants_later) = (0, false);
        self.speeds.remove(entry.facts.slots, entry.speed);
        let is_new = self.draining.insert(worker);
        assert!(is_new, "{worker} begins to drain, and was counted as draining");
        true
    }

    /// Marks a draining member as dismissed.
    pub(super) fn dismiss(&mut self, worker: WorkerId) {
        let was_draining = self.draining.remove(&worker);
        assert!(was_draining, "{worker} is dismissed, and was not draining or is dismissed already");
    }

    /// Returns the draining members that have not been dismissed.
    pub(super) fn draining(&self) -> Vec<WorkerId> {
        self.draining.iter().copied().collect()
    }

    /// Sets the time limit of a member. Of several limits the first applies.
    pub(super) fn limit(&mut self, worker: WorkerId, end: Duration) {
        if let Some(entry) = self.by_id.get_mut(&worker) {
            entry.end = Some(entry.end.map_or(end, |known| known.min(end)));
            self.ending.insert(worker);
        }
    }

    /// Sets the measured cost of transfers to a member.
    pub(super) fn set_link(&mut self, worker: WorkerId, cost: TransferCost) {
        if let Some(entry) = self.by_id.get_mut(&worker) {
            entry.link = Some(cost);
            entry.rates.set_link(cost);
        }
    }

    /// Sets the measured cost of reads from a tier of a member.
    pub(super) fn set_tier_rate(&mut self, worker: WorkerId, kind: TierKind, cost: TransferCost) {
        if let Some(entry) = self.by_id.get_mut(&worker) {
            entry.rates.set_tier(kind, cost);
        }
    }

    /// Returns whether any member has a time limit.
    pub(super) fn has_limits(&self) -> bool {
        !self.ending.is_empty()
    }

    /// Records tasks that a member has run. Returns whether it is a member.
    pub(super) fn record_tasks(&mut self, worker: WorkerId, ran: TaskTimings) -> bool {
        let Some(entry) = self.by_id.get_mut(&worker) else { return false };
        let before = entry.speed;
        entry.speed.observe(ran.tasks, ran.seconds, ran.expected_seconds);
        if !entry.draining {
            // The sum contains the speed before this measurement.
            self.speeds.remove(entry.facts.slots, before);
            self.speeds.add(entry.facts.slots, entry.speed);
        }
        true
    }

    /// Returns the sum of the speeds of members that are not draining.
    pub(super) fn speeds(&self) -> Speeds {
        self.speeds
    }

    /// Compares the sets and the sum with the members.
    pub(super) fn check(&self) -> Result<(), String> {
        let mut speeds = Speeds::default();
        self.staying().for_each(|(_, entry)| speeds.add(entry.facts.slots, entry.speed));
        if speeds != self.speeds {
            return Err(format!("the sum of speeds is {speeds:?}, counted is {:?}", self.speeds));
        }
        let is_draining = |worker: &WorkerId| self.get(*worker).is_some_and(WorkerEntry::is_draining);
        if let Some(worker) = self.draining.iter().find(|worker| !is_draining(worker)) {
            return Err(format!("{worker} is not draining, and is counted as such"));
        }
        let ending = self.iter().filter(|(_, entry)| entry.end.is_some()).map(|(worker, _)| worker);
        if !ending.eq(self.ending.iter().copied()) {
            return Err(format!("members with a time limit are not {:?}", self.ending));
        }
        Ok(())
    }
}
