//! The result directory: several real directories on a simulated network, and single exchanges of messages.

mod exchanges;
mod network;
mod planting;
mod random;
mod records;

use network::{Network, Storm};
use proptest::prelude::*;

const CALM: Storm =
    Storm { members: 5, tasks: 30, lost: 0, changes: 0, hangs: 0, stuck: 0, evicted: 0, planted: 0 };

const WILD: Storm =
    Storm { members: 6, tasks: 25, lost: 3, changes: 6, hangs: 2, stuck: 5, evicted: 30, planted: 0 };

/// Runs a seed twice. The order of hash maps differs between the two, and nothing else may.
fn run_twice(seed: u64, storm: Storm) -> Network {
    let (first, second) = (Network::run(seed, storm), Network::run(seed, storm));
    let differs = first.log.iter().zip(&second.log).position(|(a, b)| a != b);
    assert_eq!(differs.map(|line| (&first.log[line], &second.log[line])), None, "of seed {seed}");
    assert_eq!(first.log.len(), second.log.len());
    first
}

#[test]
fn each_task_runs_once_without_incidents() {
    for seed in 0..8 {
        let network = run_twice(seed, CALM);
        // Each of the tasks is wanted by five members. A failed run is not counted.
        assert_eq!(network.runs, CALM.tasks, "seed {seed}");
        assert_eq!(network.found, (CALM.members - 1) * CALM.tasks);
    }
}

#[test]
fn most_tasks_run_once_during_incidents() {
    let runs: u64 = (100..108).map(|seed| run_twice(seed, WILD).runs).sum();
    // Members, evictions, losses and hangs repeat some. Without the directory each of six members or more runs each.
    assert!(runs < 8 * WILD.tasks * 4, "{runs} runs of {} tasks", 8 * WILD.tasks);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn every_wait_is_bounded_and_every_task_is_done(
        seed in any::<u64>(),
        members in 1..9_u64,
        tasks in 1..30_u64,
        lost in 0..8_u64,
        changes in 0..10_u64,
        hangs in 0..4_u64,
        stuck in 0..12_u64,
        evicted in 0..60_u64,
        planted in 0..200_u64,
    ) {
        run_twice(seed, Storm { members, tasks, lost, changes, hangs, stuck, evicted, planted });
    }
}

/// A hang lasts longer than the change of members that follows it.
#[test]
fn members_change_during_a_hang() {
    run_twice(
        15_319_539_646_501_537_847,
        Storm { members: 2, tasks: 27, lost: 0, changes: 8, hangs: 2, stuck: 0, evicted: 0, planted: 0 },
    );
}
