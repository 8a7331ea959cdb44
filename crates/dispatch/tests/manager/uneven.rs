//! Grants to slow workers and to workers with a time limit, effect by effect.

use crate::elastic::{NOTHING, alike, ask, done, effects, manager, tick};
use crate::plans::ids;
use crate::solo::STUDY;
use pleach_dispatch::manager::{Manager, WorkerInfo};
use pleach_dispatch::message::{ReuseSource, TaskOutcome, TaskProvenance, TaskReport};
use pleach_dispatch::{InstanceId, LeaseId, WorkerId};
use std::collections::BTreeSet;
use std::time::Duration;

/// Returns the report of a task of the first stage that took `seconds`.
fn task(seconds: f64) -> TaskReport {
    let done = TaskOutcome::Ran { seconds, predicted_seconds: 0.0, digests: 0, digest_seconds: 0.0 };
    TaskReport { task: 0, stage: 0, done, cache_seconds: 0.0, provenance: TaskProvenance::default() }
}

fn ran(manager: &mut Manager, worker: WorkerId, instance: u32, seconds: &[f64]) {
    let tasks: Vec<TaskReport> = seconds.iter().map(|seconds| task(*seconds)).collect();
    manager.handle_task_timings(worker, STUDY, InstanceId(instance), &tasks);
}

#[test]
fn worker_with_time_limit_gets_only_what_it_can_finish() {
    let (mut manager, workers) = manager(alike(&[&[0], &[1], &[2, 3, 4, 5], &[6]]), 2);
    let (stays, ends) = (workers[0], workers[1]);
    manager.handle_time_limit(ends, Duration::from_secs(100));
    // The earliest time limit applies.
    manager.handle_time_limit(ends, Duration::from_secs(900));
    tick(&mut manager, 95);
    // Instances of an unmeasured stage may be granted.
    assert_eq!(ask(&mut manager, ends), ["w1 <- 0 under 0"]);
    assert_eq!(ask(&mut manager, stays), ["w0 <- 1 under 1"]);
    ran(&mut manager, stays, 1, &[2.0]);
    assert_eq!(done(&mut manager, stays, 1, 1), ["finished 1"]);
    // An instance takes 2 s, so the remaining 5 s suffice for 2 of them. The rest stays in its bucket.
    assert_eq!(ask(&mut manager, ends), ["w1 <- 2 3 under 2"]);
    tick(&mut manager, 98);
    assert_eq!(ask(&mut manager, ends), ["w1 <- 4 under 3"]);
    tick(&mut manager, 99);
    assert_eq!(ask(&mut manager, ends), NOTHING);
    // A worker without a time limit gets whole buckets.
    assert_eq!(ask(&mut manager, stays), ["w0 <- 5 under 4"]);
    assert_eq!(ask(&mut manager, stays), ["w0 <- 6 under 5"]);
    // The ending worker steals nothing and gets no speculative lease.
    tick(&mut manager, 200);
    assert_eq!(effects(&mut manager), NOTHING);
}

#[test]
fn bucket_beyond_a_message_is_granted_in_parts() {
    let all: Vec<u32> = (0..10_000).collect();
    let (mut manager, workers) = manager(alike(&[&all]), 1);
    let granted = |lines: Vec<String>| {
        let [line] = <[String; 1]>::try_from(lines).expect("one grant");
        line.split_once(" under").expect("a grant").0.split(' ').count() - 2
    };
    assert_eq!(granted(ask(&mut manager, workers[0])), 8192);
    assert_eq!(granted(ask(&mut manager, workers[0])), 10_000 - 8192);
    assert_eq!(ask(&mut manager, workers[0]), NOTHING);
}

#[test]
fn grants_of_an_event_are_limited() {
    let plan = alike(&[&[0, 1], &[2, 3], &[4, 5], &[6]]);
    let mut manager = Manager::new(0).with_max_granted(4);
    manager.handle_submit(STUDY, plan, &BTreeSet::new()).expect("a plan that keeps the rules");
    let worker = manager.handle_join(WorkerInfo::ANY);
    manager.handle_request(worker, 8, None);
    assert_eq!(effects(&mut manager), ["w0 <- 0 1 under 0", "w0 <- 2 3 under 1"]);
    assert!(manager.has_more_grants());
    manager.handle_grants();
    assert_eq!(effects(&mut manager), ["w0 <- 4 5 under 2", "w0 <- 6 under 3"]);
    assert!(!manager.has_more_grants());
}

#[test]
fn instances_returned_before_a_time_limit_go_elsewhere() {
    let (mut manager, workers) = manager(alike(&[&[0, 1], &[2, 3]]), 2);
    let (stays, ends) = (workers[0], workers[1]);
    manager.handle_time_limit(ends, Duration::from_secs(100));
    assert_eq!(ask(&mut manager, ends), ["w1 <- 0 1 under 0"]);
    // A worker predicts its own times better than the manager. A return by another worker does not count.
    assert!(!manager.handle_returned(stays, STUDY, LeaseId(0), &ids([1])));
    assert_eq!(ask(&mut manager, ends), ["w1 <- 2 3 under 1"]);
    assert!(manager.handle_returned(ends, STUDY, LeaseId(0), &ids([0, 1])));
    assert_eq!(ask(&mut manager, ends), NOTHING);
    assert_eq!(ask(&mut manager, stays), ["w0 <- 0 1 under 2"]);
    // A worker without a time limit has other reasons for a return and gets the instances again.
    assert!(manager.handle_returned(stays, STUDY, LeaseId(2), &ids([0, 1])));
    assert_eq!(ask(&mut manager, stays), ["w0 <- 0 1 under 3"]);
}

