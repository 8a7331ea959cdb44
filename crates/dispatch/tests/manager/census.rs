//! Progress of a study for display: instances by state, queue waits, and the predicted remaining time.

use crate::plans::chain;
use crate::solo::{STUDY, manager_of};
use pleach_dispatch::manager::{Manager, WorkerInfo};
use pleach_dispatch::message::{TaskFailure, TaskOutcome, TaskProvenance, TaskReport};
use pleach_dispatch::study::{InstanceCounts, Study};
use pleach_dispatch::{InstanceId, LeaseId, WorkerId};
use std::collections::BTreeSet;
use std::time::Duration;

/// Creates a manager of two chains of two stages, 0 -> 2 and 1 -> 3, with one bucket for each instance.
fn manager(finished: &[u32]) -> Manager {
    let plan = chain(&[(0, None), (0, None), (1, Some(0)), (1, Some(1))], &[&[0], &[1], &[2], &[3]]);
    let finished: BTreeSet<InstanceId> = finished.iter().copied().map(InstanceId).collect();
    manager_of(plan, &finished).expect("a plan that keeps the rules")
}

fn study(manager: &Manager) -> &Study {
    manager.study(STUDY).expect("it is not complete")
}

/// Returns the counts in the order of [`InstanceCounts`].
fn census(manager: &Manager) -> [usize; 5] {
    let InstanceCounts { waiting, ready, leased, finished, failed } = study(manager).census();
    [waiting, ready, leased, finished, failed]
}

fn ran(manager: &mut Manager, worker: WorkerId, instance: u32, stage: u32, seconds: f64) {
    let done = TaskOutcome::Ran { seconds, predicted_seconds: 0.0, digests: 0, digest_seconds: 0.0 };
    let report =
        TaskReport { task: 0, stage, done, cache_seconds: 0.0, provenance: TaskProvenance::default() };
    manager.handle_task_timings(worker, STUDY, InstanceId(instance), &[report]);
}

#[test]
fn instances_are_counted_by_state() {
    let mut manager = manager(&[]);
    assert_eq!((census(&manager), study(&manager).ready_buckets()), ([2, 2, 0, 0, 0], 2));
    let worker = manager.handle_join(WorkerInfo::ANY);
    manager.handle_request(worker, 2, None);
    assert_eq!((census(&manager), study(&manager).ready_buckets()), ([2, 0, 2, 0, 0], 0));
    manager.handle_done(worker, STUDY, LeaseId(0), InstanceId(0));
    assert_eq!((census(&manager), study(&manager).ready_buckets()), ([1, 1, 1, 1, 0], 1));
    let cause = TaskFailure { at: "a".to_owned(), cause: "b".to_owned() };
    manager.handle_failed(worker, STUDY, LeaseId(1), InstanceId(1), &cause);
    assert_eq!(census(&manager), [0, 1, 0, 1, 2], "3 fails with 1");
}

#[test]
fn instances_of_an_earlier_run_count_as_finished() {
    assert_eq!(census(&manager(&[2])), [1, 1, 0, 2, 0], "0 is needed by nobody any more");
}

#[test]
fn a_bucket_waits_from_when_it_is_ready() {
    let mut manager = manager(&[]);
    let second = Duration::from_secs(1);
    let worker = manager.handle_join(WorkerInfo::ANY);
    manager.handle_tick(2 * second);
    manager.handle_request(worker, 1, None);
    assert_eq!(study(&manager).queue_wait(LeaseId(0)), Some(2 * second));
    manager.handle_tick(5 * second);
    manager.handle_done(worker, STUDY, LeaseId(0), InstanceId(0));
    manager.handle_tick(6 * second);
    manager.handle_request(worker, 2, None);
    // Instance 2 comes first, since its stage is later. It became ready at 5 s, instance 1 at 0 s.
    let waited = |lease| study(&manager).queue_wait(LeaseId(lease));
    assert_eq!([waited(1), waited(2), waited(9)], [Some(second), Some(6 * second), None]);
    // Instances of a lost worker are ready from the time of the loss.
    manager.handle_leave(worker, true);
    manager.handle_tick(10 * second);
    let other = manager.handle_join(WorkerInfo::ANY);
    manager.handle_request(other, 1, None);
    assert_eq!(study(&manager).queue_wait(LeaseId(3)), Some(4 * second));
}

#[test]
fn remaining_time_is_predicted_once_each_open_stage_ran() {
    let mut manager = manager(&[]);
    let worker = manager.handle_join(WorkerInfo::ANY);
    manager.handle_request(worker, 2, None);
    manager.handle_done(worker, STUDY, LeaseId(0), InstanceId(0));
    ran(&mut manager, worker, 0, 0, 3.0);
    assert_eq!(study(&manager).predicted_remaining_seconds(1), None, "nobody has finished the second stage");
    manager.handle_request(worker, 1, None);
    manager.handle_done(worker, STUDY, LeaseId(2), InstanceId(2));
    ran(&mut manager, worker, 2, 1, 5.0);
    assert_eq!(study(&manager).predicted_remaining_seconds(1), Some(8.0));
    assert_eq!(study(&manager).predicted_remaining_seconds(4), Some(2.0));
    assert_eq!(study(&manager).predicted_remaining_seconds(0), None, "there is nobody to do it");
    manager.handle_done(worker, STUDY, LeaseId(1), InstanceId(1));
    assert_eq!(
        study(&manager).predicted_remaining_seconds(1),
        Some(5.0),
        "of the first stage nothing is left"
    );
}
