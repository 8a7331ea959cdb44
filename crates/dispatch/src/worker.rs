//! One worker: which stage may run a task next, in which slot and within which memory, and when to ask for more work.
//!
//! Events: a bucket arrives, a stage says what it could use, a slot falls free, a bucket is over, memory has been let
//! go of, the manager answers a call, the worker is to stop. Slots go to later stages first and then in the plan's order,
//! as far as memory admits them (`admission`): bytes held and reserved never exceed the budget, and what has been started
//! can always be finished.
//!
//! Two requests may stand at the manager (`request`): one for as many buckets as slots are idle, and one for a bucket of a
//! later stage, so that what finished instances leave in storage is read and let go of soon.
//!
//! Where there is room below memory (`below`), what no bucket under way reads can be moved there before a task is refused.
//!
//! A worker may have to end at a known time (`end`): what would not be finished by then is not begun, and goes back.
//!
//! Grants, demands and messages cross. A grant names its task and holds whatever happens until it is heard; a demand that
//! was said before does not undo it. And before anything runs out of turn because nothing else can, the manager is asked
//! to say all that it has to say.

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

/// What the shell is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// The stage under this lease may run one task in this slot; it then says what it could use next.
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
        /// Only of later stages than this one: they let go of memory, and are worth a slot as soon as one is free. Such
        /// a request takes the place of the one before, if that has not been answered.
        after: Option<u32>,
    },
    /// Nothing runs and nothing is admitted. Ask the manager to answer this call once everything it has to say is
    /// said, and give the answer to [`Worker::handle_sync_ack`].
    Call {
        /// The call's number.
        call: u64,
    },
    /// Storage has to let go of so many bytes, but not of what this lease reads; then call [`Worker::handle_memory_freed`].
    MakeRoom {
        /// Bytes that are to leave memory, at least.
        bytes: u64,
        /// The lease that they are for.
        lease: LeaseId,
    },
    /// What comes next under this lease would not be finished before the worker has to end: hand back what is not under way.
    HandBack {
        /// The lease.
        lease: LeaseId,
    },
    /// Told to stop, and no task runs any more: leave.
    Leave,
}

/// Whose turn it is: later stages first, then the plan's order, which is not that in which leases come.
type Rank = (Reverse<u32>, BucketId, LeaseId);

/// A bucket on this worker.
#[derive(Debug, Default)]
struct Held {
    /// What its stage said last, with a grant since taken into account; `None`: it has not spoken yet.
    demand: Option<BucketDemand>,
    /// Grants given to it.
    granted: u64,
    /// It is to hand back what it has not begun.
    goes_back: bool,
}

