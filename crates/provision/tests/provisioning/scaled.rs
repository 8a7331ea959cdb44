//! Scaled pools: numbers for studies, missing workers, refusals, other parties and ends.

use pleach_provision::{
    ProvisionPool, ScaleAnswer, ScaleEffect, ScaleInput, ScaleObservation, ScaleRemark, ScaledPool,
};
use proptest::prelude::*;

fn settings(min: u32, max: u32) -> ProvisionPool {
    ProvisionPool {
        name: "spot".to_owned(),
        prefix: String::new(),
        min,
        max,
        startup_seconds: 100.0,
        idle_seconds: 60.0,
        list_lag_seconds: 0.0,
    }
}

/// A cluster with a machine: it keeps the number, and creates as many workers as it has room for.
struct World {
    machine: ScaledPool,
    now: f64,
    replicas: u32,
    room: u32,
    serving: u32,
    refusal: Option<String>,
    remarks: Vec<ScaleRemark>,
    /// Numbers that were set, with their time.
    set: Vec<(f64, u32)>,
    reads: u32,
    /// Whether another party sets numbers that the machine does not know at once.
    has_others: bool,
    /// Whether the driver watches the workers.
    is_watched: bool,
}

impl World {
    fn new(min: u32, max: u32) -> Self {
        Self {
            machine: ScaledPool::new(settings(min, max), 0.0),
            now: 0.0,
            replicas: 0,
            room: u32::MAX,
            serving: 0,
            refusal: None,
            remarks: Vec::new(),
            set: Vec::new(),
            reads: 0,
            has_others: false,
            is_watched: false,
        }
    }

    fn execute(&mut self, effects: Vec<ScaleEffect>) {
        for effect in effects {
            let answer = match (effect, self.refusal.clone()) {
                (ScaleEffect::Remark(remark), _) => {
                    self.remarks.push(remark);
                    continue;
                }
                (ScaleEffect::Observe, Some(reason)) => ScaleAnswer::NotObserved { reason },
                (ScaleEffect::Observe, None) => {
                    self.reads += 1;
                    let obstacle = (self.replicas > self.room).then(|| "Insufficient cpu".to_owned());
                    let (replicas, existing) = (self.replicas, self.replicas.min(self.room));
                    ScaleAnswer::Observed(ScaleObservation {
                        replicas,
                        existing,
                        obstacle,
                        is_watched: self.is_watched,
                    })
                }
                (ScaleEffect::Set { .. }, Some(reason)) => ScaleAnswer::NotSet { reason },
                (ScaleEffect::Set { replicas, is_less }, None) => {
                    assert!(self.has_others || is_less == (replicas < self.replicas));
                    self.set.push((self.now, replicas));
                    let before = std::mem::replace(&mut self.replicas, replicas);
                    ScaleAnswer::Set { before, replicas }
                }
            };
            let effects = self.machine.answer(self.now, answer);
            self.execute(effects);
        }
    }

    /// Lets 2 s pass. Workers join one at a time.
    fn step(&mut self, desired: Option<u32>) {
        self.now += 2.0;
        let possible = self.replicas.min(self.room);
        self.serving = if self.serving > possible { possible } else { possible.min(self.serving + 1) };
        let has_studies = desired.is_some();
        let input =
            ScaleInput { now_seconds: self.now, desired, serving: self.serving, draining: 0, has_studies };
        let effects = self.machine.step(input);
        self.execute(effects);
    }

    fn steps(&mut self, seconds: f64, desired: Option<u32>) {
        let end = self.now + seconds;
        while self.now < end {
            self.step(desired);
        }
    }

    /// Kills the manager at its next request and starts it again.
    fn kill(&mut self, is_executed: bool, min: u32) {
        self.now += 2.0;
        let input = ScaleInput {
            now_seconds: self.now,
            desired: Some(5),
            serving: self.serving,
            draining: 0,
            has_studies: true,
        };
        for effect in self.machine.step(input) {
            if let ScaleEffect::Set { replicas, .. } = effect
                && is_executed
            {
                self.set.push((self.now, replicas));
                self.replicas = replicas;
            }
        }
        self.machine = ScaledPool::new(settings(min, 8), self.now);
    }

