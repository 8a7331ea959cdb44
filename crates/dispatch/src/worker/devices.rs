//! Assignment of ready tasks to cores and accelerators, by a policy.
//!
//! Each bucket offers several ready tasks. For each idle slot, accelerators first, the worker tries the offers of all buckets in
//! the order of its policy. The first one that the rules of `admission` admit runs there, with a fourth rule:
//!
//! 4. *It fits on the device.* The bytes of the task on an accelerator, and of the task whose outputs are being downloaded from
//!    there, are within the limit of the device. Otherwise the task is no candidate there.
//!
//! Rules 1 to 3 stay in bytes of the host, where inputs and outputs of all tasks are. A bucket under way that rule 2 refuses is
//! passed by none: its memory would keep the others waiting. If only other rules refuse it, a task that rule 2 admits passes it,
//! since both can still be finished.
//!
//! Inputs of the next task of an accelerator may go to the device ahead of it (`prefetch`), and outputs of the task before may come
//! down meanwhile ([`handle_slot_computed`](Worker::handle_slot_computed)).
//!
//! Devices cause no deadlock. If nothing runs and nothing is admitted, the first task in rank runs on a core. A task that needs an
//! accelerator gets one, whatever its bytes. With all accelerators closed it gets a core, where the shell fails it.
//!
//! Two rules of Region Templates refine PATS. *Locality*: of the tasks that a task on an accelerator made ready, the one of
//! greatest gain stays there, unless the gain of another is more than a fifth above it. *Tail*: once no bucket is unstarted, here
//! or at the manager, a core leaves a task to the accelerators that would run all ready tasks sooner than the core this one.

use super::admission::takes;
use super::state::{BucketEntry, Rank};
use super::{Effect, Worker};
use crate::memory_model::BucketDemand;
use crate::stage::{GAIN_UNIT, MAX_OFFERS, NodeId, Offer};
use crate::worker::policy::SchedulePolicy;
use crate::{LeaseId, SlotId, SlotKind};
use std::cmp::Reverse;

/// A task stays on its accelerator if its gain is less than a fifth of the greatest gain below that (Region Templates,
/// `ThreadPool.cpp`).
const MAX_LOCALITY_LOSS: u64 = 5;

/// Buckets at once, in halves of the slots: PATS needs a choice of gains. By simulation, 40 instances for 17 slots take 1 % more
/// than 128, and 24 take 4 % more.
const BUCKETS_PER_TWO_SLOTS: u64 = 5;

/// A ready task of a bucket.
#[derive(Clone, Copy, Debug)]
pub(super) struct Candidate {
    rank: Rank,
    demand: BucketDemand,
    pub(super) offer: Offer,
    /// Order of arrival.
    number: u64,
}

impl Candidate {
    /// Returns the bucket and the task.
    pub(super) fn id(&self) -> (LeaseId, NodeId) {
        (self.rank.2, self.offer.node)
    }

    /// Returns the place in the plan's order, which decides between equal tasks.
    fn place(&self) -> (Rank, NodeId) {
        (self.rank, self.offer.node)
    }
}

/// A task for a slot.
pub(super) struct Pick {
    slot: SlotId,
    pub(super) task: Candidate,
    /// Bytes that storage must free first.
    pub(super) excess: u64,
}

impl Worker {
    /// Holds up to `buckets` buckets at once on a worker with accelerators, 2.5 for each slot by default. Call it before the
    /// first effect is polled.
    #[must_use]
    pub fn with_max_buckets(mut self, buckets: u32) -> Self {
        self.devices.set_max_buckets(buckets);
        // The first request was for the default.
        self.effects.clear();
        self.requests.reset();
        self.balance();
        self
    }

    /// Replaces the offers of a bucket, on a worker with accelerators. Call it before [`handle_demand`](Self::handle_demand) or
    /// [`handle_slot_free`](Self::handle_slot_free) with the demand of the same time.
    pub fn handle_offers(&mut self, lease: LeaseId, offers: Vec<Offer>) {
        debug_assert!(offers.len() <= MAX_OFFERS, "{} offers of {lease}", offers.len());
        if self.slots.by_kind().accelerators > 0 && self.buckets.get(lease).is_some() {
            if offers.len() < MAX_OFFERS {
                // All ready tasks are offered.
                let is_offered = |node| offers.iter().any(|offer| offer.node == node);
                self.prefetches.retain_offered(lease, is_offered);
            }
            self.devices.set_offers(lease, offers);
        }
    }

