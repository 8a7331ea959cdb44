//! Elastic clusters, effect by effect: workers that reattach, return instances, fall behind, lack operations or
//! memory, drain and crash, and several studies at once.

use crate::plans::{chain, ids, output_key, tile_key};
use crate::solo::STUDY;
use pleach_dispatch::manager::{Effect, Manager, WorkerInfo};
use pleach_dispatch::plan::ExecutionPlan;
use pleach_dispatch::study::Effect as Event;
use pleach_dispatch::{InstanceId, LeaseId, PlanId, WorkerId};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

const OTHER: PlanId = PlanId::first_round(1);

/// Returns the effects as short texts. Omits releases, replans, and the start and end of studies on workers.
pub(crate) fn effects(manager: &mut Manager) -> Vec<String> {
    let mut lines = Vec::new();
    while let Some(effect) = manager.poll_effect() {
        lines.push(match effect {
            Effect::Assign { worker, study, lease, work, .. } => {
                let ids: Vec<String> = work.instances.iter().map(|i| i.id.0.to_string()).collect();
                let of = if study == STUDY { "" } else { " of the other" };
                format!("w{} <- {}{of} under {}", worker.0, ids.join(" "), lease.0)
            }
            Effect::Share { worker, lease, .. } => format!("share w{} {}", worker.0, lease.0),
            Effect::Revoke { worker, lease, .. } => format!("revoke w{} {}", worker.0, lease.0),
            Effect::Copy { worker, from, key, .. } => {
                let of = (0..100).find(|id| output_key(*id, 0) == key).expect("an output");
                format!("copy {of} to w{} from w{}", worker.0, from.0)
            }
            Effect::Drain(worker) => format!("drain w{}", worker.0),
            Effect::Dismiss(worker) => format!("dismiss w{}", worker.0),
            Effect::Study(_, Event::Finished(instance)) => format!("finished {}", instance.0),
            Effect::Study(_, Event::Reopened(instance)) => format!("reopened {}", instance.0),
            Effect::Study(_, Event::Failed { instance, cause, .. }) => {
                format!("failed {}: {}", instance.0, cause.at)
            }
            Effect::Study(_, Event::Complete) => "complete".to_owned(),
            Effect::Study(_, Event::Release(_)) | Effect::Introduce { .. } | Effect::Over { .. } => continue,
            Effect::Replan(_) | Effect::TileShared { .. } => continue,
            effect => format!("{effect:?}"),
        });
        manager.sanity_check().expect("sane");
    }
    lines
}

/// Returns a plan of instances without parents, in these buckets.
pub(crate) fn alike(buckets: &[&[u32]]) -> ExecutionPlan {
    chain(&vec![(0, None); buckets.iter().map(|bucket| bucket.len()).sum()], buckets)
}

pub(crate) fn manager(plan: ExecutionPlan, workers: usize) -> (Manager, Vec<WorkerId>) {
    let mut manager = Manager::new(0);
    manager.handle_submit(STUDY, plan, &BTreeSet::new()).expect("a plan that keeps the rules");
    let workers = (0..workers).map(|_| manager.handle_join(WorkerInfo::ANY)).collect();
    (manager, workers)
}

pub(crate) fn ask(manager: &mut Manager, worker: WorkerId) -> Vec<String> {
    manager.handle_request(worker, 1, None);
    effects(manager)
}

pub(crate) fn done(manager: &mut Manager, worker: WorkerId, lease: u64, instance: u32) -> Vec<String> {
    assert!(manager.handle_done(worker, STUDY, LeaseId(lease), InstanceId(instance)));
    effects(manager)
}

pub(crate) fn tick(manager: &mut Manager, seconds: u64) -> Vec<String> {
    manager.handle_tick(Duration::from_secs(seconds));
    effects(manager)
}

pub(crate) const NOTHING: [&str; 0] = [];