#[test]
fn stolen_instances_may_be_granted_to_their_victim_again() {
    let (mut manager, workers) = manager(alike(&[&[0, 1, 2, 3]]), 2);
    manager.handle_time_limit(workers[0], Duration::from_secs(100));
    assert_eq!(ask(&mut manager, workers[0]), ["w0 <- 0 1 2 3 under 0"]);
    assert_eq!(ask(&mut manager, workers[1]), NOTHING);
    assert_eq!(tick(&mut manager, 1), ["share w0 0"]);
    assert!(manager.handle_returned(workers[0], STUDY, LeaseId(0), &ids([2, 3])));
    assert_eq!(effects(&mut manager), ["w1 <- 2 3 under 1"]);
    assert!(manager.handle_returned(workers[1], STUDY, LeaseId(1), &ids([3])));
    assert_eq!(ask(&mut manager, workers[0]), ["w0 <- 3 under 2"]);
}

/// Creates a manager of a slow and a fast worker: the first took 4 s for each of 10 tasks, the second 1 s for
/// each of 40.
fn uneven(buckets: &[&[u32]]) -> (Manager, WorkerId, WorkerId) {
    let (mut manager, workers) = manager(alike(buckets), 2);
    for _ in 0..10 {
        ran(&mut manager, workers[1], 0, &[1.0, 1.0, 1.0, 1.0]);
        ran(&mut manager, workers[0], 0, &[4.0]);
    }
    (manager, workers[0], workers[1])
}

#[test]
fn slow_worker_gets_the_first_part_of_a_bucket() {
    let (mut manager, slow, fast) = uneven(&[&[9, 0, 1, 2, 3, 4, 5, 6, 7, 8], &[10]]);
    // The speeds are 0.4 and 1.6. The slow worker needs for 4 instances the mean time of 10, and gets the first
    // 4 in the plan's order.
    assert_eq!(ask(&mut manager, slow), ["w0 <- 0 1 2 9 under 0"]);
    // The slow worker gets 4 more of the planned 10, and 2 remain. The fast worker gets whole buckets.
    assert_eq!(ask(&mut manager, slow), ["w0 <- 3 4 5 6 under 1"]);
    assert_eq!(ask(&mut manager, fast), ["w1 <- 7 8 under 2"]);
    assert_eq!(ask(&mut manager, slow), ["w0 <- 10 under 3"], "one at least");
    for (lease, instances) in [(0, vec![0, 1, 2, 9]), (1, vec![3, 4, 5, 6]), (3, vec![10])] {
        instances.into_iter().for_each(|id| _ = done(&mut manager, slow, lease, id));
    }
    done(&mut manager, fast, 2, 7);
    assert_eq!(done(&mut manager, fast, 2, 8), ["finished 8", "complete"]);
}

#[test]
fn slow_slot_counts_with_its_speed() {
    let (manager, _, _) = uneven(&[&[0]]);
    assert_eq!((manager.slots(), manager.slots_by_speed()), (2, 2));
    let (mut manager, _, fast) = uneven(&[&[0]]);
    // A worker with 16 slots counts at mean speed until it is measured.
    manager.handle_join(WorkerInfo { slots: 16, ..WorkerInfo::ANY });
    assert_eq!((manager.slots(), manager.slots_by_speed()), (18, 18));
    manager.handle_leave(fast, false);
    assert_eq!((manager.slots(), manager.slots_by_speed()), (17, 16));
    manager.sanity_check().expect("sane");
    let all = WorkerInfo { slots: u32::MAX, ..WorkerInfo::ANY };
    let vain = manager.handle_join(all);
    assert!(manager.slots_by_speed() > 17);
    manager.handle_drain(vain);
    assert_eq!((manager.slots(), manager.slots_by_speed()), (17, 16));
}

#[test]
fn invalid_and_reused_timings_do_not_change_speed() {
    let (mut manager, workers) = manager(alike(&[&[0, 1, 2, 3, 4, 5, 6, 7]]), 2);
    for _ in 0..20 {
        ran(&mut manager, workers[1], 0, &[1.0]);
        ran(&mut manager, workers[0], 0, &[f64::NAN, f64::INFINITY, -1.0, 1.0]);
        let found = TaskReport { done: TaskOutcome::Reused(ReuseSource::Cache), ..task(0.0) };
        let strange = [TaskReport { stage: 9, ..task(99.0) }, TaskReport { task: 9, ..task(99.0) }, found];
        manager.handle_task_timings(workers[0], STUDY, InstanceId(0), &strange);
        manager.handle_task_timings(workers[0], STUDY, InstanceId(77), &[task(1.0)]);
    }
    assert_eq!(ask(&mut manager, workers[0]), ["w0 <- 0 1 2 3 4 5 6 7 under 0"]);
}

#[test]
fn idle_workers_steal_from_the_largest_leases_in_turn() {
    let (mut manager, workers) = manager(alike(&[&[0, 1], &[2, 3, 4, 5], &[6, 7, 8]]), 5);
    assert_eq!(ask(&mut manager, workers[0]), ["w0 <- 0 1 under 0"]);
    assert_eq!(ask(&mut manager, workers[1]), ["w1 <- 2 3 4 5 under 1"]);
    assert_eq!(ask(&mut manager, workers[2]), ["w2 <- 6 7 8 under 2"]);
    for idle in [1, 3, 4] {
        assert_eq!(ask(&mut manager, workers[idle]), NOTHING);
    }
    // No worker is asked for its own lease, and no lease is asked for twice. The first idle worker has the
    // largest lease itself.
    assert_eq!(tick(&mut manager, 1), ["share w2 2", "share w1 1", "share w0 0"]);
    assert_eq!(tick(&mut manager, 2), NOTHING);
}