    fn has_no_capacity(&self) -> bool {
        self.machine.counts().has_no_capacity
    }
}

/// A minute without changes is read once, also while workers are missing. A change is read at once, at most once a second.
#[test]
fn watched_workers_are_read_at_changes() {
    for (is_watched, reads) in [(true, 3), (false, 12)] {
        let mut world = World::new(0, 8);
        (world.is_watched, world.room) = (is_watched, 2);
        // The first read, the one after the number was set, and one a minute.
        world.steps(70.0, Some(3));
        assert_eq!(world.replicas, 3);
        assert!(if is_watched { world.reads <= reads } else { world.reads >= reads }, "{}", world.reads);
    }
    let mut world = World::new(0, 8);
    world.is_watched = true;
    world.steps(20.0, Some(3));
    let reads = world.reads;
    for passed in [0.25, 0.5, 0.75, 1.25] {
        let effects = world.machine.observe_soon(world.now + passed);
        world.execute(effects.into_iter().collect());
    }
    assert_eq!(world.reads, reads + 2);
    // Changes during the second are read with a later step.
    let effects = world.machine.observe_soon(world.now + 1.5);
    assert_eq!(effects, None);
    world.steps(4.0, Some(3));
    assert_eq!(world.reads, reads + 2 + 1);
    // A refused read is repeated after its time, and not at each change.
    world.refusal = Some("403".to_owned());
    world.now += 2.0;
    let effects = world.machine.observe_soon(world.now);
    world.execute(effects.into_iter().collect());
    assert_eq!(world.machine.observe_soon(world.now + 5.0), None);
}

#[test]
fn number_follows_studies_and_is_the_minimum_after_the_idle_time() {
    let mut world = World::new(1, 8);
    world.steps(20.0, Some(5));
    assert_eq!(world.replicas, 5);
    world.steps(20.0, Some(20));
    assert_eq!(world.replicas, 8, "the maximum");
    assert_eq!(world.machine.counts().joined, 8);
    world.steps(56.0, None);
    assert_eq!(world.replicas, 8, "the next study may follow");
    world.steps(10.0, None);
    assert_eq!(world.replicas, 1);
    assert_eq!(world.set.iter().map(|(_, number)| *number).collect::<Vec<_>>(), [5, 8, 1]);
    // Without changes the cluster is asked once a minute.
    let reads = world.reads;
    world.steps(600.0, None);
    assert!((9..=12).contains(&(world.reads - reads)), "{}", world.reads - reads);
}

#[test]
fn pool_without_capacity_keeps_its_workers_and_is_tried_again() {
    let mut world = World::new(0, 8);
    world.room = 2;
    world.steps(290.0, Some(6));
    assert!(world.replicas == 6 && !world.has_no_capacity());
    world.steps(20.0, Some(6));
    assert!(world.has_no_capacity());
    assert_eq!(world.replicas, 2, "pods that do not come are withdrawn");
    let reason = "4 of 6 workers have not joined within 300 s: Insufficient cpu".to_owned();
    assert!(world.remarks.contains(&ScaleRemark::NoCapacity { pool: "spot".to_owned(), reason }));
    world.room = 8;
    world.steps(290.0, Some(6));
    assert_eq!(world.replicas, 2);
    world.steps(40.0, Some(6));
    assert!(world.replicas == 6 && !world.has_no_capacity());
    assert_eq!(world.machine.counts().failed_starts, 1);
}

#[test]
fn refusals_are_repeated_every_half_minute_and_exhaust_the_pool() {
    let mut world = World::new(0, 8);
    world.steps(4.0, None);
    world.refusal = Some("403: forbidden".to_owned());
    world.steps(100.0, Some(3));
    let refused = |world: &World| {
        world.remarks.iter().filter(|remark| matches!(remark, ScaleRemark::NotSet { .. })).count()
    };
    assert_eq!((refused(&world), world.has_no_capacity()), (3, true));
    world.refusal = None;
    world.steps(320.0, Some(3));
    assert_eq!((world.replicas, refused(&world)), (3, 3));
}