#[test]
fn idle_worker_steals_unstarted_instances() {
    let (mut manager, workers) = manager(alike(&[&[0, 1, 2, 3], &[4, 5]]), 3);
    assert_eq!(ask(&mut manager, workers[0]), ["w0 <- 0 1 2 3 under 0"]);
    assert_eq!(ask(&mut manager, workers[1]), ["w1 <- 4 5 under 1"]);
    assert_eq!(ask(&mut manager, workers[2]), NOTHING);
    // The largest lease comes first. No lease gets a second steal request before its worker has answered.
    assert_eq!(tick(&mut manager, 1), ["share w0 0"]);
    assert_eq!(tick(&mut manager, 2), ["share w1 1"]);
    assert_eq!(tick(&mut manager, 2), NOTHING);
    assert!(manager.handle_returned(workers[0], STUDY, LeaseId(0), &ids([2, 3])));
    assert_eq!(effects(&mut manager), ["w2 <- 2 3 under 2"]);
    // A worker cannot return instances of another worker's lease. Instances returned before are ignored.
    assert!(!manager.handle_returned(workers[1], STUDY, LeaseId(0), &ids([1])));
    assert!(manager.handle_returned(workers[0], STUDY, LeaseId(0), &ids([3])));
    assert_eq!(effects(&mut manager), NOTHING);
}

#[test]
fn straggler_is_granted_twice_and_first_result_counts() {
    let (mut manager, workers) = manager(alike(&[&[0], &[1], &[2]]), 2);
    assert_eq!(ask(&mut manager, workers[0]), ["w0 <- 0 under 0"]);
    assert_eq!(ask(&mut manager, workers[1]), ["w1 <- 1 under 1"]);
    assert_eq!(tick(&mut manager, 2), NOTHING);
    assert_eq!(done(&mut manager, workers[1], 1, 1), ["finished 1"]);
    assert_eq!(ask(&mut manager, workers[1]), ["w1 <- 2 under 2"]);
    assert_eq!(done(&mut manager, workers[1], 2, 2), ["finished 2"]);
    assert_eq!(ask(&mut manager, workers[1]), NOTHING);
    // An instance takes 1 s on average, so a lease without a report for more than 4 s is a straggler.
    assert_eq!(tick(&mut manager, 4), NOTHING);
    assert_eq!(tick(&mut manager, 5), ["w1 <- 0 under 3"]);
    // A report under the other worker's lease does not count.
    assert!(!manager.handle_done(workers[1], STUDY, LeaseId(0), InstanceId(0)));
    assert_eq!(done(&mut manager, workers[1], 3, 0), ["revoke w0 0", "finished 0", "complete"]);
    assert!(!manager.handle_done(workers[0], STUDY, LeaseId(0), InstanceId(0)));
}

#[test]
fn straggler_without_its_input_is_not_granted_twice() {
    let plan = chain(&[(0, None), (1, Some(0)), (1, Some(0))], &[&[0], &[1], &[2]]);
    let (mut manager, workers) = manager(plan, 4);
    assert_eq!(ask(&mut manager, workers[0]), ["w0 <- 0 under 0"]);
    assert_eq!(tick(&mut manager, 10), NOTHING);
    assert_eq!(done(&mut manager, workers[0], 0, 0), ["finished 0"]);
    assert_eq!(ask(&mut manager, workers[0]), ["w0 <- 1 under 1"]);
    assert_eq!(ask(&mut manager, workers[1]), ["w1 <- 2 under 2"]);
    assert_eq!(tick(&mut manager, 11), NOTHING);
    assert_eq!(done(&mut manager, workers[0], 1, 1), ["finished 1"]);
    manager.handle_leave(workers[0], true);
    assert_eq!(effects(&mut manager), ["reopened 0"]);
    assert_eq!(ask(&mut manager, workers[2]), ["w2 <- 0 under 3"]);
    assert_eq!(ask(&mut manager, workers[3]), NOTHING);
    // Instance 2 is late, and nobody but its worker may have the output of instance 0.
    assert_eq!(tick(&mut manager, 20), NOTHING);
    assert_eq!(done(&mut manager, workers[2], 3, 0), ["finished 0"]);
    assert_eq!(tick(&mut manager, 21), ["w3 <- 2 under 4"]);
}

