//! Instances that workers have begun and return for others: the longest predicted path is granted first.

use crate::elastic::{NOTHING, alike, ask, done, effects, manager, tick};
use crate::plans::ids;
use crate::solo::STUDY;
use pleach_dispatch::manager::Manager;
use pleach_dispatch::plan::{ExecutionPlan, ReuseScope};
use pleach_dispatch::{LeaseId, WorkerId};
use std::time::Duration;

fn shared(buckets: &[&[u32]]) -> ExecutionPlan {
    ExecutionPlan { sharing: ReuseScope::Value, ..alike(buckets) }
}

fn query(manager: &mut Manager, worker: WorkerId, seconds: u64) -> Vec<String> {
    manager.handle_query(worker, Duration::from_secs(seconds));
    effects(manager)
}

fn returns(
    manager: &mut Manager,
    worker: WorkerId,
    lease: u64,
    instances: &[u32],
    seconds: u64,
) -> Vec<String> {
    let instances: Vec<_> = instances.iter().copied().map(pleach_dispatch::InstanceId).collect();
    assert!(manager.handle_spare(worker, STUDY, LeaseId(lease), &instances, Duration::from_secs(seconds)));
    effects(manager)
}

const REFUSED: [&str; 1] = ["QueryAnswer { worker: WorkerId(1), found: false }"];

#[test]
fn refused_query_collects_instances_for_later_ones() {
    let (mut manager, workers) = manager(shared(&[&[0, 1, 2, 3], &[4]]), 2);
    assert_eq!(ask(&mut manager, workers[0]), ["w0 <- 0 1 2 3 under 0"]);
    assert_eq!(ask(&mut manager, workers[1]), ["w1 <- 4 under 1"]);
    assert_eq!(tick(&mut manager, 1), NOTHING, "no worker is idle or queries");
    assert_eq!(query(&mut manager, workers[1], 1), REFUSED);
    // Each lease of another worker is asked once, until it answers.
    assert_eq!(tick(&mut manager, 2), ["share w0 0"]);
    assert_eq!(query(&mut manager, workers[1], 1), REFUSED);
    assert_eq!(tick(&mut manager, 3), NOTHING);
    assert_eq!(returns(&mut manager, workers[0], 0, &[2, 3], 4), NOTHING, "no worker waits");
    assert_eq!(query(&mut manager, workers[1], 4), REFUSED, "a path of 4 s is not longer");
    let found = "QueryAnswer { worker: WorkerId(1), found: true }";
    assert_eq!(query(&mut manager, workers[1], 1), ["w1 <- 2 under 2", found]);
    assert_eq!(tick(&mut manager, 4), NOTHING, "an instance waits for a worker");
    assert_eq!(query(&mut manager, workers[1], 1), ["w1 <- 3 under 3", found]);
}

#[test]
fn longest_path_is_granted_first() {
    let (mut manager, workers) = manager(shared(&[&[0, 1, 2, 3]]), 2);
    ask(&mut manager, workers[0]);
    returns(&mut manager, workers[0], 0, &[1], 1);
    returns(&mut manager, workers[0], 0, &[3], 5);
    returns(&mut manager, workers[0], 0, &[2], 3);
    let granted: Vec<String> = (0..3).flat_map(|_| ask(&mut manager, workers[1])).collect();
    assert_eq!(granted, ["w1 <- 3 under 1", "w1 <- 2 under 2", "w1 <- 1 under 3"]);
}

#[test]
fn only_instance_of_a_lease_moves_only_with_shared_results() {
    let steals = |plan: ExecutionPlan| {
        let (mut manager, workers) = manager(plan, 2);
        ask(&mut manager, workers[0]);
        ask(&mut manager, workers[1]);
        tick(&mut manager, 1)
    };
    assert_eq!(steals(shared(&[&[0]])), ["share w0 0"]);
    assert_eq!(steals(alike(&[&[0]])), NOTHING);
}

#[test]
fn lease_of_one_instance_that_is_not_given_is_executed_twice() {
    let (mut manager, workers) = manager(shared(&[&[0], &[1], &[2], &[3]]), 2);
    assert_eq!(ask(&mut manager, workers[0]), ["w0 <- 0 under 0"]);
    // The other worker executes all others, 1 s each.
    for (lease, instance) in [(1, 2), (2, 3), (3, 1)] {
        assert_eq!(ask(&mut manager, workers[1]), [format!("w1 <- {instance} under {lease}")]);
        assert_eq!(tick(&mut manager, lease), NOTHING);
        assert_eq!(done(&mut manager, workers[1], lease, instance), [format!("finished {instance}")]);
    }
    assert_eq!(ask(&mut manager, workers[1]), NOTHING);
    assert_eq!(tick(&mut manager, 4), ["share w0 0"]);
    // Its worker gives nothing and is asked again. 20 s are late, for instances of 1 s.
    assert_eq!(returns(&mut manager, workers[0], 0, &[], 0), NOTHING);
    assert_eq!(tick(&mut manager, 20), ["share w0 0", "w1 <- 0 under 4"]);
    assert_eq!(done(&mut manager, workers[1], 4, 0), ["revoke w0 0", "finished 0", "complete"]);
}

#[test]
fn answer_without_instances_lets_the_lease_be_asked_again() {
    let (mut manager, workers) = manager(shared(&[&[0, 1]]), 2);
    ask(&mut manager, workers[0]);
    ask(&mut manager, workers[1]);
    assert_eq!(tick(&mut manager, 1), ["share w0 0"]);
    assert_eq!(tick(&mut manager, 2), NOTHING);
    assert!(manager.handle_spare(workers[0], STUDY, LeaseId(0), &[], Duration::ZERO));
    assert_eq!(effects(&mut manager), NOTHING);
    assert_eq!(tick(&mut manager, 3), ["share w0 0"]);
    // Returns of others' leases do not count.
    assert!(!manager.handle_spare(workers[1], STUDY, LeaseId(0), &ids([1]), Duration::ZERO));
}
