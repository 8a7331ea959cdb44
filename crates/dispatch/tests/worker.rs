//! A worker's slots under stages that compete for them: granted one at a time, never idle beside a ready task,
//! and more work asked for exactly when slots stay free.

use pleach_dispatch::worker::{Effect, Worker};
use pleach_dispatch::{LeaseId, SlotId};
use proptest::collection::vec;
use proptest::prelude::*;
use std::collections::{BTreeMap, VecDeque};

/// A bucket as the shell sees it: how many tasks become ready with each one that ends, and those left to run.
#[derive(Clone, Debug)]
struct Bucket {
    stage: u32,
    ready: u32,
    running: u32,
    /// Ready tasks that the next ended ones will bring.
    brings: VecDeque<u32>,
    /// Its inputs are here, and its first tasks announced.
    announced: bool,
}

impl Bucket {
    /// Counts one task as ended.
    fn end_task(&mut self) {
        self.running -= 1;
        self.ready += self.brings.pop_front().unwrap_or(0);
        if self.ready == 0 && self.running == 0 {
            // The bucket's tree goes on as long as it has nodes.
            self.ready = self.brings.drain(..).sum();
        }
    }

    fn is_over(&self) -> bool {
        self.announced && self.ready == 0 && self.running == 0
    }
}

/// A worker, its buckets, and the tasks in its slots.
struct Shell {
    worker: Worker,
    slots: u32,
    /// Buckets that the manager still has.
    waiting: VecDeque<Bucket>,
    asked: u32,
    next_lease: u64,
    buckets: BTreeMap<LeaseId, Bucket>,
    running: BTreeMap<SlotId, LeaseId>,
    ended: u32,
}

impl Shell {
    fn new(slots: u32, waiting: Vec<Bucket>) -> Self {
        let worker = Worker::new(slots);
        let waiting = waiting.into();
        let (buckets, running) = (BTreeMap::new(), BTreeMap::new());
        let mut shell = Self { worker, slots, waiting, asked: 0, next_lease: 0, buckets, running, ended: 0 };
        shell.perform();
        shell
    }

    /// The manager sends a bucket that was asked for.
    fn assign(&mut self) {
        if self.asked == 0 {
            return;
        }
        let Some(bucket) = self.waiting.pop_front() else { return };
        let lease = LeaseId(self.next_lease);
        self.next_lease += 1;
        self.asked -= 1;
        self.worker.handle_assigned(lease, bucket.stage);
        self.buckets.insert(lease, bucket);
        self.perform();
    }

    /// The inputs of some bucket have come.
    fn announce(&mut self, which: usize) {
        let silent: Vec<LeaseId> = self.silent().collect();
        if silent.is_empty() {
            return;
        }
        let lease = silent[which % silent.len()];
        let bucket = self.buckets.get_mut(&lease).expect("held");
        bucket.announced = true;
        self.worker.handle_ready(lease, bucket.ready);
        self.perform();
    }

    /// The inputs of some bucket cannot be had: it is over before it began.
    fn give_up(&mut self, which: usize) {
        let silent: Vec<LeaseId> = self.silent().collect();
        if silent.is_empty() {
            return;
        }
        let lease = silent[which % silent.len()];
        self.buckets.remove(&lease);
        self.worker.handle_stage_over(lease);
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
        self.worker.handle_slot_free(slot, lease, bucket.ready);
        self.perform();
        if self.buckets[&lease].is_over() {
            self.buckets.remove(&lease);
            self.worker.handle_stage_over(lease);
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
                Effect::Grant { lease, slot } => {
                    assert!(slot.0 < self.slots);
                    assert!(self.running.insert(slot, lease).is_none(), "{slot} is granted twice");
                    let ready =
                        self.buckets.iter().filter(|(_, bucket)| bucket.announced && bucket.ready > 0);
                    let first =
                        ready.min_by_key(|(lease, bucket)| (std::cmp::Reverse(bucket.stage), **lease));
                    assert_eq!(first.map(|(first, _)| *first), Some(lease), "whose turn it is");
                    let bucket = self.buckets.get_mut(&lease).expect("held");
                    bucket.ready -= 1;
                    bucket.running += 1;
                }
                Effect::Request { buckets } => {
                    assert!(buckets > 0);
                    self.asked += buckets;
                    // Never more than slots that nothing is on the way for.
                    assert!(self.asked + self.silent().count() as u32 <= self.free(), "hoards buckets");
                }
            }
        }
        assert_eq!(self.worker.leases(), self.buckets.len());
        let idle =
            self.buckets.values().any(|bucket| bucket.announced && bucket.ready > 0) && self.free() > 0;
        assert!(!idle, "a slot is idle beside a ready task");
        assert!(self.asked + self.silent().count() as u32 >= self.free(), "a slot is idle and nobody asks");
    }
}

prop_compose! {
    fn bucket()(stage in 0u32..4, ready in 1u32..4, brings in vec(0u32..4, 0..6)) -> Bucket {
        Bucket { stage, ready, running: 0, brings: brings.into(), announced: false }
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
        // No starvation: as long as tasks end and buckets come, everything is run.
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

#[test]
fn a_bucket_whose_inputs_are_on_the_way_holds_its_slot() {
    let effects =
        |worker: &mut Worker| -> Vec<Effect> { std::iter::from_fn(|| worker.poll_effect()).collect() };
    let mut worker = Worker::new(2);
    assert_eq!(effects(&mut worker), [Effect::Request { buckets: 2 }]);
    worker.handle_assigned(LeaseId(0), 0);
    worker.handle_ready(LeaseId(0), 1);
    assert_eq!(effects(&mut worker), [Effect::Grant { lease: LeaseId(0), slot: SlotId(0) }]);
    worker.handle_assigned(LeaseId(1), 0);
    // The first bucket runs task after task while the second one's inputs travel: no third one is asked for.
    for _ in 0..3 {
        worker.handle_slot_free(SlotId(0), LeaseId(0), 1);
        assert_eq!(effects(&mut worker), [Effect::Grant { lease: LeaseId(0), slot: SlotId(0) }]);
    }
    // They turn out to be lost.
    worker.handle_stage_over(LeaseId(1));
    assert_eq!(effects(&mut worker), [Effect::Request { buckets: 1 }]);
}