#[test]
fn draining_worker_leaves_after_its_sole_copies_are_fetched() {
    let (mut manager, workers) =
        manager(chain(&[(0, None), (1, Some(0)), (0, None)], &[&[0], &[1], &[2]]), 3);
    assert_eq!(ask(&mut manager, workers[0]), ["w0 <- 0 under 0"]);
    assert_eq!(done(&mut manager, workers[0], 0, 0), ["finished 0"]);
    assert_eq!(ask(&mut manager, workers[1]), ["w1 <- 1 under 1"]);
    assert_eq!(ask(&mut manager, workers[0]), ["w0 <- 2 under 2"]);
    manager.handle_drain(workers[0]);
    manager.handle_drain(workers[0]);
    assert_eq!(effects(&mut manager), ["drain w0"]);
    // The draining worker finishes or returns its instances, and gets no others.
    assert!(manager.handle_returned(workers[0], STUDY, LeaseId(2), &ids([2])));
    assert_eq!(effects(&mut manager), ["copy 0 to w1 from w0"]);
    assert_eq!(ask(&mut manager, workers[0]), NOTHING);
    // The fetching worker leaves. The manager asks another worker and ignores a late report of the first one.
    manager.handle_leave(workers[1], true);
    assert_eq!(effects(&mut manager), ["copy 0 to w2 from w0"]);
    manager.handle_region_fetched(workers[1], STUDY, output_key(0, 0));
    assert_eq!(effects(&mut manager), NOTHING);
    manager.handle_region_fetched(workers[2], STUDY, output_key(0, 0));
    assert_eq!(effects(&mut manager), ["dismiss w0"]);
    manager.handle_leave(workers[0], false);
    // No instance is recomputed.
    assert_eq!(ask(&mut manager, workers[2]), ["w2 <- 1 under 3"]);
}

#[test]
fn restarted_manager_reattaches_leases_of_workers() {
    let plan = chain(&[(0, None), (1, Some(0)), (0, None), (0, None)], &[&[0], &[1], &[2, 3]]);
    let mut manager = Manager::new(1);
    manager.pause_grants();
    manager.handle_submit(STUDY, plan, &BTreeSet::new()).expect("a plan that keeps the rules");
    let (first, second) = (manager.handle_join(WorkerInfo::ANY), manager.handle_join(WorkerInfo::ANY));
    assert_eq!(ask(&mut manager, second), NOTHING);
    // The first worker holds the output of instance 0, which is not recomputed, and continues instance 2. The
    // second worker reports instance 2 too late.
    assert_eq!(manager.handle_holds(first, STUDY, &[output_key(0, 0), output_key(7, 0)]), [output_key(7, 0)]);
    assert_eq!(effects(&mut manager), ["finished 0"]);
    assert_eq!(manager.handle_adopt(first, STUDY, LeaseId(5), &ids([2])), ids([2]).into_iter().collect());
    assert!(manager.handle_adopt(second, STUDY, LeaseId(6), &ids([2])).is_empty());
    assert!(manager.handle_adopt(WorkerId(9), STUDY, LeaseId(7), &ids([3])).is_empty(), "it is not there");
    assert_eq!(effects(&mut manager), NOTHING);
    manager.resume_grants();
    let first_lease = 1_u64 << 40;
    assert_eq!(effects(&mut manager), [format!("w1 <- 1 under {first_lease}")]);
    assert_eq!(done(&mut manager, first, 5, 2), ["finished 2"]);
    // The rest of its bucket goes to the next request.
    assert_eq!(ask(&mut manager, first), [format!("w0 <- 3 under {}", first_lease + 1)]);
}

