//! Slots of a worker by kind, and the policy that assigns ready tasks to them.

use crate::{SlotId, SlotKind};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use thiserror::Error;

/// Policy that assigns ready tasks to the cores and accelerators of a worker.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SchedulePolicy {
    /// First come, first served: an idle slot takes the task that became ready first.
    Fcfs,
    /// Heterogeneous earliest finish time, online: a task that becomes ready is queued at the slot with the earliest estimated
    /// finish. Queues do not change afterwards.
    Heft,
    /// Performance-aware task scheduling (paper 001, section 2.2): an idle accelerator takes the task of greatest gain, an idle
    /// core the one of least gain.
    #[default]
    Pats,
}

impl SchedulePolicy {
    /// All policies.
    pub const ALL: [Self; 3] = [Self::Fcfs, Self::Heft, Self::Pats];

    /// Returns the name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Fcfs => "fcfs",
            Self::Heft => "heft",
            Self::Pats => "pats",
        }
    }
}

impl fmt::Display for SchedulePolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A name of no schedule policy.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("schedule policy {0:?}: unknown; pats, heft and fcfs are allowed")]
pub struct UnknownPolicy(String);

impl FromStr for SchedulePolicy {
    type Err = UnknownPolicy;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let named = |policy: &Self| policy.as_str() == text;
        Self::ALL.into_iter().find(named).ok_or_else(|| UnknownPolicy(text.to_owned()))
    }
}

/// Slots of a worker. A plain number converts to cores only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkerSlots {
    /// Tasks that run on cores at once. Their slots come first.
    pub cores: u32,
    /// Accelerators. Each runs one task at a time.
    pub accelerators: u32,
    /// Limit for the tasks on one accelerator, in bytes: the least of all accelerators.
    pub device_bytes: u64,
    /// Policy of a worker with accelerators.
    pub policy: SchedulePolicy,
}

impl From<u32> for WorkerSlots {
    fn from(cores: u32) -> Self {
        Self { cores, accelerators: 0, device_bytes: 0, policy: SchedulePolicy::default() }
    }
}

impl WorkerSlots {
    /// Counts the slots of both kinds.
    #[must_use]
    pub fn count(&self) -> u32 {
        self.cores.saturating_add(self.accelerators)
    }

    /// Returns the kind of a slot.
    #[must_use]
    pub fn kind(&self, slot: SlotId) -> SlotKind {
        if slot.0 < self.cores { SlotKind::Core } else { SlotKind::Accelerator }
    }

    /// Returns the slots of the accelerators, in order.
    pub fn accelerator_slots(&self) -> impl Iterator<Item = SlotId> {
        (self.cores..self.count()).map(SlotId)
    }
}