    /// Closes a slot, because its device has failed: it takes no further task. A task that still runs there ends with
    /// [`handle_slot_free`](Self::handle_slot_free).
    pub fn handle_slot_closed(&mut self, slot: SlotId) {
        if self.slots.close(slot) {
            self.devices.close(slot);
            self.prefetches.close(slot);
            self.balance();
        }
    }

    /// Frees the accelerator of a task that has computed, and whose outputs are being downloaded: the next task starts there. The
    /// task holds its bytes until [`handle_downloaded`](Self::handle_downloaded) with the same number of the download.
    pub fn handle_slot_computed(&mut self, slot: SlotId, download: u64) {
        let (reserved, device) = (self.slots.release(slot), self.prefetches.end(slot));
        self.downloads.begin(slot, download, reserved, device);
        self.tail.clear_refusal();
        self.balance();
    }

    /// Frees the bytes of a task whose outputs have been downloaded, and handles the demand of its stage.
    pub fn handle_downloaded(&mut self, slot: SlotId, download: u64, lease: LeaseId, demand: BucketDemand) {
        self.downloads.end(slot, download);
        self.handle_task_ended(lease, demand);
    }

    /// Counts the slots that are not closed.
    #[must_use]
    pub fn open_slots(&self) -> usize {
        self.slots.count()
    }

    /// Grants idle slots to the tasks that the policy picks and memory admits.
    pub(super) fn grant_by_policy(&mut self) {
        if self.slots.by_kind().policy == SchedulePolicy::Heft {
            self.queue_new_tasks();
        }
        while let Some(Pick { slot, task, excess }) = self.pick() {
            if excess > 0 {
                return self.ask_for_room(task.rank.2, excess);
            }
            self.grant_slot(slot, &task);
        }
    }

    /// Returns the task for the first idle slot that has one.
    fn pick(&self) -> Option<Pick> {
        if self.slots.free() == 0 {
            return None;
        }
        let tasks: Vec<Candidate> = self.candidates().collect();
        let has_queues = self.slots.by_kind().policy == SchedulePolicy::Heft;
        let mut without_task = None;
        for slot in self.slots.free_slots() {
            let kind = self.slots.by_kind().kind(slot);
            // All cores would be refused the same tasks. Each accelerator has its own last task.
            if kind == SlotKind::Core && without_task == Some(kind) && !has_queues {
                break;
            }
            if let Some(pick) = self.admitted_at(slot, kind, &tasks) {
                return Some(pick);
            }
            without_task = Some(kind);
        }
        None
    }

    /// Returns the offers of all buckets, in order of rank. A bucket without offers has its next task, for a core.
    pub(super) fn candidates(&self) -> impl Iterator<Item = Candidate> {
        self.buckets.iter().filter(|(_, held)| held.is_current()).flat_map(move |(rank, held)| {
            let demand = held.demand().filter(|demand| demand.next.is_some());
            let offers = demand.map_or(&[][..], |_| self.devices.offers(rank.2));
            let own = demand.filter(|_| offers.is_empty()).and_then(|demand| Offer::for_core(&demand));
            let all = own.map(|offer| (0, offer)).into_iter().chain(offers.iter().copied());
            let candidate = move |(number, offer): (u64, Offer)| {
                let demand = offer.as_next(&demand?);
                self.in_time(&demand).then_some(Candidate { rank, demand, offer, number })
            };
            all.filter_map(candidate)
        })
    }

    /// Returns the first task in the policy's order that may run in a slot.
    pub(super) fn admitted_at(&self, slot: SlotId, kind: SlotKind, tasks: &[Candidate]) -> Option<Pick> {
        let is_freeing = self.memory.is_freeing();
        for task in self.in_order(slot, kind, tasks) {
            let demand = &task.demand;
            let may = demand.started || !is_freeing;
            let excess = self.excess(demand);
            let movable = if is_freeing { 0 } else { self.memory.movable_for(demand) };
            let finishes = self.can_all_finish(task.rank, demand);
            if may && excess <= movable && finishes && self.leaves_room(task.rank, demand) {
                return Some(Pick { slot, task, excess });
            }
            if demand.started && !finishes {
                return None;
            }
        }
        None
    }