#[test]
fn suspect_instance_runs_isolated_and_fails_at_crash_limit() {
    let (mut manager, _) = manager(alike(&[&[0, 1], &[2]]), 0);
    let mut lose = |expected: &str| {
        let worker = manager.handle_join(WorkerInfo::ANY);
        assert_eq!(ask(&mut manager, worker), [expected]);
        manager.handle_leave(worker, true);
        effects(&mut manager)
    };
    assert_eq!(lose("w0 <- 0 1 under 0"), NOTHING);
    assert_eq!(lose("w1 <- 0 1 under 1"), NOTHING);
    // Both instances were on two lost workers. Each is isolated now and comes first on an empty worker.
    assert_eq!(lose("w2 <- 0 under 2"), NOTHING);
    assert_eq!(lose("w3 <- 0 under 3"), NOTHING);
    assert_eq!(lose("w4 <- 0 under 4"), ["failed 0: worker"]);
    let good = manager.handle_join(WorkerInfo::ANY);
    assert_eq!(ask(&mut manager, good), ["w5 <- 1 under 5"]);
    // The worker gets no other bucket until the suspect instance is finished.
    assert_eq!(ask(&mut manager, good), NOTHING);
    assert_eq!(done(&mut manager, good, 5, 1), ["finished 1", "w5 <- 2 under 6"]);
    assert_eq!(done(&mut manager, good, 6, 2), ["finished 2", "complete"]);
}

/// Loses workers while they run one of `poison`, until the study is complete. Returns the instances of each lease, and those
/// that failed.
fn finish(manager: &mut Manager, poison: &[u32]) -> (Vec<Vec<u32>>, Vec<String>) {
    let (mut leases, mut failed, mut worker) = (Vec::new(), Vec::new(), None);
    while manager.study(STUDY).is_some() {
        let at_work = *worker.get_or_insert_with(|| manager.handle_join(WorkerInfo::ANY));
        let granted = ask(manager, at_work);
        assert_eq!(granted.len(), 1, "{granted:?}");
        // wN <- 1 2 3 under 4
        let (_, granted) = granted[0].split_once(" <- ").expect("a grant");
        let (granted, lease) = granted.split_once(" under ").expect("a lease");
        let granted: Vec<u32> = granted.split(' ').map(|id| id.parse().expect("a number")).collect();
        let lease: u64 = lease.parse().expect("a number");
        leases.push(granted.clone());
        if granted.iter().any(|id| poison.contains(id)) {
            manager.handle_leave(at_work, true);
            worker = None;
            failed.extend(effects(manager).into_iter().filter(|line| line.starts_with("failed")));
            continue;
        }
        granted.into_iter().for_each(|id| _ = done(manager, at_work, lease, id));
    }
    (leases, failed)
}

#[test]
fn suspects_of_a_large_lease_run_in_groups() {
    let all: Vec<u32> = (0..1000).collect();
    // Two workers are lost by accident, each with all instances.
    let (mut manager, _) = manager(alike(&[&all]), 0);
    for _ in 0..2 {
        let worker = manager.handle_join(WorkerInfo::ANY);
        assert_eq!(ask(&mut manager, worker).len(), 1);
        manager.handle_leave(worker, true);
        assert_eq!(effects(&mut manager), NOTHING);
    }
    let (leases, failed) = finish(&mut manager, &[]);
    assert_eq!((leases.len(), failed.len()), (16, 0), "a sixteenth at a time");
    assert!(leases.iter().all(|lease| lease.len() <= 63));
}

