//! One worker: picks the next task, its slot and its memory reservation, and requests more buckets.
//!
//! Events: a bucket arrives, a stage sends its demand, a slot becomes free, a bucket ends, memory has been freed,
//! the manager answers a sync, the worker must stop. Slots go to later stages first and then in the plan's order,
//! as far as memory admits them (`admission`): bytes held and reserved never exceed the budget, and started buckets
//! can always be finished.
//!
//! At most two requests are open at the manager (`request`): one for as many buckets as slots are idle, and one for a bucket
//! of a later stage, so that the stored outputs of finished instances are read and released soon.
//!
//! With a spill tier (`state/memory`), regions that no running bucket reads can be spilled before a task is refused.
//!
//! A worker may have a time limit (`time_limit`): tasks that would not finish by then are not started, and their instances
//! are returned.
//!
//! Grants, demands and messages cross. A grant names its task and stays valid until the stage has received it. A demand
//! sent before does not undo the grant. Before a task runs out of order because nothing else can, the worker syncs with
//! the manager, so that all pending messages have arrived.
//!
//! With accelerators (`devices`), buckets offer several ready tasks each, and a policy (`policy`) picks the task of each slot.
//!
//! `state` has the contexts of the state, each with private fields. `effect` lists the effects.

mod admission;
mod devices;
mod effect;
mod policy;
mod prefetch;
mod replica;
mod request;
mod state;
mod tail;
mod time_limit;

use crate::memory_model::{BucketDemand, MemoryBudget};
use crate::message::GrantReason;
use crate::{BucketId, LeaseId, PlanId, SlotId};
use admission::{Admission, takes};
pub use effect::Effect;
pub use policy::{SchedulePolicy, UnknownPolicy, WorkerSlots};
use state::{
    BucketEntry, Buckets, Devices, Downloads, ManagerSync, Memory, Prefetches, Requests, Slots, Studies, Tail,
};
use std::collections::VecDeque;
use time_limit::Clock;

/// State machine of a worker: slots, memory, and the stages that compete for them.
#[derive(Debug)]
pub struct Worker {
    slots: Slots,
    buckets: Buckets,
    memory: Memory,
    requests: Requests,
    studies: Studies,
    sync: ManagerSync,
    clock: Clock,
    tail: Tail,
    devices: Devices,
    prefetches: Prefetches,
    downloads: Downloads,
    stopping: bool,
    has_left: bool,
    effects: VecDeque<Effect>,
}

impl Worker {
    /// Creates a worker that runs up to `slots` tasks at once within `budget`. It requests its first buckets at once. A plain
    /// number counts cores.
    #[must_use]
    pub fn new(slots: impl Into<WorkerSlots>, budget: MemoryBudget) -> Self {
        let mut worker = Self {
            slots: Slots::of(slots.into()),
            buckets: Buckets::default(),
            memory: Memory::of(budget),
            requests: Requests::default(),
            studies: Studies::default(),
            sync: ManagerSync::default(),
            clock: Clock::default(),
            tail: Tail::default(),
            devices: Devices::default(),
            prefetches: Prefetches::default(),
            downloads: Downloads::default(),
            stopping: false,
            has_left: false,
            effects: VecDeque::new(),
        };
        worker.balance();
        worker
    }

    /// Requests `window` buckets beyond the idle slots, so that they wait on the worker instead of at the manager.
    #[must_use]
    pub fn with_window(mut self, window: u32) -> Self {
        self.requests.set_window(window);
        self.balance();
        self
    }

    /// Adds a study with its number of stages and its minimum memory. Each of several studies can be
    /// finished one task at a time, and all of them together with the sum of their minimums.
    pub fn handle_study(&mut self, study: PlanId, stages: u32, min_bytes: u64) {
        self.studies.add(study, stages, min_bytes);
        self.memory.set_min_bytes(self.studies.min_bytes());
    }

    /// Removes a study: the manager will send nothing more of it.
    pub fn handle_study_finished(&mut self, study: PlanId) {
        self.studies.remove(study);
        self.memory.set_min_bytes(self.studies.min_bytes());
        self.balance();
    }

    /// Handles a new connection to the manager: requests over the old one were not received, or their answers are
    /// lost.
    pub fn handle_connected(&mut self) {
        self.requests.reset();
        self.sync.cancel();
        self.sync.clear_rest();
        self.tail.reset();
        self.balance();
    }