    /// Returns the tasks that may run in a slot, in the policy's order.
    fn in_order(&self, slot: SlotId, kind: SlotKind, tasks: &[Candidate]) -> Vec<Candidate> {
        let may_run = |task: &&Candidate| {
            let fits = kind == SlotKind::Core || self.fits_on_device(slot, task.offer.device_bytes);
            fits && self.may_run(&task.offer, kind)
        };
        let mut tasks: Vec<Candidate> = tasks.iter().filter(may_run).copied().collect();
        let hint = |task: &Candidate| self.hint_order(slot, task);
        match (self.slots.by_kind().policy, kind) {
            (SchedulePolicy::Fcfs, _) => tasks.sort_by_key(|task| (task.number, task.place())),
            (SchedulePolicy::Heft, _) => {
                let queued = |task: &Candidate| self.devices.queued_at(task.rank.2, task.offer.node);
                tasks.retain(|task| queued(task).is_none_or(|(queue, _)| queue == slot));
                tasks.sort_by_key(|task| queued(task).map(|(_, number)| number));
            }
            (SchedulePolicy::Pats, SlotKind::Core) => {
                tasks.retain(|task| !self.is_left_to_accelerators(&task.offer));
                tasks.sort_by_key(|task| (task.offer.order(), hint(task), task.place()));
            }
            (SchedulePolicy::Pats, SlotKind::Accelerator) => {
                // An idle core runs a task of less gain than 1 sooner.
                let is_faster = |task: &Candidate| {
                    task.offer.order() >= GAIN_UNIT || !task.offer.on_core || self.slots.free_cores() == 0
                };
                tasks.retain(is_faster);
                tasks.sort_by_key(|task| (Reverse(task.offer.order()), hint(task), task.place()));
                self.put_local_first(slot, &mut tasks);
            }
        }
        tasks
    }

    /// Returns whether bytes fit on a device beside the task whose outputs are being downloaded.
    pub(super) fn fits_on_device(&self, slot: SlotId, bytes: u64) -> bool {
        bytes.saturating_add(self.downloads.device_bytes(slot)) <= self.slots.by_kind().device_bytes
    }

    /// Returns whether a kind of slot can run a task, by its variants and by rule 4.
    fn may_run(&self, offer: &Offer, kind: SlotKind) -> bool {
        match kind {
            // With all accelerators closed, a core is the only slot where a task that needs one can end.
            SlotKind::Core => offer.on_core || self.slots.accelerators() == 0,
            SlotKind::Accelerator => {
                offer.on_accelerator && offer.device_bytes <= self.slots.by_kind().device_bytes
            }
        }
    }

    /// Moves the task of greatest gain among those that the last task of an accelerator made ready to the front, if it stays.
    fn put_local_first(&self, slot: SlotId, tasks: &mut [Candidate]) {
        let Some(last) = self.devices.last(slot) else { return };
        let is_local =
            |task: &Candidate| (Some(task.rank.2), task.offer.after) == (Some(last.0), Some(last.1));
        let Some(local) = tasks.iter().position(is_local) else { return };
        let gain = |task: &Candidate| u64::from(task.offer.order());
        let (top, own) = (gain(&tasks[0]), gain(&tasks[local]));
        if (top - own) * MAX_LOCALITY_LOSS < top || top == own {
            tasks[..=local].rotate_right(1);
        }
    }

    /// Tail rule: returns whether the accelerators would run all ready tasks before a core has run this one.
    fn is_left_to_accelerators(&self, offer: &Offer) -> bool {
        if !self.may_run(offer, SlotKind::Accelerator) || self.has_unstarted() || !self.sync.has_no_rest() {
            return false;
        }
        let demands = self.buckets.iter().filter_map(|(_, held)| held.demand());
        let ready: u64 = demands.map(|demand| u64::from(demand.ready)).sum();
        self.slots.accelerators() as u64 * u64::from(offer.gain) > ready * u64::from(GAIN_UNIT)
    }

    fn has_unstarted(&self) -> bool {
        self.buckets.has_unstarted()
    }

