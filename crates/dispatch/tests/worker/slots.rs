//! Slots of a worker with enough memory, under stages that compete for them. Slots are granted one at a time
//! and never idle beside a ready task, and the worker requests buckets exactly when slots stay free.
//! `admission.rs` tests workers with little memory.

use pleach_dispatch::memory_model::{BucketDemand, MemoryBudget};
use pleach_dispatch::message::GrantReason;
use pleach_dispatch::stage::NodeId;
use pleach_dispatch::worker::{Effect, Worker};
use pleach_dispatch::{BucketId, LeaseId, PlanId, SlotId};
use proptest::collection::vec;
use proptest::prelude::*;
use std::collections::{BTreeMap, VecDeque};

/// A bucket as the shell sees it: its ready and running tasks, and those that become ready as others end.
#[derive(Clone, Debug)]
struct Bucket {
    stage: u32,
    ready: u32,
    running: u32,
    /// Number of tasks that become ready with each of the next ended ones.
    brings: VecDeque<u32>,
    /// Its stage has sent a demand.
    announced: bool,
    /// Number of started tasks.
    started: u32,
}

impl Bucket {
    /// Counts one task as ended.
    fn end_task(&mut self) {
        self.running -= 1;
        self.ready += self.brings.pop_front().unwrap_or(0);
        if self.ready == 0 && self.running == 0 {
            // A bucket with remaining tasks always has a ready or a running one.
            self.ready = self.brings.drain(..).sum();
        }
    }

    fn demand(&self) -> BucketDemand {
        let next = (self.ready > 0).then_some(NodeId(self.started));
        let (heard, started) = (u64::from(self.started), self.started > 0);
        BucketDemand { heard, ready: self.ready, next, started, ..BucketDemand::default() }
    }

    fn is_over(&self) -> bool {
        self.announced && self.ready == 0 && self.running == 0
    }
}

const STAGES: u32 = 4;

/// Returns the bucket of a lease. Their numbers differ, so that the order of buckets is not that of leases.
fn number_of(lease: LeaseId) -> BucketId {
    BucketId((lease.0 as u32 * 7 + 3) % 32)
}

/// A worker, its buckets, and the tasks in its slots.
struct Shell {
    worker: Worker,
    slots: u32,
    /// Buckets that are still at the manager.
    waiting: VecDeque<Bucket>,
    asked: u32,
    /// A bucket of a later stage than this one was requested as well.
    asked_after: Option<u32>,
    next_lease: u64,
    buckets: BTreeMap<LeaseId, Bucket>,
    running: BTreeMap<SlotId, LeaseId>,
    ended: u32,
}

impl Shell {
    fn new(slots: u32, waiting: Vec<Bucket>) -> Self {
        let mut worker = Worker::new(slots, MemoryBudget::UNLIMITED);
        worker.handle_study(PlanId::first_round(0), STAGES, 0);
        let waiting = waiting.into();
        let (buckets, running) = (BTreeMap::new(), BTreeMap::new());
        let mut shell = Self {
            worker,
            slots,
            waiting,
            asked: 0,
            asked_after: None,
            next_lease: 0,
            buckets,
            running,
            ended: 0,
        };
        shell.perform();
        shell
    }

    /// Delivers a requested bucket, preferably for the request for a later stage.
    fn assign(&mut self) {
        let suits = |bucket: &Bucket| self.asked_after.is_some_and(|after| after < bucket.stage);
        let (bucket, later) = match self.waiting.iter().position(suits) {
            Some(number) => (self.waiting.remove(number), true),
            None if self.asked > 0 => (self.waiting.pop_front(), false),
            None => return,
        };
        let Some(bucket) = bucket else { return };
        let lease = LeaseId(self.next_lease);
        self.next_lease += 1;
        if later {
            self.asked_after = None;
        } else {
            self.asked -= 1;
        }
        self.worker.handle_assigned(
            lease,
            bucket.stage,
            number_of(lease),
            if later { GrantReason::LaterRequest } else { GrantReason::Request },
        );
        self.buckets.insert(lease, bucket);
        self.perform();
    }

