//! Admission beside the processes that run external operations, by examples. `memory` has the property.

use crate::admission::{NONE, assign, grants, task, worker};
use pleach_dispatch::LeaseId;
use pleach_dispatch::worker::Worker;

/// Assigns buckets with one task of these bytes each. Returns those whose tasks have started.
fn started(worker: &mut Worker, tasks: [u64; 3]) -> Vec<u64> {
    for (number, bytes) in (0..).zip(tasks) {
        assign(worker, number, 0);
        worker.handle_demand(LeaseId(number), task(bytes));
    }
    grants(worker)
}

/// Processes of external operations take their part of the budget, and give it back.
#[test]
fn task_starts_when_it_fits_beside_processes() {
    let mut worker = worker(100, 20);
    worker.handle_processes(41);
    worker.handle_stored(20);
    assert_eq!(started(&mut worker, [20, 20, 19]), [0, 2], "59 bytes are left");
    worker.handle_processes(21);
    assert_eq!(grants(&mut worker), NONE, "the stored bytes may be others by now");
    worker.handle_stored(20);
    assert_eq!(grants(&mut worker), [1]);
}

/// Processes that grow take nothing from the minimum memory of the studies, so that they end.
#[test]
fn processes_leave_the_minimum_memory_of_the_studies() {
    let mut worker = worker(100, 60);
    worker.handle_processes(1000);
    worker.handle_stored(20);
    assert_eq!((started(&mut worker, [30, 30, 10]), worker.peak_bytes()), (vec![0, 2], 60));
}
