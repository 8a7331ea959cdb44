//! Slots of a worker.
//!
//! Invariant: each slot is either free or taken by one running task.

use crate::{LeaseId, SlotId};
use std::collections::BTreeMap;

/// Free slots and running tasks.
#[derive(Debug)]
pub(crate) struct Slots {
    free: Vec<SlotId>,
    /// Running tasks: the lease and the reserved bytes.
    running: BTreeMap<SlotId, (LeaseId, u64)>,
    slots: u32,
}

impl Slots {
    pub(crate) fn of(slots: u32) -> Self {
        // Popped from the end, so that the first task runs in slot 0.
        let free = (0..slots).rev().map(SlotId).collect();
        Self { free, running: BTreeMap::new(), slots }
    }

    /// Counts all slots.
    pub(crate) fn count(&self) -> usize {
        self.slots as usize
    }

    /// Counts the free slots.
    pub(crate) fn free(&self) -> usize {
        self.free.len()
    }

    /// Counts the running tasks.
    pub(crate) fn running(&self) -> usize {
        self.running.len()
    }

    /// Returns the bytes reserved by running tasks.
    pub(crate) fn reserved_bytes(&self) -> u64 {
        self.running.values().fold(0, |sum, (_, bytes)| sum.saturating_add(*bytes))
    }

    /// Takes a free slot for a task and reserves its bytes. `None` if no slot is free.
    pub(crate) fn take(&mut self, lease: LeaseId, bytes: u64) -> Option<SlotId> {
        let slot = self.free.pop()?;
        let before = self.running.insert(slot, (lease, bytes));
        assert!(before.is_none(), "{slot} is free for {lease} and taken by {before:?}");
        self.assert_counts(slot);
        Some(slot)
    }

    /// Frees the slot of a task that has ended, and its reserved bytes.
    pub(crate) fn release(&mut self, slot: SlotId) {
        let reserved = self.running.remove(&slot);
        assert!(reserved.is_some(), "{slot} is freed, and was not taken");
        self.free.push(slot);
        self.assert_counts(slot);
    }

    fn assert_counts(&self, slot: SlotId) {
        let (free, running) = (self.free.len(), self.running.len());
        assert!(
            free + running == self.slots as usize,
            "{free} slots are free and {running} taken after {slot}, of {}",
            self.slots
        );
    }
}
