//! One worker's slots: which stage actor may run a task next, and when to ask the manager for more.
//!
//! Events: a bucket arrives, a stage says how many tasks it has ready, a slot falls free, a bucket is over.

use crate::{LeaseId, SlotId};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// What the shell is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// The stage under this lease may run one task in this slot.
    Grant {
        /// The stage's lease.
        lease: LeaseId,
        /// The slot.
        slot: SlotId,
    },
    /// Ask the manager for this many more buckets.
    Request {
        /// Buckets.
        buckets: u32,
    },
}

/// The stage that a lease belongs to decides the order: later stages first, then earlier leases.
type Rank = (std::cmp::Reverse<u32>, LeaseId);

/// Slots and the stages that compete for them.
#[derive(Debug)]
pub struct Worker {
    free: Vec<SlotId>,
    slots: u32,
    /// Ready tasks of each stage that have no slot yet.
    ready: BTreeMap<Rank, u32>,
    /// Stage index of every lease held.
    stages: BTreeMap<LeaseId, u32>,
    /// Leases whose first tasks are not announced yet: a slot is spoken for by each of them, else every event
    /// in between would ask for one more bucket.
    silent: BTreeSet<LeaseId>,
    /// Buckets asked for and not yet there.
    asked: u32,
    effects: VecDeque<Effect>,
}

impl Worker {
    /// A worker that can run `slots` tasks at once; it asks for its first buckets at once.
    #[must_use]
    pub fn new(slots: u32) -> Self {
        // Handed out from the end, so that the first task runs in slot 0.
        let free = (0..slots).rev().map(SlotId).collect();
        let mut worker = Self {
            free,
            slots,
            ready: BTreeMap::new(),
            stages: BTreeMap::new(),
            silent: BTreeSet::new(),
            asked: 0,
            effects: VecDeque::new(),
        };
        worker.balance();
        worker
    }

    /// A bucket of stage `stage` has arrived; its first tasks are announced by
    /// [`handle_ready`](Self::handle_ready).
    pub fn handle_assigned(&mut self, lease: LeaseId, stage: u32) {
        self.asked = self.asked.saturating_sub(1);
        self.stages.insert(lease, stage);
        self.silent.insert(lease);
    }

    /// The stage has `tasks` ready tasks that have no slot.
    pub fn handle_ready(&mut self, lease: LeaseId, tasks: u32) {
        let Some(rank) = self.rank(lease) else { return };
        self.silent.remove(&lease);
        if tasks == 0 {
            self.ready.remove(&rank);
        } else {
            self.ready.insert(rank, tasks);
        }
        self.balance();
    }

    /// A task has left its slot, and its stage has `tasks` ready tasks that have no slot.
    pub fn handle_slot_free(&mut self, slot: SlotId, lease: LeaseId, tasks: u32) {
        debug_assert!(slot.0 < self.slots && !self.free.contains(&slot), "{slot} was not taken");
        self.free.push(slot);
        self.handle_ready(lease, tasks);
        self.balance();
    }

    /// The bucket under this lease is over.
    pub fn handle_stage_over(&mut self, lease: LeaseId) {
        if let Some(rank) = self.rank(lease) {
            self.ready.remove(&rank);
        }
        self.stages.remove(&lease);
        self.silent.remove(&lease);
        self.balance();
    }

    /// The next thing to do, in order.
    pub fn poll_effect(&mut self) -> Option<Effect> {
        self.effects.pop_front()
    }

    /// Leases held.
    #[must_use]
    pub fn leases(&self) -> usize {
        self.stages.len()
    }

    fn rank(&self, lease: LeaseId) -> Option<Rank> {
        self.stages.get(&lease).map(|&stage| (std::cmp::Reverse(stage), lease))
    }

    /// Grants free slots to ready tasks; asks for as many buckets as slots stay free, no matter how many tasks
    /// each will bring: a bucket that cannot use its share only waits here instead of at the manager.
    fn balance(&mut self) {
        while let Some(mut entry) = self.ready.first_entry() {
            let Some(slot) = self.free.pop() else { return };
            let lease = entry.key().1;
            *entry.get_mut() -= 1;
            if *entry.get() == 0 {
                entry.remove();
            }
            self.effects.push_back(Effect::Grant { lease, slot });
        }
        let idle = self.free.len().saturating_sub(self.silent.len()) as u32;
        if idle > self.asked {
            self.effects.push_back(Effect::Request { buckets: idle - self.asked });
            self.asked = idle;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn effects(worker: &mut Worker) -> Vec<Effect> {
        std::iter::from_fn(|| worker.poll_effect()).collect()
    }

    #[test]
    fn asks_for_what_it_can_run_and_not_more() {
        let mut worker = Worker::new(2);
        assert_eq!(effects(&mut worker), [Effect::Request { buckets: 2 }]);
        worker.handle_assigned(LeaseId(0), 0);
        worker.handle_ready(LeaseId(0), 5);
        let grant = |lease, slot| Effect::Grant { lease: LeaseId(lease), slot: SlotId(slot) };
        // Both slots go to the one bucket; the second bucket asked for will come all the same.
        assert_eq!(effects(&mut worker), [grant(0, 0), grant(0, 1)]);
        worker.handle_slot_free(SlotId(0), LeaseId(0), 0);
        assert_eq!(effects(&mut worker), []);
        worker.handle_slot_free(SlotId(1), LeaseId(0), 0);
        assert_eq!(effects(&mut worker), [Effect::Request { buckets: 1 }]);
    }

    #[test]
    fn later_stages_come_first_then_earlier_leases() {
        let mut worker = Worker::new(1);
        let _ = effects(&mut worker);
        for (lease, stage) in [(0, 1), (1, 1), (2, 2)] {
            worker.handle_assigned(LeaseId(lease), stage);
        }
        worker.handle_ready(LeaseId(1), 1);
        assert_eq!(effects(&mut worker), [Effect::Grant { lease: LeaseId(1), slot: SlotId(0) }]);
        worker.handle_ready(LeaseId(0), 1);
        worker.handle_ready(LeaseId(2), 1);
        worker.handle_slot_free(SlotId(0), LeaseId(1), 0);
        assert_eq!(effects(&mut worker), [Effect::Grant { lease: LeaseId(2), slot: SlotId(0) }]);
    }
}
