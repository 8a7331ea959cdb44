//! Offers of a bucket to a worker with accelerators: ready tasks with their gains.
//!
//! A worker without accelerators runs the first ready task of a bucket. One with accelerators chooses among up to
//! [`MAX_OFFERS`]: the first ready task, those of greatest and least gain, and the next ones in order.

use super::BucketExecution;
use crate::SlotKind;
use crate::ids::NodeId;
use crate::memory_model::{BucketDemand, MemoryForecast};
use pleach_workflow::{Stage, TaskInput};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Maximum number of offers of a bucket: each needs a forecast of the bucket's memory. One less would leave no choice beside
/// the first task and those of greatest and least gain.
pub const MAX_OFFERS: usize = 4;

/// Unit of gains: thousandths are exact in comparisons and finer than any estimate.
pub const GAIN_UNIT: u32 = 1000;

/// A task of a stage on cores and accelerators.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceTask {
    /// It has a variant for cores.
    pub on_core: bool,
    /// It has a variant for accelerators.
    pub on_accelerator: bool,
    /// Seconds on a core / seconds on an accelerator, in thousandths. Ignored for a task that runs on one kind only.
    pub gain: u32,
    /// Estimated time on a core.
    pub core_time: Duration,
    /// Bytes on the device: inputs, outputs and scratch.
    pub device_bytes: u64,
    /// The kind whose time is unknown: the next runs belong there.
    pub trial: Option<SlotKind>,
}

impl DeviceTask {
    /// Creates a task that has no variant for accelerators.
    #[must_use]
    pub fn for_cores(core_time: Duration) -> Self {
        Self { on_core: true, on_accelerator: false, gain: 0, core_time, device_bytes: 0, trial: None }
    }

    /// Returns the estimated time on a kind of slot.
    #[must_use]
    pub fn time_on(&self, kind: SlotKind) -> Duration {
        time_on(kind, self.core_time, self.gain)
    }

    /// Returns the mean time over the slots that run it, as for an upward rank of HEFT.
    fn mean_time(&self, cores: u32, accelerators: u32) -> Duration {
        let kinds = [
            (self.on_core, cores, SlotKind::Core),
            (self.on_accelerator, accelerators, SlotKind::Accelerator),
        ];
        let able = kinds.into_iter().filter(|(is_able, slots, _)| *is_able && *slots > 0);
        let (time, slots) = able.fold((Duration::ZERO, 0), |(time, slots), (_, count, kind)| {
            (time.saturating_add(self.time_on(kind).saturating_mul(count)), slots + count)
        });
        time.checked_div(slots).unwrap_or(self.core_time)
    }
}

fn time_on(kind: SlotKind, core_time: Duration, gain: u32) -> Duration {
    match kind {
        SlotKind::Core => core_time,
        SlotKind::Accelerator => {
            let nanos = core_time.as_nanos() * u128::from(GAIN_UNIT) / u128::from(gain.max(1));
            Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
        }
    }
}

/// A ready task that a bucket offers to a worker with accelerators.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offer {
    /// The task.
    pub node: NodeId,
    /// It may run on a core.
    pub on_core: bool,
    /// It may run on an accelerator.
    pub on_accelerator: bool,
    /// Seconds on a core / seconds on an accelerator, in thousandths.
    pub gain: u32,
    /// The kind whose time is unknown.
    pub trial: Option<SlotKind>,
    /// Estimated time on a core.
    pub core_time: Duration,
    /// Mean time over all slots plus the greatest rank of a task that reads it: the upward rank of HEFT.
    pub upward_rank: Duration,
    /// Bytes on the device.
    pub device_bytes: u64,
    /// The task whose end made it ready. Its outputs may be on a device.
    pub after: Option<NodeId>,
    /// Memory of the task while it runs, as [`BucketDemand::next_bytes`].
    pub next_bytes: u64,
    /// As [`BucketDemand::next_time`]. The shell sets it for a worker with a time limit.
    pub next_time: Duration,
    /// Forecast of the bucket after a start of this task.
    pub then: MemoryForecast,
}

impl Offer {
    /// Returns the next task of a bucket that makes no offers, which runs on a core.
    pub(crate) fn for_core(demand: &BucketDemand) -> Option<Self> {
        Some(Self {
            node: demand.next?,
            on_core: true,
            on_accelerator: false,
            gain: 0,
            trial: None,
            core_time: Duration::ZERO,
            upward_rank: Duration::ZERO,
            device_bytes: 0,
            after: None,
            next_bytes: demand.next_bytes,
            next_time: demand.next_time,
            then: demand.then,
        })
    }

    /// Returns the demand of its bucket with this task as the next one.
    pub(crate) fn as_next(&self, demand: &BucketDemand) -> BucketDemand {
        BucketDemand {
            next: Some(self.node),
            next_bytes: self.next_bytes,
            next_time: self.next_time,
            then: self.then,
            ..*demand
        }
    }

    /// Returns the gain that policies order tasks by. Tasks whose time is unknown on a kind come first there.
    #[must_use]
    pub fn order(&self) -> u32 {
        order(self.on_accelerator, self.trial, self.gain)
    }

    /// Returns the estimated time on a kind of slot.
    #[must_use]
    pub fn time_on(&self, kind: SlotKind) -> Duration {
        time_on(kind, self.core_time, self.gain)
    }
}

fn order(on_accelerator: bool, trial: Option<SlotKind>, gain: u32) -> u32 {
    match trial {
        _ if !on_accelerator => 0,
        Some(SlotKind::Core) => 0,
        Some(SlotKind::Accelerator) => u32::MAX,
        None => gain,
    }
}

