//! Faults of drivers, one at a time and all together.

use crate::cloud::Faults;
use crate::world::{World, pool};
use pleach_provision::ProvisionRemark;
use proptest::prelude::*;

/// Wants 4 workers for an hour, and then none. Returns the world and whether 4 workers were connected at once.
fn hour(seed: u64, faults: Faults) -> (World, bool) {
    let mut world = World::new(seed, vec![pool("spot", 6, 40.0)], faults);
    world.is_strict = faults.twice == 0.0;
    let mut has_all = false;
    for _ in 0..1800 {
        world.step(&[4], true);
        has_all |= world.cloud.connected(world.now).len() >= 4;
    }
    world.cloud.faults = Faults { twice: world.cloud.faults.twice, ..Faults::default() };
    world.wind_down();
    (world, has_all)
}

#[test]
fn desired_workers_start_once_and_end_after_the_study() {
    let (world, has_all) = hour(1, Faults::default());
    assert!(has_all);
    assert_eq!((world.cloud.started.len(), world.most[0]), (4, 4));
    assert!(world.remarks.iter().all(|remark| !remark.is_warning()), "{:?}", world.remarks);
    // 4 workers for an hour, the idle time and a drain.
    assert!(world.cloud.paid_seconds <= 4.0 * (3600.0 + 60.0 + 120.0), "{}", world.cloud.paid_seconds);
}

#[test]
fn lost_worker_is_replaced() {
    let mut world = World::new(3, vec![pool("spot", 4, 40.0)], Faults::default());
    for step in 0..600 {
        world.step(&[4], true);
        assert!(step != 200 || world.cloud.kill_one());
    }
    assert_eq!((world.cloud.connected(world.now).len(), world.cloud.started.len()), (4, 5));
    world.wind_down();
}

/// No step sees the worker connected: its job is canceled a second after it has joined.
#[test]
fn worker_that_joins_and_leaves_between_two_steps_is_replaced_at_once() {
    let steps_to_replace = |is_announced: bool| {
        let mut world = World::new(3, vec![pool("spot", 4, 40.0)], Faults::default());
        while world.provisioner.counts(0).starting == 0 || world.cloud.workers.is_empty() {
            world.step(&[1], true);
        }
        let name = world.cloud.workers[0].name.clone();
        assert!(world.cloud.connected(world.now).is_empty() && world.cloud.kill_one());
        world.left.extend(is_announced.then_some(name));
        let mut steps = 0;
        while world.cloud.started.len() < 2 {
            world.step(&[1], true);
            steps += 1;
        }
        let is_failed = |remark: &ProvisionRemark| matches!(remark, ProvisionRemark::StartFailed { .. });
        assert_eq!(world.remarks.iter().any(is_failed), !is_announced, "{:?}", world.remarks);
        steps
    };
    assert_eq!(steps_to_replace(true), 1);
    assert!(steps_to_replace(false) > 10);
}

#[test]
fn pool_that_refuses_has_no_capacity_and_is_asked_rarely() {
    let (world, _) = hour(2, Faults { refuse: 1.0, ..Faults::default() });
    // 4 calls at once, then one after 5 s, 10 s, 300 s, 300 s, ….
    assert!((6..25).contains(&world.cloud.started.len()), "{}", world.cloud.started.len());
    assert!(world.remarks.iter().any(|remark| matches!(remark, ProvisionRemark::NoCapacity { .. })));
    let mut world = World::new(2, vec![pool("spot", 6, 40.0)], Faults { refuse: 1.0, ..Faults::default() });
    let mut was_exhausted = false;
    for _ in 0..60 {
        world.step(&[4], true);
        was_exhausted |= world.provisioner.counts(0).has_no_capacity;
    }
    assert!(was_exhausted);
    // Capacity comes back.
    world.cloud.faults = Faults::default();
    for _ in 0..400 {
        world.step(&[4], true);
    }
    assert!(!world.provisioner.counts(0).has_no_capacity);
    assert_eq!(world.cloud.connected(world.now).len(), 4);
}

#[test]
fn driver_that_starts_nothing_or_garbage_does_not_flood_the_pool() {
    for faults in [
        Faults { nothing: 1.0, ..Faults::default() },
        Faults { garbage: 1.0, ..Faults::default() },
        Faults { hang: 1.0, ..Faults::default() },
        Faults { stuck: 1.0, ..Faults::default() },
    ] {
        let (world, _) = hour(4, faults);
        assert!(world.cloud.started.len() < 40, "{faults:?}: {} starts", world.cloud.started.len());
        let has_failed = |remark: &ProvisionRemark| matches!(remark, ProvisionRemark::StartFailed { .. });
        assert!(world.remarks.iter().any(has_failed), "{faults:?}: {:?}", world.remarks);
    }
}

#[test]
fn second_worker_of_a_name_is_stopped() {
    let (world, has_all) = hour(5, Faults { twice: 1.0, ..Faults::default() });
    assert!(has_all);
    let doubles = world.remarks.iter().filter(|remark| matches!(remark, ProvisionRemark::Double { .. }));
    assert_eq!(doubles.count(), 4);
}

#[test]
fn listed_worker_that_the_journal_lacks_is_stopped() {
    let mut world = World::new(6, vec![pool("spot", 4, 40.0)], Faults::default());
    for _ in 0..100 {
        world.step(&[4], true);
    }
    // The journal is lost, and the manager starts without it.
    world.is_strict = false;
    world.journal.clear();
    world.kill_after = Some(0);
    while world.kills == 0 || !world.is_up() {
        world.step(&[4], true);
    }
    // The orphans count against the maximum until they have ended.
    for _ in 0..100 {
        world.step(&[4], true);
    }
    assert_eq!(world.cloud.connected(world.now).len(), 4);
    world.wind_down();
    let orphans = world.remarks.iter().filter(|remark| matches!(remark, ProvisionRemark::Orphan { .. }));
    assert_eq!(orphans.count(), 4);
}

/// Workers that no journal has and that are not connected are known from a list only.
#[test]
fn restarted_manager_starts_no_worker_before_a_list() {
    let faults = Faults { stuck: 1.0, ..Faults::default() };
    let mut world = World::new(6, vec![pool("spot", 4, 40.0)], faults);
    for _ in 0..20 {
        world.step(&[4], true);
    }
    assert_eq!(world.cloud.workers.len(), 4);
    world.cloud.faults = Faults::default();
    world.is_strict = false;
    world.journal.clear();
    world.kill_after = Some(0);
    // Each step checks that no more than 4 workers exist.
    for _ in 0..200 {
        world.step(&[4], true);
    }
    assert_eq!(world.cloud.connected(world.now).len(), 4);
    world.wind_down();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn nothing_is_left_after_any_faults(
        seed in any::<u64>(),
        [refuse, hang, garbage, nothing, twice] in prop::array::uniform5(0.0..0.2_f64),
        [fail, stuck] in prop::array::uniform2(0.0..0.4_f64),
        lose in 0.0..0.002_f64,
        lag_seconds in 0.0..20.0_f64,
    ) {
        hour(seed, Faults { refuse, hang, garbage, nothing, twice, fail, stuck, lose, lag_seconds });
    }
}