    /// Delivers the first demand of a bucket: its inputs have arrived.
    fn announce(&mut self, which: usize) {
        let silent: Vec<LeaseId> = self.silent().collect();
        if silent.is_empty() {
            return;
        }
        let lease = silent[which % silent.len()];
        let bucket = self.buckets.get_mut(&lease).expect("held");
        bucket.announced = true;
        self.worker.handle_demand(lease, bucket.demand());
        self.perform();
    }

    /// Ends a bucket before its first demand: its inputs are unavailable.
    fn give_up(&mut self, which: usize) {
        let silent: Vec<LeaseId> = self.silent().collect();
        if silent.is_empty() {
            return;
        }
        let lease = silent[which % silent.len()];
        self.buckets.remove(&lease);
        self.worker.handle_bucket_finished(lease);
        self.perform();
    }

    fn end_task(&mut self, which: usize) {
        if self.running.is_empty() {
            return;
        }
        let (&slot, &lease) = self.running.iter().nth(which % self.running.len()).expect("within");
        self.running.remove(&slot);
        self.ended += 1;
        let bucket = self.buckets.get_mut(&lease).expect("held");
        bucket.end_task();
        self.worker.handle_slot_free(slot, lease, bucket.demand());
        self.perform();
        if self.buckets[&lease].is_over() {
            self.buckets.remove(&lease);
            self.worker.handle_bucket_finished(lease);
            self.perform();
        }
    }

    fn silent(&self) -> impl Iterator<Item = LeaseId> {
        self.buckets.iter().filter(|(_, bucket)| !bucket.announced).map(|(lease, _)| *lease)
    }

    fn free(&self) -> u32 {
        self.slots - self.running.len() as u32
    }

    fn perform(&mut self) {
        while let Some(effect) = self.worker.poll_effect() {
            match effect {
                Effect::Grant { lease, slot, node } => {
                    assert!(slot.0 < self.slots);
                    assert!(self.running.insert(slot, lease).is_none(), "{slot} is granted twice");
                    let ready =
                        self.buckets.iter().filter(|(_, bucket)| bucket.announced && bucket.ready > 0);
                    let first = ready
                        .min_by_key(|(lease, bucket)| (std::cmp::Reverse(bucket.stage), number_of(**lease)));
                    assert_eq!(first.map(|(first, _)| *first), Some(lease), "whose turn it is");
                    let bucket = self.buckets.get_mut(&lease).expect("held");
                    assert_eq!(Some(node), bucket.demand().next);
                    bucket.ready -= 1;
                    bucket.running += 1;
                    bucket.started += 1;
                    self.worker.handle_demand(lease, bucket.demand());
                }
                Effect::Request { buckets, after: Some(after) } => {
                    assert_eq!(buckets, 1);
                    assert!(self.buckets.values().any(|bucket| bucket.stage <= after) && after + 1 < STAGES);
                    // It replaces an earlier request, which must have been for fewer stages.
                    assert!(
                        self.asked_after.replace(after).is_none_or(|before| after < before),
                        "asks twice"
                    );
                }
                Effect::Request { buckets, after: None } => {
                    assert!(buckets > 0);
                    self.asked += buckets;
                    // Requested buckets and buckets without a demand never outnumber the free slots.
                    assert!(self.asked + self.silent().count() as u32 <= self.free(), "hoards buckets");
                }
                effect => panic!("{effect:?}"),
            }
        }
        assert_eq!(self.worker.leases(), self.buckets.len());
        let idle =
            self.buckets.values().any(|bucket| bucket.announced && bucket.ready > 0) && self.free() > 0;
        assert!(!idle, "a slot is idle beside a ready task");
        assert!(self.asked + self.silent().count() as u32 >= self.free(), "a slot is idle and nobody asks");
        let later =
            self.buckets.values().map(|bucket| bucket.stage).min().is_none_or(|stage| stage + 1 >= STAGES);
        let waits = self.buckets.values().any(|bucket| bucket.started == 0);
        assert!(later || waits || self.asked_after.is_some(), "nobody asks for what would let go of memory");
    }
}

