//! Slots of a worker.
//!
//! Invariant: each slot is free, taken by one running task, or closed.

use crate::worker::policy::WorkerSlots;
use crate::{LeaseId, SlotId, SlotKind};
use std::collections::{BTreeMap, BTreeSet};

/// Free slots and running tasks.
#[derive(Debug)]
pub(crate) struct Slots {
    slots: WorkerSlots,
    free_cores: Vec<SlotId>,
    free_accelerators: Vec<SlotId>,
    /// Running tasks: the lease and the reserved bytes.
    running: BTreeMap<SlotId, (LeaseId, u64)>,
    /// Slots that take no further task. Some of them may still run one.
    closed: BTreeSet<SlotId>,
}

impl Slots {
    pub(crate) fn of(slots: WorkerSlots) -> Self {
        // Popped from the end, so that the first task runs in slot 0.
        let free_cores = (0..slots.cores).rev().map(SlotId).collect();
        let free_accelerators = slots.accelerator_slots().collect::<Vec<_>>().into_iter().rev().collect();
        Self { slots, free_cores, free_accelerators, running: BTreeMap::new(), closed: BTreeSet::new() }
    }

    /// Returns the slots by kind and the policy that assigns tasks to them.
    pub(crate) fn by_kind(&self) -> &WorkerSlots {
        &self.slots
    }

    /// Counts the slots that are not closed.
    pub(crate) fn count(&self) -> usize {
        self.slots.count() as usize - self.closed.len()
    }

    /// Counts the accelerators that are not closed.
    pub(crate) fn accelerators(&self) -> usize {
        let closed = self.closed.iter().filter(|slot| self.slots.kind(**slot) == SlotKind::Accelerator);
        self.slots.accelerators as usize - closed.count()
    }

    /// Counts the free slots.
    pub(crate) fn free(&self) -> usize {
        self.free_cores.len() + self.free_accelerators.len()
    }

    /// Counts the free cores.
    pub(crate) fn free_cores(&self) -> usize {
        self.free_cores.len()
    }

    /// Returns the free slots, accelerators first.
    pub(crate) fn free_slots(&self) -> impl Iterator<Item = SlotId> {
        self.free_accelerators.iter().rev().chain(self.free_cores.iter().rev()).copied()
    }

    /// Returns the slots of both kinds that are not closed.
    pub(crate) fn open(&self) -> impl Iterator<Item = SlotId> {
        (0..self.slots.count()).map(SlotId).filter(|slot| !self.closed.contains(slot))
    }

    /// Counts the running tasks.
    pub(crate) fn running(&self) -> usize {
        self.running.len()
    }

    /// Returns the bytes reserved by running tasks.
    pub(crate) fn reserved_bytes(&self) -> u64 {
        self.running.values().fold(0, |sum, (_, bytes)| sum.saturating_add(*bytes))
    }

    /// Takes a free core for a task and reserves its bytes. `None` if no core is free.
    pub(crate) fn take(&mut self, lease: LeaseId, bytes: u64) -> Option<SlotId> {
        let slot = self.free_cores.pop()?;
        self.run(slot, lease, bytes);
        Some(slot)
    }

    /// Takes this free slot for a task and reserves its bytes.
    pub(crate) fn take_slot(&mut self, slot: SlotId, lease: LeaseId, bytes: u64) {
        let free = self.free_of(slot);
        let position = free.iter().rposition(|other| *other == slot);
        assert!(position.is_some(), "{slot} is granted to {lease}, and is not free");
        position.map(|position| free.remove(position));
        self.run(slot, lease, bytes);
    }

    fn run(&mut self, slot: SlotId, lease: LeaseId, bytes: u64) {
        let before = self.running.insert(slot, (lease, bytes));
        assert!(before.is_none(), "{slot} is free for {lease} and taken by {before:?}");
        self.assert_counts(slot);
    }

    /// Frees the slot of a task that has ended. Returns its reserved bytes. A closed slot stays closed.
    pub(crate) fn release(&mut self, slot: SlotId) -> u64 {
        let reserved = self.running.remove(&slot);
        assert!(reserved.is_some(), "{slot} is freed, and was not taken");
        if !self.closed.contains(&slot) {
            self.free_of(slot).push(slot);
        }
        self.assert_counts(slot);
        reserved.map_or(0, |(_, bytes)| bytes)
    }

    /// Closes a slot. Its running task, if any, ends with [`release`](Self::release). Returns false if it was closed before.
    pub(crate) fn close(&mut self, slot: SlotId) -> bool {
        let is_new = self.closed.insert(slot);
        self.free_of(slot).retain(|other| *other != slot);
        self.assert_counts(slot);
        is_new
    }

    fn free_of(&mut self, slot: SlotId) -> &mut Vec<SlotId> {
        match self.slots.kind(slot) {
            SlotKind::Core => &mut self.free_cores,
            SlotKind::Accelerator => &mut self.free_accelerators,
        }
    }

    /// Counts the closed slots without a running task.
    fn idle_closed(&self) -> usize {
        self.closed.iter().filter(|slot| !self.running.contains_key(slot)).count()
    }

    fn assert_counts(&self, slot: SlotId) {
        let (free, running) = (self.free(), self.running.len());
        let closed = if self.closed.is_empty() { 0 } else { self.idle_closed() };
        assert!(
            free + running + closed == self.slots.count() as usize,
            "{free} slots are free, {running} taken and {closed} closed after {slot}, of {}",
            self.slots.count()
        );
    }
}
