//! Admission beside the processes that run external operations, by examples. `memory` has the property.

use crate::admission::{NONE, assign, grants, task, worker};
use pleach_dispatch::LeaseId;

/// Processes of external operations take their part of the budget, and give it back.
#[test]
fn task_starts_when_it_fits_beside_processes() {
    let mut worker = worker(100, 20);
    worker.handle_processes(41);
    worker.handle_stored(20);
    for (number, demand) in [task(20), task(20), task(19)].into_iter().enumerate() {
        assign(&mut worker, number as u64, 0);
        worker.handle_demand(LeaseId(number as u64), demand);
    }
    assert_eq!(grants(&mut worker), [0, 2], "59 bytes are left");
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
    for (number, demand) in [task(30), task(30), task(10)].into_iter().enumerate() {
        assign(&mut worker, number as u64, 0);
        worker.handle_demand(LeaseId(number as u64), demand);
    }
    assert_eq!((grants(&mut worker), worker.peak_bytes()), (vec![0, 2], 60));
}
