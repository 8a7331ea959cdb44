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
//! With a spill tier (`spill`), regions that no running bucket reads can be spilled before a task is refused.
//!
//! A worker may have a time limit (`time_limit`): tasks that would not finish by then are not started, and their instances
//! are returned.
//!
//! Grants, demands and messages cross. A grant names its task and stays valid until the stage has received it. A demand
//! sent before does not undo the grant. Before a task runs out of order because nothing else can, the worker syncs with
//! the manager, so that all pending messages have arrived.

mod admission;
mod request;
mod spill;
mod time_limit;

use crate::memory_model::{BucketDemand, MemoryBudget, MemoryForecast};
use crate::stage::NodeId;
use crate::{BucketId, LeaseId, PlanId, SlotId};
use admission::{Admission, takes};
use spill::SpillRoom;
use std::cmp::Reverse;
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

/// Effects for the shell to perform.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// The stage under this lease may run one task in this slot. The stage then sends its next demand.
    Grant {
        /// The stage's lease.
        lease: LeaseId,
        /// The slot.
        slot: SlotId,
        /// The task.
        node: NodeId,
    },
    /// Ask the manager for this many more buckets.
    Request {
        /// Buckets.
        buckets: u32,
        /// Only of later stages than this one: they release memory and deserve a slot as soon as one is free. Such
        /// a request replaces the one before, if that has not been answered.
        after: Option<u32>,
    },
    /// Nothing runs and nothing is admitted. Ask the manager to answer this sync after all its pending messages,
    /// and pass the answer to [`Worker::handle_sync_ack`].
    Call {
        /// The sync's number.
        call: u64,
    },
    /// Storage must free this many bytes, but none that this lease reads. Then call [`Worker::handle_memory_freed`].
    MakeRoom {
        /// Minimum of bytes to free.
        bytes: u64,
        /// The lease that needs them.
        lease: LeaseId,
    },
    /// The next task under this lease would not finish before the time limit: return its unstarted instances.
    HandBack {
        /// The lease.
        lease: LeaseId,
    },
    /// The worker is stopping, and no task runs: leave.
    Leave,
}

/// Admission order: later stages first, then the plan's order, which differs from the order of arrival.
type Rank = (Reverse<u32>, BucketId, LeaseId);

/// A bucket on this worker.
#[derive(Debug, Default)]
struct Held {
    /// Last demand of its stage, updated by later grants. `None` until the stage has sent one.
    demand: Option<BucketDemand>,
    /// Grants given to it.
    granted: u64,
    /// Its unstarted instances must be returned.
    goes_back: bool,
}

impl Held {
    fn hear(&mut self, demand: BucketDemand) {
        self.demand = Some(match self.demand {
            // The stage sent this demand before it received the last grant: the earlier forecast holds, less the bytes
            // that are held by now.
            Some(before) if demand.heard < self.granted => BucketDemand {
                ready: 0,
                next: None,
                next_bytes: 0,
                started: true,
                now: MemoryForecast {
                    growth_bytes: before
                        .now
                        .growth_bytes
                        .saturating_add(before.held_bytes)
                        .saturating_sub(demand.held_bytes),
                    finish_bytes: before
                        .now
                        .finish_bytes
                        .saturating_add(before.held_bytes)
                        .saturating_sub(demand.held_bytes),
                },
                ..demand
            },
            _ => demand,
        });
    }

    /// Returns whether one of its tasks has been started.
    fn is_under_way(&self) -> bool {
        self.demand.is_some_and(|demand| demand.started)
    }
}

/// Returns the demand after a grant: its forecast for that time holds until the stage sends another demand.
fn after_grant(demand: BucketDemand) -> BucketDemand {
    BucketDemand { ready: 0, next: None, next_bytes: 0, started: true, now: demand.then, ..demand }
}

/// State machine of a worker: slots, memory, and the stages that compete for them.
#[derive(Debug)]
pub struct Worker {
    free: Vec<SlotId>,
    budget: MemoryBudget,
    leases: BTreeMap<Rank, Held>,
    rank_of: BTreeMap<LeaseId, Rank>,
    /// Running tasks: the lease and the reserved bytes.
    running: BTreeMap<SlotId, (LeaseId, u64)>,
    /// Bytes of regions in this worker's storage.
    stored_bytes: u64,
    /// Bytes of replicas of other workers' regions that are being fetched.
    coming_bytes: u64,
    /// Free bytes in the spill tier, and bytes that can be spilled to it.
    below: SpillRoom,
    peak_bytes: u64,
    /// Buckets of any stage that were requested and have not arrived.
    asked: u32,
    /// A bucket of a later stage than this was requested and has not arrived.
    asked_after: Option<u32>,
    last_stage: u32,
    /// Number of stages and minimum memory of each known study.
    studies: BTreeMap<PlanId, (u32, u64)>,
    /// Buckets requested beyond the idle slots: their inputs are prefetched while others compute.
    window: u32,
    /// No further requests are sent.
    draining: bool,
    /// Time of the last event, and the time limit of this worker, on the shell's clock.
    now: Duration,
    end: Option<Duration>,
    calls: u64,
    /// The number of an unanswered sync.
    called: Option<u64>,
    stopping: bool,
    left: bool,
    effects: VecDeque<Effect>,
}