#[test]
fn poison_in_a_large_lease_is_found_in_few_crashes() {
    let all: Vec<u32> = (0..1000).collect();
    let (mut manager, _) = manager(alike(&[&all]), 0);
    let (leases, failed) = finish(&mut manager, &[700]);
    assert_eq!(failed, ["failed 700: worker"]);
    let lost: Vec<usize> = leases.iter().filter(|lease| lease.contains(&700)).map(Vec::len).collect();
    assert_eq!(lost, [1000, 1000, 63, 4, 1, 1, 1], "groups of a sixteenth, then alone");
    // All 16 groups of the whole, 16 of the group with it, and 4 of one.
    assert_eq!(leases.len(), 2 + 16 + 16 + 4 + 2);
}

#[test]
fn grant_skips_the_id_of_a_reattached_lease() {
    let (mut manager, workers) = manager(alike(&[&[0], &[1]]), 2);
    // No earlier manager has granted this lease: its id would be the next one.
    let kept = manager.handle_adopt(workers[0], STUDY, LeaseId(0), &ids([0]));
    assert_eq!(kept, ids([0]).into_iter().collect());
    assert_eq!(ask(&mut manager, workers[1]), ["w1 <- 1 under 1"]);
    assert_eq!(done(&mut manager, workers[0], 0, 0), ["finished 0"]);
    assert_eq!(done(&mut manager, workers[1], 1, 1), ["finished 1", "complete"]);
}

#[test]
fn reattached_worker_retracts_crashes_of_its_instances() {
    let (mut manager, workers) = manager(alike(&[&[0, 1], &[2]]), 1);
    let mut worker = workers[0];
    assert_eq!(ask(&mut manager, worker), ["w0 <- 0 1 under 0"]);
    for round in 0..6 {
        // The worker is disconnected in every round.
        manager.handle_leave(worker, true);
        worker = manager.handle_join(WorkerInfo::ANY);
        let kept = manager.handle_adopt(worker, STUDY, LeaseId(0), &ids([0, 1]));
        assert_eq!(kept, ids([0, 1]).into_iter().collect(), "round {round}");
        assert_eq!(effects(&mut manager), NOTHING);
    }
    assert_eq!(ask(&mut manager, worker), ["w6 <- 2 under 1"]);
    assert_eq!(done(&mut manager, worker, 0, 0), ["finished 0"]);
}

#[test]
fn worker_gets_only_buckets_it_can_run() {
    let mut plan = chain(&[(0, None), (1, Some(0)), (0, None)], &[&[0], &[1], &[2]]);
    plan.stages[1].tasks[0].operation = "test.special".to_owned();
    plan.needs.min_bytes = 10;
    let (mut manager, _) = manager(plan, 0);
    let plain = BTreeSet::from([("test.t1".to_owned(), 1)]);
    let poor = manager.handle_join(WorkerInfo { operations: Some(plain), ..WorkerInfo::ANY });
    let small = manager.handle_join(WorkerInfo { memory_bytes: 9, ..WorkerInfo::ANY });
    assert_eq!(manager.missing_operations(poor), [("test.special".to_owned(), 1)]);
    assert_eq!(ask(&mut manager, small), NOTHING);
    assert_eq!(ask(&mut manager, poor), ["w0 <- 0 under 0"]);
    assert_eq!(done(&mut manager, poor, 0, 0), ["finished 0"]);
    // Instance 1 is first in order, but the worker lacks its operation.
    assert_eq!(ask(&mut manager, poor), ["w0 <- 2 under 1"]);
    assert_eq!(ask(&mut manager, poor), NOTHING);
    let good = manager.handle_join(WorkerInfo::ANY);
    assert_eq!(ask(&mut manager, good), ["w2 <- 1 under 2"]);
}