/// Tasks of a bucket on cores and accelerators.
#[derive(Debug)]
pub(super) struct DeviceTasks {
    /// By task of the stage.
    tasks: Vec<DeviceTask>,
    /// By task of the stage: its upward rank.
    ranks: Vec<Duration>,
    /// For each task that became ready when a task ended: the ended task.
    after: BTreeMap<NodeId, NodeId>,
    /// Tasks that failed on a device.
    core_only: BTreeSet<NodeId>,
}

impl DeviceTasks {
    /// Records that the end of `parent` made a task ready.
    pub(super) fn record_ready(&mut self, child: NodeId, parent: NodeId) {
        self.after.insert(child, parent);
    }
}

impl BucketExecution {
    /// Sets the estimates of the stage's tasks on cores and accelerators, for a worker with these slots. Without them, the
    /// bucket makes no offers. Call it again when the estimates have changed.
    pub fn set_device_tasks(&mut self, stage: &Stage, tasks: Vec<DeviceTask>, cores: u32, accelerators: u32) {
        assert!(
            tasks.len() == stage.tasks.len(),
            "{} estimates for {} tasks of a stage",
            tasks.len(),
            stage.tasks.len()
        );
        let ranks = upward_ranks(stage, &tasks, cores, accelerators);
        let before = self.devices.take();
        let (after, core_only) = before.map(|before| (before.after, before.core_only)).unwrap_or_default();
        self.devices = Some(Box::new(DeviceTasks { tasks, ranks, after, core_only }));
    }

    /// Returns up to [`MAX_OFFERS`] tasks that can get a slot now, the next one first. Empty without device tasks.
    #[must_use]
    pub fn offers(&self) -> Vec<Offer> {
        self.offers_with(|node| {
            let then = self.sizes.forecast(&self.graph, &self.running, Some(node));
            (self.sizes.takes(&self.graph, node), then)
        })
    }

    /// Returns the offers for a worker without a memory limit. They have no forecast.
    #[must_use]
    pub fn offers_without_bytes(&self) -> Vec<Offer> {
        self.offers_with(|_| (0, MemoryForecast::default()))
    }

    fn offers_with(&self, memory: impl Fn(NodeId) -> (u64, MemoryForecast)) -> Vec<Offer> {
        let (Some(devices), Some(next)) = (&self.devices, self.next()) else { return Vec::new() };
        let offer = |node: NodeId| {
            let at = &self.graph.nodes[node.index()];
            let task = &devices.tasks[at.level];
            let (next_bytes, then) = memory(node);
            // A device may fail for a task that has no variant for cores. It stays there.
            let on_accelerator = task.on_accelerator && !(task.on_core && devices.core_only.contains(&node));
            Offer {
                node,
                on_core: task.on_core,
                on_accelerator,
                gain: task.gain,
                trial: task.trial,
                core_time: task.core_time,
                upward_rank: devices.ranks[at.level],
                device_bytes: task.device_bytes,
                after: devices.after.get(&node).copied(),
                next_bytes,
                next_time: Duration::ZERO,
                then,
            }
        };
        self.choice(devices, next).into_iter().map(offer).collect()
    }

    /// Returns the next task, those of greatest and least gain, and the next ones in order.
    fn choice(&self, devices: &DeviceTasks, next: NodeId) -> Vec<NodeId> {
        // A look-up under way will need a slot, and at most one is under way for a free slot.
        let unresolved = self.gate.unresolved().filter(|_| !self.gate.is_resolving());
        let mut ready: Vec<NodeId> = self.ready.iter().copied().chain(unresolved).collect();
        if ready.len() > MAX_OFFERS {
            let gain = |node: &NodeId| {
                let task = &devices.tasks[self.graph.nodes[node.index()].level];
                let on_accelerator =
                    task.on_accelerator && !(task.on_core && devices.core_only.contains(node));
                order(on_accelerator, task.trial, task.gain)
            };
            // Of equal ones the first, as in the plan.
            let greatest = ready.iter().copied().rev().max_by_key(gain);
            let least = ready.iter().copied().min_by_key(gain);
            let first = [Some(next), greatest, least];
            ready.splice(0..0, first.into_iter().flatten());
        } else {
            ready.insert(0, next);
        }
        let mut seen = BTreeSet::new();
        ready.retain(|node| seen.len() < MAX_OFFERS && seen.insert(*node));
        ready
    }

    /// Makes a started task ready again, because the device that it had failed. It runs on a core then, unless it has no
    /// variant for cores.
    pub fn handle_device_failed(&mut self, node: NodeId) {
        if let Some(devices) = &mut self.devices {
            devices.core_only.insert(node);
        }
        self.suspend(node);
        if self.orphans.contains_key(&node) || self.graph.nodes[node.index()].waits_for > 0 {
            return self.resume(node);
        }
        // It has been looked up already, and other workers may wait for it.
        self.suspended.remove(&node);
        let is_new = self.ready.insert(node);
        assert!(is_new, "{node} was running and ready");
    }
}

/// Returns the upward rank of each task of a stage: its mean time over the slots that run it, plus the greatest rank of a task
/// that reads it (Topcuoglu et al., 2002).
fn upward_ranks(stage: &Stage, tasks: &[DeviceTask], cores: u32, accelerators: u32) -> Vec<Duration> {
    let mut ranks = vec![Duration::ZERO; tasks.len()];
    for (level, task) in tasks.iter().enumerate().rev() {
        // Readers come after the tasks that they read.
        let reads = |read: &TaskInput| matches!(*read, TaskInput::Task { task, .. } if task == level);
        let readers = stage.tasks.iter().zip(&ranks).filter(|(task, _)| task.reads.iter().any(reads));
        let rest = readers.map(|(_, rank)| *rank).max().unwrap_or_default();
        ranks[level] = task.mean_time(cores, accelerators).saturating_add(rest);
    }
    ranks
}
