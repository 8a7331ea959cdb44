//! Replicas of outputs: the worker that fetches them, and the losses that they survive.

use crate::elastic::{ask, done, effects, manager};
use crate::plans::{chain, output_key};
use crate::solo::STUDY;
use pleach_dispatch::manager::{Manager, WorkerInfo};
use pleach_dispatch::plan::ExecutionPlan;
use pleach_dispatch::{InstanceId, LeaseId, WorkerId};
use pleach_regions::RegionKey;
use std::collections::BTreeSet;
use std::net::IpAddr;

/// Returns a plan of two instances of a first stage, each with one reader.
fn plan() -> ExecutionPlan {
    chain(&[(0, None), (0, None), (1, Some(0)), (1, Some(1))], &[&[0], &[1], &[2], &[3]])
}

fn replicate(manager: &mut Manager, worker: WorkerId, lease: u64, instance: u32) -> Vec<String> {
    let regions: Vec<(RegionKey, u64)> = vec![(output_key(instance, 0), 100)];
    manager.handle_replicate(worker, STUDY, LeaseId(lease), InstanceId(instance), &regions);
    effects(manager)
}

fn copied(manager: &mut Manager, worker: WorkerId, instance: u32) -> Vec<String> {
    manager.handle_region_fetched(worker, STUDY, output_key(instance, 0));
    effects(manager)
}

fn replicated(worker: u32, lease: u64, instance: u32) -> String {
    format!(
        "Replicated {{ worker: WorkerId({worker}), study: PlanId {{ study: 0, phase: 0, round: 0 }}, lease: LeaseId({lease}), instance: InstanceId({instance}) }}"
    )
}

#[test]
fn output_with_a_replica_survives_its_worker() {
    let (mut manager, workers) = manager(plan(), 3);
    assert_eq!(ask(&mut manager, workers[0]), ["w0 <- 0 under 0"]);
    assert_eq!(replicate(&mut manager, workers[0], 0, 0), ["copy 0 to w1 from w0"]);
    assert_eq!(copied(&mut manager, workers[1], 0), [replicated(0, 0, 0)]);
    assert_eq!(done(&mut manager, workers[0], 0, 0), ["finished 0"]);
    manager.handle_leave(workers[0], true);
    assert_eq!(effects(&mut manager), Vec::<String>::new(), "nothing is reopened");
    // The reader is granted without recomputing its input.
    assert_eq!(ask(&mut manager, workers[2]), ["w2 <- 2 under 1"]);
    // Instance 1 has no replica, and instance 0 loses its second copy. Both are recomputed.
    assert_eq!(ask(&mut manager, workers[1]), ["w1 <- 1 under 2"]);
    assert_eq!(done(&mut manager, workers[1], 2, 1), ["finished 1"]);
    manager.handle_leave(workers[1], true);
    assert_eq!(effects(&mut manager), ["reopened 0", "reopened 1"]);
}

#[test]
fn worker_that_failed_or_left_gets_no_replica_request() {
    let (mut manager, workers) = manager(plan(), 3);
    ask(&mut manager, workers[1]);
    assert_eq!(replicate(&mut manager, workers[1], 0, 0), ["copy 0 to w2 from w1"]);
    manager.handle_fetch_failed(workers[2], STUDY, output_key(0, 0));
    assert_eq!(effects(&mut manager), ["copy 0 to w0 from w1"]);
    manager.handle_leave(workers[0], true);
    // No worker is left to ask.
    assert_eq!(effects(&mut manager), [replicated(1, 0, 0)]);
    assert_eq!(done(&mut manager, workers[1], 0, 0), ["finished 0"]);
    // A late fetch counts as a copy, but answers no request.
    assert_eq!(copied(&mut manager, workers[2], 0), Vec::<String>::new());
    manager.handle_leave(workers[1], true);
    assert_eq!(effects(&mut manager), Vec::<String>::new());
    manager.handle_dropped(workers[2], STUDY, output_key(0, 0));
    assert_eq!(effects(&mut manager), ["reopened 0"]);
}