impl Worker {
    /// Creates a worker that runs up to `slots` tasks at once within `budget`. It requests its first buckets at once.
    #[must_use]
    pub fn new(slots: u32, budget: MemoryBudget) -> Self {
        // Popped from the end, so that the first task runs in slot 0.
        let free = (0..slots).rev().map(SlotId).collect();
        let mut worker = Self {
            free,
            budget,
            leases: BTreeMap::new(),
            rank_of: BTreeMap::new(),
            running: BTreeMap::new(),
            stored_bytes: 0,
            coming_bytes: 0,
            below: SpillRoom::default(),
            peak_bytes: 0,
            asked: 0,
            asked_after: None,
            last_stage: u32::MAX,
            studies: BTreeMap::new(),
            window: 0,
            draining: false,
            now: Duration::ZERO,
            end: None,
            calls: 0,
            called: None,
            stopping: false,
            left: false,
            effects: VecDeque::new(),
        };
        worker.balance();
        worker
    }

    /// Requests `window` buckets beyond the idle slots, so that they wait on the worker instead of at the manager.
    #[must_use]
    pub fn with_window(mut self, window: u32) -> Self {
        self.window = window;
        self.balance();
        self
    }

    /// Adds a study with its number of stages and its minimum memory. Each of several studies can be
    /// finished one task at a time, and all of them together with the sum of their minimums.
    pub fn handle_study(&mut self, study: PlanId, stages: u32, least_bytes: u64) {
        self.studies.insert(study, (stages, least_bytes));
        self.sum_up_studies();
    }

    /// Removes a study: the manager will send nothing more of it.
    pub fn handle_study_over(&mut self, study: PlanId) {
        self.studies.remove(&study);
        self.sum_up_studies();
        self.balance();
    }

    fn sum_up_studies(&mut self) {
        let last = self.studies.values().map(|(stages, _)| stages.saturating_sub(1)).max();
        self.last_stage = last.unwrap_or(u32::MAX);
        self.budget.least_bytes =
            self.studies.values().fold(0, |sum, (_, least_bytes)| sum.saturating_add(*least_bytes));
    }

    /// Handles a new connection to the manager: requests over the old one were not received, or their answers are
    /// lost.
    pub fn handle_connected(&mut self) {
        (self.asked, self.asked_after, self.called) = (0, None, None);
        self.balance();
    }

    /// Starts draining: sends no further requests and finishes the buckets it has.
    pub fn handle_drain(&mut self) {
        self.draining = true;
    }

    /// Adds a bucket of a stage, in answer to the request for a `later` one or to the other request.
    /// [`handle_demand`](Self::handle_demand) delivers its demand.
    pub fn handle_assigned(&mut self, lease: LeaseId, stage: u32, bucket: BucketId, later: bool) {
        if later {
            self.asked_after = None;
        } else {
            self.asked = self.asked.saturating_sub(1);
        }
        let rank = (Reverse(stage), bucket, lease);
        self.rank_of.insert(lease, rank);
        self.leases.insert(rank, Held::default());
        self.balance();
    }

    /// Handles the demand of a stage, which sends it when it has begun and after every grant.
    pub fn handle_demand(&mut self, lease: LeaseId, demand: BucketDemand) {
        if let Some(held) = self.held(lease) {
            held.hear(demand);
        }
        self.balance();
    }

    /// Updates the bytes of a bucket's stage inputs that are in memory and the bytes that are missing. The
    /// demand of its stage carried both. Until the stage begins, other buckets may load inputs, or storage may
    /// spill them.
    pub fn handle_inputs(&mut self, lease: LeaseId, here_bytes: u64, missing_bytes: u64) {
        if let Some(demand) = self.held(lease).and_then(|held| held.demand.as_mut())
            && !demand.started
        {
            (demand.here_bytes, demand.load_bytes) = (here_bytes, missing_bytes);
        }
    }

    /// Frees the slot of a task and handles the demand of its stage.
    pub fn handle_slot_free(&mut self, slot: SlotId, lease: LeaseId, demand: BucketDemand) {
        let reserved = self.running.remove(&slot);
        debug_assert!(reserved.is_some(), "{slot} was not taken");
        self.free.push(slot);
        if let Some(held) = self.held(lease) {
            held.goes_back = false;
        }
        self.handle_demand(lease, demand);
    }

    /// Removes the finished bucket of this lease.
    pub fn handle_bucket_finished(&mut self, lease: LeaseId) {
        if let Some(rank) = self.rank_of.remove(&lease) {
            self.leases.remove(&rank);
        }
        self.balance();
    }

    /// Updates the bytes of regions in this worker's storage. Call it before the event that changed them, or on its own.
    /// The demands report the bytes that buckets hold besides.
    pub fn handle_stored(&mut self, bytes: u64) {
        let less = bytes < self.stored_bytes;
        self.stored_bytes = bytes;
        if less {
            self.balance();
        }
    }