    /// Starts draining: sends no further requests and finishes the buckets it has.
    pub fn handle_drain(&mut self) {
        self.requests.drain();
    }

    /// Adds a bucket of a stage, which may answer a request.
    /// [`handle_demand`](Self::handle_demand) delivers its demand.
    pub fn handle_assigned(&mut self, lease: LeaseId, stage: u32, bucket: BucketId, reason: GrantReason) {
        self.requests.record_grant(reason);
        self.sync.clear_rest();
        self.buckets.add(lease, stage, bucket);
        self.balance();
    }

    /// Handles the demand of a stage, which sends it when it has begun and after every grant.
    pub fn handle_demand(&mut self, lease: LeaseId, demand: BucketDemand) {
        self.buckets.change(lease, |held| held.update(demand));
        self.balance();
    }

    /// Updates the bytes of a bucket's stage inputs that are in memory and the bytes that are missing. The
    /// demand of its stage carried both. Until the stage begins, other buckets may load inputs, or storage may
    /// spill them.
    pub fn handle_inputs(&mut self, lease: LeaseId, here_bytes: u64, missing_bytes: u64) {
        self.buckets.change(lease, |held| held.update_inputs(here_bytes, missing_bytes));
    }

    /// Frees the slot of a task and handles the demand of its stage.
    pub fn handle_slot_free(&mut self, slot: SlotId, lease: LeaseId, demand: BucketDemand) {
        self.slots.release(slot);
        self.prefetches.end(slot);
        self.handle_task_ended(lease, demand);
    }

    fn handle_task_ended(&mut self, lease: LeaseId, demand: BucketDemand) {
        self.tail.clear_refusal();
        self.buckets.change(lease, BucketEntry::clear_return);
        self.handle_demand(lease, demand);
    }

    /// Removes the finished bucket of this lease.
    pub fn handle_bucket_finished(&mut self, lease: LeaseId) {
        self.buckets.remove(lease);
        self.devices.remove(lease);
        self.prefetches.remove(lease);
        self.tail.answer(lease);
        self.balance();
    }

    /// Updates the bytes of regions in this worker's storage. Call it before the event that changed them, or on its own.
    /// The demands report the bytes that buckets hold besides.
    pub fn handle_stored(&mut self, bytes: u64) {
        if self.memory.set_stored(bytes) {
            self.balance();
        }
    }

    /// Updates the resident bytes of the processes that run external operations. They take a part of the budget, except for the
    /// minimum memory of the studies. Call it before [`handle_stored`](Self::handle_stored), which may grant tasks.
    pub fn handle_processes(&mut self, bytes: u64) {
        self.memory.set_processes(bytes);
    }

    /// Updates the stored bytes that can be spilled, since no running bucket reads them, and the free bytes of the spill
    /// tier. Call it before [`handle_stored`](Self::handle_stored), which may grant tasks.
    pub fn handle_spillable(&mut self, movable_bytes: u64, free_bytes: u64) {
        self.memory.set_spillable(movable_bytes, free_bytes);
    }

    /// Handles the completion of [`MakeRoom`](Effect::MakeRoom), after storage has reported its new size.
    /// `bytes` have left memory. The new size does not show them, since other regions may have arrived
    /// meanwhile.
    pub fn handle_memory_freed(&mut self, bytes: u64) {
        self.memory.end_free(bytes);
        self.balance();
    }

    /// Returns whether a task of the bucket has been started: its inputs must stay in memory.
    #[must_use]
    pub fn is_started(&self, lease: LeaseId) -> bool {
        self.buckets.get(lease).is_some_and(BucketEntry::is_started)
    }

    /// Handles the manager's answer to a [`Call`](Effect::Call): no message is pending. If nothing is admitted even now, the
    /// next task in order that fits runs regardless of its forecast. If none fits, the estimates were too low,
    /// and one task runs beyond the budget to keep the study going.
    pub fn handle_sync_ack(&mut self, call: u64) {
        if self.sync.record_answer(call) {
            self.balance_after(true);
        } else if self.sync.record_rest(call) {
            self.balance();
        }
    }

    /// Returns the leases with a started task.
    pub fn started(&self) -> impl Iterator<Item = LeaseId> {
        self.buckets.started().map(|(rank, _)| rank.2)
    }