impl Held {
    fn hear(&mut self, demand: BucketDemand) {
        self.demand = Some(match self.demand {
            // Said before the last grant was heard: what was foreseen with it holds, only some of it is done by now.
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

    /// A task of it has been started.
    fn is_under_way(&self) -> bool {
        self.demand.is_some_and(|demand| demand.started)
    }
}

/// Until a stage speaks again after a grant, what it said of the time after is how things are.
fn after_grant(demand: BucketDemand) -> BucketDemand {
    BucketDemand { ready: 0, next: None, next_bytes: 0, started: true, now: demand.then, ..demand }
}

/// Slots, memory, and the stages that compete for them.
#[derive(Debug)]
pub struct Worker {
    free: Vec<SlotId>,
    budget: MemoryBudget,
    leases: BTreeMap<Rank, Held>,
    rank_of: BTreeMap<LeaseId, Rank>,
    /// Tasks that run: the lease, and the bytes reserved.
    running: BTreeMap<SlotId, (LeaseId, u64)>,
    /// Regions in this worker's storage.
    stored_bytes: u64,
    /// Second copies of others' regions that are on their way here.
    coming_bytes: u64,
    /// Room that there is, or can be made, in storage.
    below: SpillRoom,
    peak_bytes: u64,
    /// Buckets asked for, of whichever stage, and not yet there.
    asked: u32,
    /// A bucket of a later stage than this has been asked for, and is not yet there.
    asked_after: Option<u32>,
    last_stage: u32,
    /// Stages and least bytes of the studies there are.
    studies: BTreeMap<PlanId, (u32, u64)>,
    /// Buckets asked for beyond those that idle slots take: their inputs are brought while others compute.
    window: u32,
    /// Nothing more is asked for.
    draining: bool,
    /// When the last event was, and when this worker has to end, since whatever the shell counts from.
    now: Duration,
    end: Option<Duration>,
    calls: u64,
    /// The number of a call that has no answer yet.
    called: Option<u64>,
    stopping: bool,
    left: bool,
    effects: VecDeque<Effect>,
}

impl Worker {
    /// A worker that can run `slots` tasks at once within `budget`; it asks for its first buckets at once.
    #[must_use]
    pub fn new(slots: u32, budget: MemoryBudget) -> Self {
        // Handed out from the end, so that the first task runs in slot 0.
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

    /// Has it ask for `window` buckets beyond what its idle slots take: they wait here, and not at the manager.
    #[must_use]
    pub fn with_window(mut self, window: u32) -> Self {
        self.window = window;
        self.balance();
        self
    }

    /// The manager has said how many stages a study has, and what it takes at least. Of several studies each can be
    /// brought to its end one task at a time, and all of them with what that takes together.
    pub fn handle_study(&mut self, study: PlanId, stages: u32, least_bytes: u64) {
        self.studies.insert(study, (stages, least_bytes));
        self.sum_up_studies();
    }

    /// There will be nothing more of a study.
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

    /// The link to the manager is a new one: what was asked for over the old one has not been heard, or the answer is
    /// lost.
    pub fn handle_connected(&mut self) {
        (self.asked, self.asked_after, self.called) = (0, None, None);
        self.balance();
    }

    /// Nothing more is asked for; what is at hand goes on.
    pub fn handle_drain(&mut self) {
        self.draining = true;
    }

    /// A bucket of a stage has arrived, in answer to the request for a `later` one or to another one; what it
    /// could use is told by [`handle_demand`](Self::handle_demand).
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

    /// The stage says what it could use: when it has begun, and after every grant.
    pub fn handle_demand(&mut self, lease: LeaseId, demand: BucketDemand) {
        if let Some(held) = self.held(lease) {
            held.hear(demand);
        }
        self.balance();
    }

    /// Of the stage inputs that a bucket reads, so many bytes are in memory and so many are not. Its stage has said so in its
    /// demand; until it begins, other buckets may bring them, or they may leave.
    pub fn handle_inputs(&mut self, lease: LeaseId, here_bytes: u64, missing_bytes: u64) {
        if let Some(demand) = self.held(lease).and_then(|held| held.demand.as_mut())
            && !demand.started
        {
            (demand.here_bytes, demand.load_bytes) = (here_bytes, missing_bytes);
        }
    }

    /// A task has left its slot, and its stage says what it could use now.
    pub fn handle_slot_free(&mut self, slot: SlotId, lease: LeaseId, demand: BucketDemand) {
        let reserved = self.running.remove(&slot);
        debug_assert!(reserved.is_some(), "{slot} was not taken");
        self.free.push(slot);
        if let Some(held) = self.held(lease) {
            held.goes_back = false;
        }
        self.handle_demand(lease, demand);
    }

    /// The bucket under this lease is over.
    pub fn handle_bucket_finished(&mut self, lease: LeaseId) {
        if let Some(rank) = self.rank_of.remove(&lease) {
            self.leases.remove(&rank);
        }
        self.balance();
    }

    /// So many bytes of regions are in this worker's storage now; said before the event that changed it, or on its own.
    /// What buckets hold besides is known from their demands.
    pub fn handle_stored(&mut self, bytes: u64) {
        let less = bytes < self.stored_bytes;
        self.stored_bytes = bytes;
        if less {
            self.balance();
        }
    }

    /// Of what is in storage, so many bytes could leave memory, since no bucket under way reads them; and so many bytes can
    /// still be stored below it. Said before [`handle_stored`](Self::handle_stored), after which something may be granted.
    pub fn handle_spillable(&mut self, movable_bytes: u64, free_bytes: u64) {
        self.below.movable_bytes = movable_bytes;
        self.below.free_bytes = free_bytes;
    }

    /// Storage has done what could be done of [`MakeRoom`](Effect::MakeRoom), and has said what it holds now: so many bytes
    /// have left it. That others may have come meanwhile says nothing of what is still possible.
    pub fn handle_memory_freed(&mut self, bytes: u64) {
        if self.below.is_asked {
            self.below.is_asked = false;
            // What did not help once does not help again, until something else has changed.
            self.below.in_vain = (bytes == 0).then_some(self.stored_bytes);
        }
        self.balance();
    }

    /// Whether something of a bucket has been started: what it reads has to stay in memory.
    #[must_use]
    pub fn is_under_way(&self, lease: LeaseId) -> bool {
        let held = self.rank_of.get(&lease).and_then(|rank| self.leases.get(rank));
        held.is_some_and(Held::is_under_way)
    }

    /// The manager's answer to a [`Call`](Effect::Call): nothing more is on its way. If nothing is admitted even now, the
    /// next task in turn runs that fits, whatever is foreseen; and if none fits, the estimates have promised too much,
    /// and one runs beyond the budget rather than never.
    pub fn handle_sync_ack(&mut self, call: u64) {
        if self.called == Some(call) {
            self.called = None;
            self.balance_after(true);
        }
    }

    /// Nothing more is started; [`Effect::Leave`] follows when nothing runs any more.
    pub fn handle_stop(&mut self) {
        self.stopping = true;
        self.balance();
    }

    /// The next thing to do, in order.
    pub fn poll_effect(&mut self) -> Option<Effect> {
        self.effects.pop_front()
    }

    /// Leases held.
    #[must_use]
    pub fn leases(&self) -> usize {
        self.leases.len()
    }

    /// Whether a slot waits for a task: a bucket that comes now does not have to wait for one.
    #[must_use]
    pub fn has_free_slot(&self) -> bool {
        !self.free.is_empty()
    }

    /// Tasks that have a slot.
    #[must_use]
    pub fn running(&self) -> usize {
        self.running.len()
    }

    /// Bytes held and reserved, as this machine knows them.
    #[must_use]
    pub fn needed_bytes(&self) -> u64 {
        self.held_bytes().saturating_add(self.reserved_bytes())
    }

    /// The most bytes ever held and reserved at once.
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

    /// Grants free slots to ready tasks that memory admits, asks for buckets, and calls when that leaves nothing running;
    /// after an `echo` of such a call, goes by turns.
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
            // What follows from that is still to come.
            Some(_) if self.below.is_asked => {}
            Some(first) if echo => {
                match self.admit_in_order(first) {
                    Admission::Runs(lease) => self.grant(lease),
                    Admission::Needs { lease, bytes } => self.ask_for_room(lease, bytes),
                }
                self.request();
            }
            // What has just been asked for would come after the answer to an earlier call.
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