    /// Updates the stored bytes that can be spilled, since no running bucket reads them, and the free bytes of the spill
    /// tier. Call it before [`handle_stored`](Self::handle_stored), which may grant tasks.
    pub fn handle_spillable(&mut self, movable_bytes: u64, free_bytes: u64) {
        self.below.movable_bytes = movable_bytes;
        self.below.free_bytes = free_bytes;
    }

    /// Handles the completion of [`MakeRoom`](Effect::MakeRoom), after storage has reported its new size.
    /// `bytes` have left memory. The new size does not show them, since other regions may have arrived
    /// meanwhile.
    pub fn handle_memory_freed(&mut self, bytes: u64) {
        if self.below.is_asked {
            self.below.is_asked = false;
            // A request that freed nothing is not repeated until something else has changed.
            self.below.in_vain = (bytes == 0).then_some(self.stored_bytes);
        }
        self.balance();
    }

    /// Returns whether a task of the bucket has been started: its inputs must stay in memory.
    #[must_use]
    pub fn is_under_way(&self, lease: LeaseId) -> bool {
        let held = self.rank_of.get(&lease).and_then(|rank| self.leases.get(rank));
        held.is_some_and(Held::is_under_way)
    }

    /// Handles the manager's answer to a [`Call`](Effect::Call): no message is pending. If nothing is admitted even now, the
    /// next task in order that fits runs regardless of its forecast. If none fits, the estimates were too low,
    /// and one task runs beyond the budget to keep the study going.
    pub fn handle_sync_ack(&mut self, call: u64) {
        if self.called == Some(call) {
            self.called = None;
            self.balance_after(true);
        }
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
        self.leases.len()
    }

    /// Returns whether a slot is idle: a bucket that arrives now need not wait for one.
    #[must_use]
    pub fn has_free_slot(&self) -> bool {
        !self.free.is_empty()
    }

    /// Counts tasks that have a slot.
    #[must_use]
    pub fn running(&self) -> usize {
        self.running.len()
    }

    /// Returns the bytes held and reserved, as far as this state machine knows them.
    #[must_use]
    pub fn needed_bytes(&self) -> u64 {
        self.held_bytes().saturating_add(self.reserved_bytes())
    }

    /// Returns the maximum of bytes held and reserved at once.
    #[must_use]
    pub fn peak_bytes(&self) -> u64 {
        self.peak_bytes
    }

    fn held(&mut self, lease: LeaseId) -> Option<&mut Held> {
        self.leases.get_mut(self.rank_of.get(&lease)?)
    }

    fn balance(&mut self) {
        self.balance_after(false);
    }

    /// Grants free slots to ready tasks that memory admits, requests buckets, and syncs if nothing runs then.
    /// After the `echo` of such a sync, admits tasks in order.
    fn balance_after(&mut self, echo: bool) {
        if self.stopping {
            if self.running.is_empty() && !self.left {
                self.left = true;
                self.effects.push_back(Effect::Leave);
            }
            return;
        }
        self.return_late();
        while !self.free.is_empty() {
            match self.admitted() {
                Some(Admission::Runs(lease)) => self.grant(lease),
                Some(Admission::Needs { lease, bytes }) => {
                    self.ask_for_room(lease, bytes);
                    break;
                }
                None => break,
            }
        }
        let asks = self.request();
        let ready = self.first_ready().filter(|_| self.running.is_empty() && self.unspoken() == 0);
        match ready {
            None => self.called = None,
            // The effects of the pending request for memory are still to come.
            Some(_) if self.below.is_asked => {}
            Some(first) if echo => {
                match self.admit_in_order(first) {
                    Admission::Runs(lease) => self.grant(lease),
                    Admission::Needs { lease, bytes } => self.ask_for_room(lease, bytes),
                }
                self.request();
            }
            // The bucket just requested would arrive after the answer to an earlier sync.
            Some(_) if asks || self.called.is_none() => {
                self.calls += 1;
                self.called = Some(self.calls);
                self.effects.push_back(Effect::Call { call: self.calls });
            }
            Some(_) => {}
        }
    }

    fn grant(&mut self, lease: LeaseId) {
        let Some(held) = self.held(lease) else { return };
        let Some((demand, node)) = held.demand.and_then(|demand| Some((demand, demand.next?))) else {
            return;
        };
        held.granted += 1;
        held.demand = Some(after_grant(demand));
        self.below.movable_bytes = self.below.movable_for(&demand);
        let Some(slot) = self.free.pop() else { return };
        self.running.insert(slot, (lease, takes(&demand)));
        self.peak_bytes = self.peak_bytes.max(self.held_bytes().saturating_add(self.reserved_bytes()));
        self.effects.push_back(Effect::Grant { lease, slot, node });
    }

    fn ask_for_room(&mut self, lease: LeaseId, bytes: u64) {
        self.below.is_asked = true;
        self.effects.push_back(Effect::MakeRoom { bytes, lease });
    }

    fn unspoken(&self) -> usize {
        self.leases.values().filter(|held| held.demand.is_none()).count()
    }
}