#[test]
fn unknown_numbers_are_not_set() {
    let mut world = World::new(0, 8);
    (world.refusal, world.replicas) = (Some("401: Unauthorized".to_owned()), 4);
    world.steps(300.0, None);
    assert_eq!((world.set.len(), world.remarks.len()), (0, 1), "{:?}", world.remarks);
    world.refusal = None;
    // The work of a study is unknown after a restart: the number stays.
    let effects = world.machine.step(ScaleInput {
        now_seconds: world.now,
        desired: None,
        serving: 4,
        draining: 0,
        has_studies: true,
    });
    world.execute(effects);
    world.steps(100.0, Some(4));
    assert_eq!((world.set.len(), world.machine.replicas()), (0, Some(4)));
}

#[test]
fn numbers_of_other_parties_are_reported_and_set_again() {
    let mut world = World::new(0, 8);
    world.steps(60.0, Some(4));
    world.replicas = 7;
    world.steps(80.0, Some(4));
    assert_eq!(world.replicas, 4);
    let changed = |remark: &&ScaleRemark| matches!(remark, ScaleRemark::ChangedElsewhere { found: 7, .. });
    assert_eq!(world.remarks.iter().filter(changed).count(), 1);
}

#[test]
fn manager_that_ends_sets_the_minimum() {
    let mut world = World::new(1, 8);
    world.steps(60.0, Some(4));
    let effects = world.machine.end(world.now);
    assert!(!world.machine.has_ended());
    world.execute(effects);
    assert!(world.machine.has_ended());
    assert_eq!(world.replicas, 1);
    // A number below the minimum stays.
    let mut world = World::new(2, 8);
    world.steps(4.0, Some(2));
    (world.replicas, world.serving) = (0, 0);
    world.steps(80.0, None);
    let mut idle = World::new(2, 8);
    let effects = idle.machine.end(0.0);
    idle.execute(effects);
    assert!(idle.machine.has_ended() && idle.set.is_empty());
}

#[derive(Clone, Debug)]
enum Event {
    Study(u32, u8),
    Idle(u8),
    Room(u32),
    Refuse(bool),
    Elsewhere(u32),
    /// The manager is killed at its next request, before or after the cluster executed it.
    Kill(bool),
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        (0..12_u32, any::<u8>()).prop_map(|(desired, steps)| Event::Study(desired, steps)),
        any::<u8>().prop_map(Event::Idle),
        (0..12_u32).prop_map(Event::Room),
        any::<bool>().prop_map(Event::Refuse),
        (0..12_u32).prop_map(Event::Elsewhere),
        any::<bool>().prop_map(Event::Kill),
    ]
}

proptest! {
    /// Whatever happens, the number stays within its limits, and it is the minimum some time after the last study.
    #[test]
    fn nothing_is_left_running(events in proptest::collection::vec(event(), 1..40), min in 0..3_u32) {
        let mut world = World::new(min, 8);
        world.has_others = true;
        for event in events {
            match event {
                Event::Study(desired, steps) => (0..steps).for_each(|_| world.step(Some(desired))),
                Event::Idle(steps) => (0..steps).for_each(|_| world.step(None)),
                Event::Room(room) => world.room = room,
                Event::Refuse(is_refused) => {
                    world.refusal = is_refused.then(|| "503: try again".to_owned());
                }
                Event::Elsewhere(number) => world.replicas = number,
                Event::Kill(is_executed) => world.kill(is_executed, min),
            }
        }
        (world.refusal, world.room) = (None, u32::MAX);
        world.steps(800.0, None);
        prop_assert_eq!(world.replicas, min);
        prop_assert!(world.set.iter().all(|(_, number)| (min..=8).contains(number)));
    }
}