prop_compose! {
    fn bucket()(stage in 0u32..4, ready in 1u32..4, brings in vec(0u32..4, 0..6)) -> Bucket {
        Bucket { stage, ready, running: 0, brings: brings.into(), announced: false, started: 0 }
    }
}

#[derive(Clone, Copy, Debug)]
enum Event {
    Assign,
    Announce(usize),
    GiveUp(usize),
    End(usize),
}

fn events() -> impl Strategy<Value = Event> {
    prop_oneof![
        4 => Just(Event::Assign),
        4 => any::<usize>().prop_map(Event::Announce),
        1 => any::<usize>().prop_map(Event::GiveUp),
        8 => any::<usize>().prop_map(Event::End),
    ]
}

proptest! {
    #[test]
    fn slots_are_granted_once_and_none_is_idle(
        slots in 1u32..6,
        buckets in vec(bucket(), 0..12),
        events in vec(events(), 0..100),
    ) {
        let mut shell = Shell::new(slots, buckets);
        for event in events {
            match event {
                Event::Assign => shell.assign(),
                Event::Announce(which) => shell.announce(which),
                Event::GiveUp(which) => shell.give_up(which),
                Event::End(which) => shell.end_task(which),
            }
        }
        // No starvation: as long as tasks end and buckets arrive, all tasks run.
        let most = 12 * 30;
        for _ in 0..most {
            shell.assign();
            shell.announce(0);
            shell.end_task(0);
        }
        prop_assert!(shell.waiting.is_empty() && shell.buckets.is_empty());
        prop_assert_eq!(shell.free(), slots);
        prop_assert_eq!(shell.asked, slots);
    }

    #[test]
    fn every_task_of_every_bucket_runs_once(slots in 1u32..6, buckets in vec(bucket(), 0..12), order in vec(any::<usize>(), 50)) {
        let tasks: u32 = buckets.iter().map(|bucket| bucket.ready + bucket.brings.iter().sum::<u32>()).sum();
        let mut shell = Shell::new(slots, buckets);
        let mut order = order.into_iter().cycle();
        while !(shell.waiting.is_empty() && shell.buckets.is_empty()) {
            shell.assign();
            shell.announce(0);
            shell.end_task(order.next().expect("endless"));
        }
        prop_assert_eq!(shell.ended, tasks);
    }
}

fn effects(worker: &mut Worker) -> Vec<Effect> {
    std::iter::from_fn(|| worker.poll_effect()).collect()
}

fn request(buckets: u32, after: Option<u32>) -> Effect {
    Effect::Request { buckets, after }
}

#[test]
fn bucket_without_a_demand_keeps_its_slot() {
    let demand = |heard| BucketDemand {
        heard,
        ready: 1,
        next: Some(NodeId(0)),
        started: heard > 0,
        ..BucketDemand::default()
    };
    let grant = |lease| Effect::Grant { lease: LeaseId(lease), slot: SlotId(0), node: NodeId(0) };
    let mut worker = Worker::new(2, MemoryBudget::UNLIMITED);
    worker.handle_study(PlanId::first_round(0), 1, 0);
    assert_eq!(effects(&mut worker), [request(2, None)]);
    worker.handle_assigned(LeaseId(0), 0, BucketId(0), GrantReason::Request);
    worker.handle_demand(LeaseId(0), demand(0));
    assert_eq!(effects(&mut worker), [grant(0)]);
    worker.handle_assigned(LeaseId(1), 0, BucketId(1), GrantReason::Request);
    // The first bucket runs task after task while the second one prepares: the worker requests no third one.
    for heard in 1..4 {
        worker.handle_slot_free(SlotId(0), LeaseId(0), demand(heard));
        assert_eq!(effects(&mut worker), [grant(0)]);
    }
    // The second bucket cannot run.
    worker.handle_bucket_finished(LeaseId(1));
    assert_eq!(effects(&mut worker), [request(1, None)]);
}