/// A worker loads the code of a study while its request waits.
#[test]
fn new_operations_of_a_worker_serve_its_waiting_request() {
    let mut plan = chain(&[(0, None), (1, Some(0))], &[&[0], &[1]]);
    plan.stages.iter_mut().for_each(|stage| stage.tasks[0].operation = "python:f@01".to_owned());
    let (mut manager, _) = manager(plan, 0);
    let worker = manager.handle_join(WorkerInfo { operations: Some(BTreeSet::new()), ..WorkerInfo::ANY });
    assert_eq!(ask(&mut manager, worker), NOTHING);
    manager.handle_operations(worker, BTreeSet::from([("python:f@02".to_owned(), 1)]));
    assert_eq!(effects(&mut manager), NOTHING, "its digest is another one");
    assert_eq!(manager.able_workers(STUDY), 0);
    manager.handle_operations(worker, BTreeSet::from([("python:f@01".to_owned(), 1)]));
    assert_eq!(effects(&mut manager), ["w0 <- 0 under 0"]);
    assert_eq!(manager.able_workers(STUDY), 1);
    assert_eq!(manager.missing_operations(worker), []);
}

#[test]
fn what_a_worker_cannot_run_keeps_no_other_work_from_idle_workers() {
    let plain = || WorkerInfo { operations: Some([("test.t1".to_owned(), 1)].into()), ..WorkerInfo::ANY };
    let special = |buckets: &[&[u32]]| {
        let mut plan = alike(buckets);
        plan.stages[0].tasks[0].operation = "test.special".to_owned();
        plan
    };
    // A bucket of another study is ready, for neither worker.
    let (mut manager, _) = manager(alike(&[&[0, 1, 2, 3]]), 0);
    manager.handle_submit(OTHER, special(&[&[0]]), &BTreeSet::new()).expect("a plan that keeps the rules");
    let (busy, idle) = (manager.handle_join(plain()), manager.handle_join(plain()));
    assert_eq!(ask(&mut manager, busy), ["w0 <- 0 1 2 3 under 0"]);
    assert_eq!(ask(&mut manager, idle), NOTHING);
    assert_eq!(tick(&mut manager, 1), ["share w0 0"]);

    // The first of two idle workers cannot run the instances of a third.
    let (mut manager, _) = self::manager(special(&[&[0, 1, 2, 3]]), 1);
    assert_eq!(ask(&mut manager, WorkerId(0)), ["w0 <- 0 1 2 3 under 0"]);
    let (unable, able) = (manager.handle_join(plain()), manager.handle_join(WorkerInfo::ANY));
    assert_eq!(ask(&mut manager, unable), NOTHING);
    assert_eq!(ask(&mut manager, able), NOTHING);
    assert_eq!(tick(&mut manager, 1), ["share w0 0"]);
}

#[test]
fn studies_take_turns_and_a_worker_has_no_more_of_them_than_its_memory_has_room_for() {
    let mut plan = alike(&[&[0], &[1], &[2]]);
    plan.needs.min_bytes = 10;
    let (mut manager, _) = manager(plan.clone(), 0);
    manager.handle_submit(OTHER, plan, &BTreeSet::new()).expect("a plan that keeps the rules");
    let large = manager.handle_join(WorkerInfo { memory_bytes: 20, ..WorkerInfo::ANY });
    manager.handle_request(large, 3, None);
    assert_eq!(effects(&mut manager), ["w0 <- 0 under 0", "w0 <- 0 of the other under 1", "w0 <- 1 under 2"]);
    let small = manager.handle_join(WorkerInfo { memory_bytes: 19, ..WorkerInfo::ANY });
    manager.handle_request(small, 3, None);
    // The other study has fewer leases. Once the worker knows it, its memory does not suffice for this study.
    assert_eq!(effects(&mut manager), ["w1 <- 1 of the other under 3", "w1 <- 2 of the other under 4"]);
    manager.handle_cancel(OTHER);
    assert_eq!(effects(&mut manager), ["revoke w0 1", "revoke w1 3", "revoke w1 4", "w1 <- 2 under 5"]);
    assert!(!manager.handle_done(small, OTHER, LeaseId(3), InstanceId(1)));
}