    /// Starts no further task. [`Effect::Leave`] follows when none runs.
    pub fn handle_stop(&mut self) {
        self.stopping = true;
        self.balance();
    }

    /// Returns the next effect, in order. `None` if none is pending.
    pub fn poll_effect(&mut self) -> Option<Effect> {
        self.effects.pop_front()
    }

    /// Counts the leases of this worker.
    #[must_use]
    pub fn leases(&self) -> usize {
        self.buckets.len()
    }

    /// Returns whether a slot is idle: a bucket that arrives now need not wait for one.
    #[must_use]
    pub fn has_free_slot(&self) -> bool {
        self.slots.free() > 0
    }

    /// Counts tasks that have a slot, or whose outputs are being downloaded.
    #[must_use]
    pub fn running(&self) -> usize {
        self.slots.running() + self.downloads.len()
    }

    /// Returns the bytes held and reserved, as far as this state machine knows them.
    #[must_use]
    pub fn needed_bytes(&self) -> u64 {
        self.held_bytes().saturating_add(self.reserved_bytes())
    }

    /// Returns the maximum of bytes held and reserved at once.
    #[must_use]
    pub fn peak_bytes(&self) -> u64 {
        self.memory.peak_bytes()
    }

    fn balance(&mut self) {
        self.balance_after(false);
    }

    /// Grants free slots to ready tasks that memory admits, requests buckets, and syncs if nothing runs then.
    /// After the `echo` of such a sync, admits tasks in order.
    fn balance_after(&mut self, echo: bool) {
        if self.stopping {
            if self.running() == 0 && !self.has_left {
                self.has_left = true;
                self.effects.push_back(Effect::Leave);
            }
            return;
        }
        self.return_late();
        let has_accelerators = self.slots.by_kind().accelerators > 0;
        if has_accelerators {
            self.grant_by_policy();
            self.hint_next_tasks();
        }
        let mut waits = false;
        while !has_accelerators && self.slots.free() > 0 && !waits {
            match self.admitted() {
                Some(Admission::Runs(lease)) if self.waits_for_longer(lease) => waits = true,
                Some(Admission::Runs(lease)) => self.grant(lease),
                Some(Admission::Needs { lease, bytes }) => {
                    // Storage answers later, and at most one such request is pending.
                    self.ask_for_room(lease, bytes);
                    break;
                }
                None => break,
            }
        }
        self.share(waits);
        // The answer of the manager or of the directory brings an event.
        if waits {
            return;
        }
        let asks = self.request();
        if has_accelerators {
            self.ask_for_rest();
        }
        // A running task or a missing demand brings an event that balances again.
        let ready = self.first_ready().filter(|_| self.running() == 0 && self.buckets.without_demand() == 0);
        match ready {
            // Other tasks run or none is ready, so the answer to an earlier sync must not force one.
            None => self.sync.cancel(),
            // The effects of the pending request for memory are still to come.
            Some(_) if self.memory.is_freeing() => {}
            Some(first) if echo => {
                match self.admit_in_order(first) {
                    Admission::Runs(lease) if has_accelerators => self.grant_in_order(lease),
                    Admission::Runs(lease) => self.grant(lease),
                    Admission::Needs { lease, bytes } => self.ask_for_room(lease, bytes),
                }
                self.request();
            }
            // The bucket just requested would arrive after the answer to an earlier sync.
            Some(_) if asks || !self.sync.is_pending() => {
                let call = self.sync.call();
                self.effects.push_back(Effect::Call { call });
            }
            Some(_) => {}
        }
    }

    fn grant(&mut self, lease: LeaseId) {
        let Some(demand) = self.buckets.get(lease).and_then(BucketEntry::demand) else { return };
        let Some(node) = demand.next else { return };
        self.buckets.change(lease, |held| held.grant(demand));
        self.memory.pin_inputs(&demand);
        let Some(slot) = self.slots.take(lease, takes(&demand)) else { return };
        self.memory.record_needed(self.needed_bytes());
        self.effects.push_back(Effect::Grant { lease, slot, node });
    }

    fn ask_for_room(&mut self, lease: LeaseId, bytes: u64) {
        self.memory.request_free();
        self.effects.push_back(Effect::MakeRoom { bytes, lease });
    }
}