#[test]
fn another_host_is_better_than_another_process() {
    let mut manager = Manager::new(0);
    manager.handle_submit(STUDY, plan(), &BTreeSet::new()).expect("a plan");
    let host = |last: u8| Some(IpAddr::from([10, 0, 0, last]));
    let [first, _, third] =
        [1, 1, 2].map(|last| manager.handle_join(WorkerInfo { host: host(last), ..WorkerInfo::ANY }));
    ask(&mut manager, first);
    assert_eq!(replicate(&mut manager, first, 0, 0), ["copy 0 to w2 from w0"]);
    manager.handle_fetch_failed(third, STUDY, output_key(0, 0));
    assert_eq!(effects(&mut manager), ["copy 0 to w1 from w0"]);
}

#[test]
fn replica_request_without_target_is_acked_at_once() {
    let (mut manager, workers) = manager(plan(), 1);
    ask(&mut manager, workers[0]);
    assert_eq!(replicate(&mut manager, workers[0], 0, 0), [replicated(0, 0, 0)]);
    let other = manager.handle_join(WorkerInfo::ANY);
    // The worker does not have instance 3, and the output of instance 3 has no reader.
    assert_eq!(replicate(&mut manager, workers[0], 0, 3), [replicated(0, 0, 3)]);
    assert_eq!(replicate(&mut manager, workers[0], 0, 0), ["copy 0 to w1 from w0"]);
    // The end of a study answers all its requests.
    manager.handle_cancel(STUDY);
    assert!(effects(&mut manager).contains(&replicated(0, 0, 0)));
    assert_eq!(copied(&mut manager, other, 0), Vec::<String>::new());
}

#[test]
fn failed_fetch_from_draining_worker_is_retargeted() {
    let (mut manager, workers) = manager(plan(), 3);
    ask(&mut manager, workers[0]);
    done(&mut manager, workers[0], 0, 0);
    manager.handle_drain(workers[0]);
    assert_eq!(effects(&mut manager), ["drain w0", "copy 0 to w1 from w0"]);
    manager.handle_fetch_failed(workers[1], STUDY, output_key(0, 0));
    assert_eq!(effects(&mut manager), ["copy 0 to w2 from w0"]);
    // No worker can fetch the region. The draining worker is dismissed anyway, and the region is recomputed.
    manager.handle_fetch_failed(workers[2], STUDY, output_key(0, 0));
    assert_eq!(effects(&mut manager), ["dismiss w0"]);
    manager.handle_leave(workers[0], false);
    assert_eq!(effects(&mut manager), ["reopened 0"]);
}

#[test]
fn replica_made_after_the_grant_prevents_a_reopen() {
    let (mut manager, workers) = manager(plan(), 3);
    ask(&mut manager, workers[0]);
    done(&mut manager, workers[0], 0, 0);
    // The assignment names the first worker as holder. That worker leaves before it has sent the region. The
    // third worker holds it by then.
    assert_eq!(ask(&mut manager, workers[1]), ["w1 <- 2 under 1"]);
    manager.handle_drain(workers[0]);
    assert_eq!(effects(&mut manager), ["drain w0", "copy 0 to w1 from w0"]);
    assert_eq!(copied(&mut manager, workers[2], 0), ["dismiss w0"]);
    manager.handle_leave(workers[0], false);
    assert_eq!(effects(&mut manager), Vec::<String>::new());
    assert!(manager.handle_missing_input(workers[1], STUDY, LeaseId(1), InstanceId(2), &[output_key(0, 0)]));
    assert_eq!(effects(&mut manager), Vec::<String>::new(), "nothing is reopened");
    // The holder named now cannot send the region either.
    assert_eq!(ask(&mut manager, workers[1]), ["w1 <- 2 under 2"]);
    assert!(manager.handle_missing_input(workers[1], STUDY, LeaseId(2), InstanceId(2), &[output_key(0, 0)]));
    assert_eq!(effects(&mut manager), ["reopened 0"]);
}
