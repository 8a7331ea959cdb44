//! Prefetch: hints of the task that an accelerator takes next, so that its inputs are uploaded while the present task runs (RTF, the
//! runtime of Region Templates).
//!
//! A hint commits nothing. When the slot becomes free, the policy chooses as without hints. Only PATS prefers the hinted one of
//! tasks with equal gains. Rule 4 of `devices` holds for the running task, the one whose outputs are being downloaded and the hinted one
//! together. A task to run is admitted without the bytes of hints, because a device evicts prefetched regions when it needs their
//! memory.

use super::devices::Candidate;
use super::{Effect, Worker};
use crate::{SlotId, SlotKind};

impl Worker {
    /// Emits [`Effect::Prefetch`] from now on, for accelerators that begin a task. Call it if devices upload while they compute.
    pub fn enable_prefetch(&mut self) {
        self.prefetches.enable();
    }

    /// Hints the next task of each accelerator that has begun one since its last hint.
    pub(super) fn hint_next_tasks(&mut self) {
        if !self.prefetches.has_due() {
            return;
        }
        let tasks: Vec<Candidate> = self.candidates().collect();
        for slot in self.prefetches.due() {
            if let Some(task) = self.next_for(slot, &tasks)
                && self.prefetches.set(slot, task.id())
            {
                let (lease, node) = task.id();
                self.effects.push_back(Effect::Prefetch { lease, slot, node });
            }
        }
    }

    /// Returns the task that a busy accelerator would take if it were free, within rule 4.
    fn next_for(&self, slot: SlotId, tasks: &[Candidate]) -> Option<Candidate> {
        let is_open = |task: &&Candidate| self.prefetches.is_for(slot, task.id()) != Some(false);
        let tasks: Vec<Candidate> = tasks.iter().filter(is_open).copied().collect();
        let pick = self.admitted_at(slot, SlotKind::Accelerator, &tasks)?;
        let running = self.prefetches.running_bytes(slot);
        let fits = self.fits_on_device(slot, running.saturating_add(pick.task.offer.device_bytes));
        (pick.excess == 0 && fits).then_some(pick.task)
    }

    /// Returns the order of tasks of equal gain: the one hinted for this slot, those without a hint, others.
    pub(super) fn hint_order(&self, slot: SlotId, task: &Candidate) -> u8 {
        match self.prefetches.is_for(slot, task.id()) {
            Some(true) => 0,
            None => 1,
            Some(false) => 2,
        }
    }
}