    /// Asks the manager whether it has buckets for the open request, for the tail rule of PATS.
    pub(super) fn ask_for_rest(&mut self) {
        let is_tail = self.slots.by_kind().policy == SchedulePolicy::Pats
            && self.slots.accelerators() > 0
            && self.buckets.len() > 0
            && (self.requests.is_open() || self.requests.is_draining())
            && (!self.has_unstarted() || self.slots.free() > 0);
        if let Some(call) = is_tail.then(|| self.sync.ask_for_rest()).flatten() {
            self.effects.push_back(Effect::Call { call });
        }
    }

    /// Queues each task that has become ready at the slot with the earliest estimated finish, in order of falling upward rank.
    fn queue_new_tasks(&mut self) {
        let is_new = |task: &Candidate| match self.devices.queued_at(task.rank.2, task.offer.node) {
            // Its estimates may have changed, so that it has to leave the queue.
            Some((slot, _)) => !self.may_run(&task.offer, self.slots.by_kind().kind(slot)),
            None => true,
        };
        let mut new: Vec<Candidate> = self.candidates().filter(is_new).collect();
        new.sort_by_key(|task| (Reverse(task.offer.upward_rank), task.place()));
        for Candidate { rank, offer, .. } in new {
            self.devices.dequeue(rank.2, offer.node);
            let now = self.clock.now();
            let able = self.slots.open().filter_map(|slot| {
                let kind = self.slots.by_kind().kind(slot);
                let time = offer.time_on(kind);
                let end = self.devices.planned_until(slot, now).saturating_add(time);
                self.may_run(&offer, kind).then_some((end, slot, time))
            });
            // Only a task that is too large for every device has no slot. It runs when nothing else does.
            if let Some((_, slot, time)) = able.min() {
                self.devices.enqueue(rank.2, offer.node, slot, time, now);
            }
        }
    }

    fn grant_slot(&mut self, slot: SlotId, task: &Candidate) {
        let lease = task.rank.2;
        if self.buckets.change(lease, |held| held.grant(task.demand)).is_none() {
            return;
        }
        self.memory.pin_inputs(&task.demand);
        self.slots.take_slot(slot, lease, takes(&task.demand));
        self.devices.start(slot, lease, task.offer.node);
        match self.slots.by_kind().kind(slot) {
            SlotKind::Core => self.prefetches.start_on_core(task.id()),
            SlotKind::Accelerator => self.prefetches.start(slot, task.id(), task.offer.device_bytes),
        }
        self.memory.record_needed(self.needed_bytes());
        self.effects.push_back(Effect::Grant { lease, slot, node: task.offer.node });
    }

    /// Grants the next task of a bucket, because nothing runs and nothing is admitted: on a core, or on an accelerator if it needs
    /// one.
    pub(super) fn grant_in_order(&mut self, lease: LeaseId) {
        let next = self.buckets.get(lease).and_then(BucketEntry::demand).and_then(|demand| demand.next);
        let is_next = |task: &Candidate| task.rank.2 == lease && Some(task.offer.node) == next;
        let Some(task) = self.candidates().find(is_next) else { return };
        let is_core = self.may_run(&task.offer, SlotKind::Core);
        let kind = if is_core { SlotKind::Core } else { SlotKind::Accelerator };
        let slot = self.slots.free_slots().find(|slot| self.slots.by_kind().kind(*slot) == kind);
        if let Some(slot) = slot.or_else(|| self.slots.free_slots().next()) {
            self.grant_slot(slot, &task);
        }
    }

    /// Counts the buckets that a worker with accelerators lacks: for its choice, and for the buckets that wait for others.
    pub(super) fn missing_buckets(&self) -> u32 {
        let slots = self.slots.count() as u64;
        let of_slots =
            (slots * BUCKETS_PER_TWO_SLOTS).div_ceil(2).max(slots + u64::from(self.requests.window()));
        let wanted = self.devices.max_buckets().map_or(of_slots, u64::from);
        let waits = |held: &BucketEntry| {
            held.demand().is_some_and(|demand| demand.ready == 0 && (demand.resolving || demand.tail.waits))
        };
        let held = self.buckets.iter().filter(|(_, held)| !waits(held)).count() as u64;
        u32::try_from(wanted.saturating_sub(held)).unwrap_or(u32::MAX)
    }
}
