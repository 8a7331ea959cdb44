//! Offers of the buckets to a worker with accelerators, the queues of HEFT, and the last task of each accelerator.
//!
//! Invariant: a queued task has one slot.

use crate::stage::{MAX_OFFERS, NodeId, Offer};
use crate::{LeaseId, SlotId};
use std::collections::BTreeMap;
use std::time::Duration;

/// A task of a bucket.
type TaskOf = (LeaseId, NodeId);

/// Queue entry of a ready task under HEFT.
#[derive(Clone, Copy, Debug)]
struct Queued {
    slot: SlotId,
    number: u64,
    time: Duration,
}

/// State of a worker with accelerators. Empty without them.
#[derive(Debug, Default)]
pub(crate) struct Devices {
    /// The current offers of each bucket, with the number of the event that brought each first.
    offers: BTreeMap<LeaseId, Vec<(u64, Offer)>>,
    /// For HEFT.
    queue: BTreeMap<TaskOf, Queued>,
    /// By slot: the estimated end of all tasks that have been queued there. Measured times do not correct it: HEFT plans with
    /// estimates only.
    planned_until: BTreeMap<SlotId, Duration>,
    /// By accelerator: its last task.
    last: BTreeMap<SlotId, TaskOf>,
    /// Numbers offers and queue entries in their order.
    next_number: u64,
    /// Maximum number of buckets at once. `None` for the default.
    max_buckets: Option<u32>,
}

impl Devices {
    fn number(&mut self) -> u64 {
        self.next_number += 1;
        self.next_number
    }

    /// Replaces the offers of a bucket. An offer that is still open keeps its number.
    pub(crate) fn set_offers(&mut self, lease: LeaseId, offers: Vec<Offer>) {
        let number = self.number();
        let before = self.offers.remove(&lease).unwrap_or_default();
        let known =
            |node: NodeId| before.iter().find(|(_, offer)| offer.node == node).map(|(known, _)| *known);
        if offers.len() < MAX_OFFERS {
            // All ready tasks are offered. A queued one that is not has been withdrawn.
            let is_offered = |node: NodeId| offers.iter().any(|offer| offer.node == node);
            let gone = self.queued_of(lease).into_iter().filter(|(_, node)| !is_offered(*node));
            gone.for_each(|(lease, node)| self.dequeue(lease, node));
        }
        let numbered = offers.into_iter().map(|offer| (known(offer.node).unwrap_or(number), offer)).collect();
        self.offers.insert(lease, numbered);
    }

    /// Returns the offers of a bucket with their numbers.
    pub(crate) fn offers(&self, lease: LeaseId) -> &[(u64, Offer)] {
        self.offers.get(&lease).map_or(&[], Vec::as_slice)
    }

    /// Removes a bucket.
    pub(crate) fn remove(&mut self, lease: LeaseId) {
        self.offers.remove(&lease);
        self.queued_of(lease).into_iter().for_each(|(lease, node)| self.dequeue(lease, node));
    }

    /// Returns the queued tasks of a bucket.
    fn queued_of(&self, lease: LeaseId) -> Vec<TaskOf> {
        self.queue.range((lease, NodeId(0))..=(lease, NodeId(u32::MAX))).map(|(task, _)| *task).collect()
    }

    /// Queues a task at a slot.
    pub(crate) fn enqueue(
        &mut self,
        lease: LeaseId,
        node: NodeId,
        slot: SlotId,
        time: Duration,
        now: Duration,
    ) {
        let number = self.number();
        let before = self.queue.insert((lease, node), Queued { slot, number, time });
        assert!(before.is_none(), "{node} of {lease} is queued at {slot} and at {before:?}");
        self.planned_until.insert(slot, self.planned_until(slot, now).saturating_add(time));
    }

    /// Removes a task that has not run from its queue, if it has one.
    pub(crate) fn dequeue(&mut self, lease: LeaseId, node: NodeId) {
        if let Some(queued) = self.queue.remove(&(lease, node)) {
            let planned = self.planned_until.entry(queued.slot).or_default();
            *planned = planned.saturating_sub(queued.time);
        }
    }

    /// Returns the slot of a queued task and its number in the order of queueing.
    pub(crate) fn queued_at(&self, lease: LeaseId, node: NodeId) -> Option<(SlotId, u64)> {
        self.queue.get(&(lease, node)).map(|queued| (queued.slot, queued.number))
    }

    /// Returns the time when a slot is estimated to be free of all queued tasks.
    pub(crate) fn planned_until(&self, slot: SlotId, now: Duration) -> Duration {
        self.planned_until.get(&slot).copied().unwrap_or_default().max(now)
    }

    /// Records the start of a task in a slot.
    pub(crate) fn start(&mut self, slot: SlotId, lease: LeaseId, node: NodeId) {
        self.last.insert(slot, (lease, node));
        if let Some(offers) = self.offers.get_mut(&lease) {
            offers.retain(|(_, offer)| offer.node != node);
        }
        // A forced start leaves the plan of the queue that it was in.
        match self.queue.get(&(lease, node)) {
            Some(queued) if queued.slot != slot => self.dequeue(lease, node),
            _ => drop(self.queue.remove(&(lease, node))),
        }
    }

    /// Returns the last task that ran in a slot.
    pub(crate) fn last(&self, slot: SlotId) -> Option<TaskOf> {
        self.last.get(&slot).copied()
    }

    /// Closes a slot: its queued tasks will be queued at others.
    pub(crate) fn close(&mut self, slot: SlotId) {
        self.queue.retain(|_, queued| queued.slot != slot);
        self.planned_until.remove(&slot);
        self.last.remove(&slot);
    }

    pub(crate) fn set_max_buckets(&mut self, buckets: u32) {
        self.max_buckets = Some(buckets);
    }

    pub(crate) fn max_buckets(&self) -> Option<u32> {
        self.max_buckets
    }
}