#[test]
fn missing_input_reopens_the_instance_despite_a_holder() {
    let (mut manager, workers) = manager(chain(&[(0, None), (1, Some(0))], &[&[0], &[1]]), 2);
    assert_eq!(ask(&mut manager, workers[0]), ["w0 <- 0 under 0"]);
    assert_eq!(done(&mut manager, workers[0], 0, 0), ["finished 0"]);
    assert_eq!(ask(&mut manager, workers[1]), ["w1 <- 1 under 1"]);
    // A key that is not among the instance's inputs is ignored.
    let keys = [output_key(0, 0), tile_key(0)];
    assert!(manager.handle_missing_input(workers[1], STUDY, LeaseId(1), InstanceId(1), &keys));
    assert_eq!(effects(&mut manager), ["reopened 0"]);
    assert_eq!(ask(&mut manager, workers[1]), ["w1 <- 0 under 2"]);
    assert_eq!(ask(&mut manager, workers[1]), NOTHING);
    assert_eq!(done(&mut manager, workers[1], 2, 0), ["finished 0", "w1 <- 1 under 3"]);
}

#[test]
fn suspended_study_keeps_its_leases_and_gets_no_new_ones() {
    let (mut manager, workers) = manager(alike(&[&[0, 1], &[2]]), 2);
    manager.handle_submit(OTHER, alike(&[&[0]]), &BTreeSet::new()).expect("a plan that keeps the rules");
    assert_eq!(ask(&mut manager, workers[0]), ["w0 <- 0 1 under 0"]);
    manager.handle_suspend(STUDY);
    assert_eq!(effects(&mut manager), NOTHING, "nothing is taken away");
    assert_eq!(ask(&mut manager, workers[1]), ["w1 <- 0 of the other under 1"]);
    assert_eq!(ask(&mut manager, workers[1]), NOTHING);
    // The suspended study is not rebalanced either: idle workers stay idle.
    assert_eq!(tick(&mut manager, 3600), NOTHING);
    manager.handle_cancel(STUDY);
    assert_eq!(effects(&mut manager), ["revoke w0 0"]);
}

/// Returns the studies of the replan requests.
fn replans(manager: &mut Manager) -> Vec<PlanId> {
    let mut studies = Vec::new();
    while let Some(effect) = manager.poll_effect() {
        if let Effect::Replan(study) = effect {
            studies.push(study);
        }
    }
    studies
}

#[test]
fn workers_that_join_drain_or_leave_ask_for_a_replan_of_every_study() {
    let (mut manager, workers) = manager(alike(&[&[0, 1], &[2, 3]]), 1);
    manager.handle_submit(OTHER, alike(&[&[0]]), &BTreeSet::new()).expect("a plan that keeps the rules");
    replans(&mut manager);
    let second = manager.handle_join(WorkerInfo::ANY);
    assert_eq!(replans(&mut manager), [STUDY, OTHER], "one joins");
    manager.handle_drain(workers[0]);
    assert_eq!(replans(&mut manager), [STUDY, OTHER], "one drains");
    manager.handle_leave(second, true);
    assert_eq!(replans(&mut manager), [STUDY, OTHER], "one leaves");
}

#[test]
fn ended_studies_are_passed_to_the_disposer() {
    static DISPOSED: AtomicUsize = AtomicUsize::new(0);
    let (manager, workers) = manager(alike(&[&[0]]), 1);
    let mut manager = manager.disposing(|_| _ = DISPOSED.fetch_add(1, Ordering::Relaxed));
    manager.handle_submit(OTHER, alike(&[&[0]]), &BTreeSet::new()).expect("a plan that keeps the rules");
    manager.handle_cancel(OTHER);
    assert_eq!(DISPOSED.load(Ordering::Relaxed), 1, "canceled");
    ask(&mut manager, workers[0]);
    done(&mut manager, workers[0], 0, 0);
    assert_eq!(DISPOSED.load(Ordering::Relaxed), 2, "complete");
}