#[test]
fn short_bucket_answers_no_request() {
    let mut worker = Worker::new(2, MemoryBudget::UNLIMITED);
    worker.handle_study(PlanId::first_round(0), 2, 0);
    assert_eq!(effects(&mut worker), [request(2, None)]);
    worker.handle_assigned(LeaseId(0), 1, BucketId(0), GrantReason::Request);
    for lease in 1..4 {
        worker.handle_assigned(LeaseId(lease), 1, BucketId(lease as u32), GrantReason::Short);
    }
    // The second bucket of the request is still to come: once all others have ended, one more is missing.
    (0..4).for_each(|lease| worker.handle_bucket_finished(LeaseId(lease)));
    assert_eq!(effects(&mut worker), [request(1, None)]);
}

#[test]
fn one_bucket_of_a_later_stage_is_asked_for_at_a_time() {
    let demand = |heard, ready| {
        let next = (ready > 0).then_some(NodeId(heard as u32));
        BucketDemand { heard, ready, next, started: heard > 0, ..BucketDemand::default() }
    };
    let grant = |lease, node| Effect::Grant { lease: LeaseId(lease), slot: SlotId(0), node: NodeId(node) };
    let mut worker = Worker::new(1, MemoryBudget::UNLIMITED);
    worker.handle_study(PlanId::first_round(0), 3, 0);
    assert_eq!(effects(&mut worker), [request(1, None)]);
    worker.handle_assigned(LeaseId(0), 0, BucketId(0), GrantReason::Request);
    assert_eq!(effects(&mut worker), [request(1, Some(0))]);
    worker.handle_demand(LeaseId(0), demand(0, 1));
    assert_eq!(effects(&mut worker), [grant(0, 0)]);
    // The bucket of stage 1 waits. A second one of its stage would only wait as well, so the worker requests a
    // later stage.
    worker.handle_assigned(LeaseId(1), 1, BucketId(1), GrantReason::LaterRequest);
    assert_eq!(effects(&mut worker), [request(1, Some(1))]);
    worker.handle_demand(LeaseId(1), demand(0, 1));
    worker.handle_demand(LeaseId(0), demand(1, 1));
    assert_eq!(effects(&mut worker), []);
    // The bucket of stage 1 starts before the first one continues. A request for its stage replaces the pending
    // one.
    worker.handle_slot_free(SlotId(0), LeaseId(0), demand(1, 2));
    assert_eq!(effects(&mut worker), [grant(1, 0), request(1, Some(0))]);
    // No stage follows the last one.
    worker.handle_assigned(LeaseId(2), 2, BucketId(2), GrantReason::LaterRequest);
    assert_eq!(effects(&mut worker), []);
    worker.handle_slot_free(SlotId(0), LeaseId(1), demand(1, 0));
    worker.handle_demand(LeaseId(2), demand(0, 1));
    // Between the two events, the first bucket got the slot.
    assert_eq!(effects(&mut worker), [grant(0, 1)]);
}

#[test]
fn replica_takes_no_memory_that_tasks_need() {
    let budget = MemoryBudget { bytes: 100, ..MemoryBudget::UNLIMITED };
    let mut worker = Worker::new(1, budget);
    worker.handle_study(PlanId::first_round(0), 1, 40);
    worker.handle_stored(30);
    // The minimum memory of the study stays free.
    assert!(!worker.handle_copy(31));
    assert!(worker.handle_copy(30));
    assert_eq!(worker.needed_bytes(), 60);
    assert!(!worker.handle_copy(1), "what is on its way counts");
    worker.handle_stored(60);
    worker.handle_copy_finished(30);
    assert_eq!(worker.needed_bytes(), 60);
    assert!(!worker.handle_copy(1));
    worker.handle_stored(30);
    assert!(worker.handle_copy(30));
}

#[test]
fn replicas_of_an_impossible_size_are_refused() {
    let mut worker = Worker::new(1, MemoryBudget::UNLIMITED);
    assert!(worker.handle_copy(u64::MAX - 1));
    assert!(!worker.handle_copy(2), "the sum has no number");
    assert!(worker.handle_copy(1));
    worker.handle_copy_finished(u64::MAX - 1);
    worker.handle_copy_finished(1);
    assert_eq!(worker.needed_bytes(), 0);
}
