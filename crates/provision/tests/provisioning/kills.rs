//! Managers that are killed at every step of provisioning.

use crate::cloud::Faults;
use crate::random::Random;
use crate::world::{World, pool};

/// Desired workers that rise, fall and rise again.
fn desired(step: u32) -> [u32; 2] {
    match step {
        0..80 => [3, 1],
        80..160 => [1, 2],
        160..240 => [4, 0],
        _ => [0, 1],
    }
}

fn history(seed: u64, kill_after: Option<u64>, faults: Faults) -> World {
    let pools = vec![pool("spot", 4, 20.0), pool("cloud", 2, 60.0)];
    let mut world = World::new(seed, pools, faults);
    world.kill_after = kill_after;
    for step in 0..320 {
        world.step(&desired(step), true);
    }
    world.wind_down();
    world
}

/// `World` checks at each step: no name is started twice, each worker is in the journal, and no pool has more than its
/// maximum. `wind_down` checks that nothing runs at the end.
#[test]
fn manager_killed_at_every_effect_leaves_no_orphan_and_starts_none_twice() {
    let whole = history(7, None, Faults::default());
    assert!(whole.effects > 100, "{} effects", whole.effects);
    for point in 0..whole.effects {
        let world = history(7, Some(point), Faults::default());
        assert_eq!(world.kills, 1, "effect {point}");
    }
}

#[test]
fn manager_killed_at_random_points_beside_faults_leaves_no_orphan() {
    let mut random = Random(2026);
    let mut kills = 0;
    for seed in 0..150 {
        let faults = Faults {
            refuse: 0.1,
            hang: 0.1,
            garbage: 0.05,
            nothing: 0.05,
            fail: 0.1,
            stuck: 0.05,
            lose: 0.0005,
            lag_seconds: 10.0,
            ..Faults::default()
        };
        let pools = vec![pool("spot", 4, 20.0), pool("cloud", 2, 60.0)];
        let mut world = World::new(seed, pools, faults);
        world.kill_after = Some(random.word() % 40);
        for step in 0..320 {
            world.step(&desired(step), true);
            if world.is_up() && world.kill_after.is_none() && random.happens(0.05) {
                world.kill_after = Some(random.word() % 20);
            }
        }
        world.kill_after = None;
        world.cloud.faults = Faults::default();
        world.wind_down();
        kills += world.kills;
    }
    assert!(kills >= 300, "{kills} kills");
}

/// Adopted workers keep working: a restart starts no others.
#[test]
fn workers_survive_the_restart_of_the_manager() {
    let mut world = World::new(8, vec![pool("spot", 4, 20.0)], Faults::default());
    for step in 0..400 {
        if step == 100 {
            world.kill_after = Some(0);
        }
        world.step(&[4], true);
    }
    assert_eq!((world.kills, world.cloud.started.len()), (1, 4));
    assert_eq!(world.cloud.connected(world.now).len(), 4);
    world.wind_down();
}

/// The manager's orderly end without studies stops all workers, those whose start is being answered included.
#[test]
fn orderly_end_stops_all_workers() {
    for steps in 1..60 {
        let mut world = World::new(9, vec![pool("spot", 4, 20.0)], Faults::default());
        for _ in 0..steps {
            world.step(&[4], true);
        }
        let effects = world.provisioner.end(world.now);
        world.execute(effects);
        let started = world.cloud.started.len();
        world.wind_down();
        assert_eq!(world.cloud.started.len(), started, "no worker is started after the end");
    }
}
