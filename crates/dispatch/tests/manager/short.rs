//! Short buckets that come along with a requested one, effect by effect.

use crate::elastic::{NOTHING, ask, effects};
use crate::plans::chain;
use crate::solo::{STUDY, manager_of};
use pleach_dispatch::manager::{Effect, Manager, WorkerInfo};
use pleach_dispatch::message::{GrantReason, TaskOutcome, TaskProvenance, TaskReport};
use pleach_dispatch::plan::{ExecutionPlan, GrantOrder};
use pleach_dispatch::{InstanceId, LeaseId, WorkerId};
use std::collections::BTreeSet;
use std::fmt::Write;

/// `masks` instances, each in a bucket of its own, and one that reads each, in one bucket each.
fn comparisons(masks: u32) -> ExecutionPlan {
    let first = (0..masks).map(|_| (0, None));
    let instances: Vec<_> = first.chain((0..masks).map(|mask| (1, Some(mask)))).collect();
    let all: Vec<u32> = (0..2 * masks).collect();
    let buckets: Vec<&[u32]> = all.chunks(1).collect();
    chain(&instances, &buckets)
}

fn report(manager: &mut Manager, worker: WorkerId, lease: u64, instance: u32, stage: u32, seconds: f64) {
    let done = TaskOutcome::Ran { seconds, predicted_seconds: 0.0, digests: 0, digest_seconds: 0.0 };
    let task = TaskReport { task: 0, stage, done, cache_seconds: 0.0, provenance: TaskProvenance::default() };
    manager.handle_task_timings(worker, STUDY, InstanceId(instance), &[task]);
    assert!(manager.handle_done(worker, STUDY, LeaseId(lease), InstanceId(instance)));
}

/// Returns the instances of the grants to a worker, `~` before those that answer no request.
fn grants(manager: &mut Manager, worker: WorkerId) -> String {
    let mut all = String::new();
    while let Some(effect) = manager.poll_effect() {
        if let Effect::Assign { worker: to, work, reason, .. } = effect {
            assert_eq!(to, worker);
            let short = if reason == GrantReason::Short { "~" } else { "" };
            write!(all, "{short}{} ", work.instances[0].id.0).expect("written");
        }
    }
    all.trim_end().to_owned()
}

/// A manager with a worker that has all masks, and has compared the first one in `seconds`.
fn compared(plan: ExecutionPlan, masks: u32, seconds: f64) -> (Manager, WorkerId) {
    let mut manager = manager_of(plan, &BTreeSet::new()).expect("a plan that keeps the rules");
    let worker = manager.handle_join(WorkerInfo { slots: masks + 1, ..WorkerInfo::ANY });
    manager.handle_request(worker, masks, None);
    effects(&mut manager);
    for mask in 0..masks {
        report(&mut manager, worker, mask.into(), mask, 0, 1.0);
    }
    // The time of the stage is not known yet.
    manager.handle_request(worker, 1, None);
    assert_eq!(grants(&mut manager, worker), masks.to_string());
    report(&mut manager, worker, masks.into(), masks, 1, seconds);
    effects(&mut manager);
    (manager, worker)
}

#[test]
fn short_buckets_come_along_with_the_requested_one() {
    let (mut manager, worker) = compared(comparisons(6), 6, 1e-5);
    manager.handle_request(worker, 1, None);
    assert_eq!(grants(&mut manager, worker), "7 ~8 ~9 ~10 ~11");
    manager.sanity_check().expect("sane");
    // Each is reported on its own.
    for (lease, instance) in (7..).zip(7..12) {
        report(&mut manager, worker, lease, instance, 1, 1e-5);
    }
    assert_eq!(effects(&mut manager).last().map(String::as_str), Some("complete"));
}

#[test]
fn later_stage_that_was_requested_brings_short_buckets() {
    let (mut manager, worker) = compared(comparisons(4), 4, 1e-5);
    manager.handle_request(worker, 1, Some(0));
    assert_eq!(grants(&mut manager, worker), "5 ~6 ~7");
}

#[test]
fn expected_time_of_an_answer_is_limited() {
    let seconds = Manager::SHORT_SECONDS / 3.5;
    let (mut manager, worker) = compared(comparisons(8), 8, seconds);
    manager.handle_request(worker, 1, None);
    assert_eq!(grants(&mut manager, worker), "9 ~10 ~11");
    manager.handle_request(worker, 1, None);
    assert_eq!(grants(&mut manager, worker), "12 ~13 ~14");
    // One bucket alone exceeds it.
    let (mut manager, worker) = compared(comparisons(3), 3, Manager::SHORT_SECONDS);
    manager.handle_request(worker, 1, None);
    assert_eq!(grants(&mut manager, worker), "4");
}

/// Requests in advance bring the requested buckets only, once the worker has as many leases as it may get unasked.
#[test]
fn number_of_leases_with_short_buckets_is_limited() {
    let masks = Manager::MAX_SHORT_LEASES as u32 + 9;
    let (mut manager, worker) = compared(comparisons(masks), masks, 1e-7);
    manager.handle_request(worker, 1, None);
    let granted = grants(&mut manager, worker);
    assert_eq!(granted.split(' ').count(), Manager::MAX_SHORT_LEASES, "{granted}");
    manager.handle_request(worker, 2, None);
    let next = masks + 1 + Manager::MAX_SHORT_LEASES as u32;
    assert_eq!(grants(&mut manager, worker), format!("{next} {}", next + 1));
    // Four reports make room for one bucket unasked.
    for lease in 0..4 {
        report(&mut manager, worker, (masks + 1 + lease).into(), masks + 1 + lease, 1, 1e-7);
    }
    effects(&mut manager);
    manager.handle_request(worker, 1, None);
    assert_eq!(grants(&mut manager, worker), format!("{} ~{}", next + 2, next + 3));
}

#[test]
fn requested_buckets_come_first_to_the_workers_that_wait() {
    let (mut manager, worker) = compared(comparisons(6), 6, 1e-5);
    // A worker without the masks gets no short bucket beside the one that it requested.
    let other = manager.handle_join(WorkerInfo::ANY);
    assert_eq!(ask(&mut manager, other), ["w1 <- 7 under 7"]);
    manager.handle_request(worker, 1, None);
    assert_eq!(grants(&mut manager, worker), "8 ~9 ~10 ~11");
    assert_eq!(ask(&mut manager, other), NOTHING);
}

#[test]
fn buckets_of_other_places_and_orders_come_one_by_one() {
    let plan = ExecutionPlan { order: GrantOrder::Release, ..comparisons(4) };
    let (mut manager, worker) = compared(plan, 4, 1e-5);
    manager.handle_request(worker, 1, None);
    assert_eq!(grants(&mut manager, worker), "5");
}
