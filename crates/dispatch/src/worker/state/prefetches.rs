//! Hints of the next task of each busy accelerator, whose inputs can go to the device while its present task runs.
//!
//! Invariants: a slot has at most one hint, and a task is hinted for at most one slot.

use crate::stage::NodeId;
use crate::{LeaseId, SlotId};
use std::collections::{BTreeMap, BTreeSet};

/// A task of a bucket.
type TaskOf = (LeaseId, NodeId);

/// Hints for the accelerators of a worker. Empty without them.
#[derive(Debug, Default)]
pub(crate) struct Prefetches {
    is_enabled: bool,
    /// By busy accelerator: bytes of its running task on the device.
    running: BTreeMap<SlotId, u64>,
    /// Busy accelerators whose next task has not been chosen since they began the present one.
    due: BTreeSet<SlotId>,
    hints: BTreeMap<SlotId, TaskOf>,
}

impl Prefetches {
    pub(crate) fn enable(&mut self) {
        self.is_enabled = true;
    }

    /// Returns the busy accelerators that wait for a hint.
    pub(crate) fn due(&self) -> Vec<SlotId> {
        self.due.iter().copied().collect()
    }

    pub(crate) fn has_due(&self) -> bool {
        !self.due.is_empty()
    }

    /// Returns the bytes of the running task of an accelerator on its device.
    pub(crate) fn running_bytes(&self, slot: SlotId) -> u64 {
        self.running.get(&slot).copied().unwrap_or_default()
    }

    /// Returns whether a task is hinted for this slot. `None` if it is hinted for none.
    pub(crate) fn is_for(&self, slot: SlotId, task: TaskOf) -> Option<bool> {
        let (hinted, _) = self.hints.iter().find(|(_, hint)| **hint == task)?;
        Some(*hinted == slot)
    }

    /// Sets the hint of a slot. Returns whether it differs from the one before.
    pub(crate) fn set(&mut self, slot: SlotId, task: TaskOf) -> bool {
        assert!(self.is_for(slot, task) != Some(false), "{task:?} is hinted for {slot} and another slot");
        self.due.remove(&slot);
        self.hints.insert(slot, task) != Some(task)
    }

    /// Records the start of a task in a core.
    pub(crate) fn start_on_core(&mut self, task: TaskOf) {
        self.void(|hint| hint == task);
    }

    /// Records the start of a task in an accelerator, with its bytes on the device.
    pub(crate) fn start(&mut self, slot: SlotId, task: TaskOf, bytes: u64) {
        self.void(|hint| hint == task);
        self.running.insert(slot, bytes);
        if self.is_enabled {
            self.due.insert(slot);
        }
    }

    /// Records the end of a task. Returns its bytes on the device. The hint of its slot stays until a task starts there.
    pub(crate) fn end(&mut self, slot: SlotId) -> u64 {
        self.due.remove(&slot);
        self.running.remove(&slot).unwrap_or_default()
    }

    /// Removes a bucket.
    pub(crate) fn remove(&mut self, lease: LeaseId) {
        self.void(|(hinted, _)| hinted == lease);
    }

    /// Removes the hints of a bucket for tasks that it does not offer any more.
    pub(crate) fn retain_offered(&mut self, lease: LeaseId, is_offered: impl Fn(NodeId) -> bool) {
        self.void(|(hinted, node)| hinted == lease && !is_offered(node));
    }

    /// Closes a slot.
    pub(crate) fn close(&mut self, slot: SlotId) {
        self.hints.remove(&slot);
        self.end(slot);
    }

    /// Removes hints. A slot that is still busy is due again.
    fn void(&mut self, is_void: impl Fn(TaskOf) -> bool) {
        let Self { is_enabled, running, due, hints } = self;
        hints.retain(|slot, hint| {
            let is_void = is_void(*hint);
            if is_void && *is_enabled && running.contains_key(slot) {
                due.insert(*slot);
            }
            !is_void
        });
    }
}
