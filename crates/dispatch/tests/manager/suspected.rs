//! Isolation under constant load: a suspect instance does not wait until the end of the study.

use crate::elastic::{NOTHING, alike, ask, done, effects, manager, tick};
use pleach_dispatch::WorkerId;
use pleach_dispatch::manager::{Manager, WorkerInfo};

/// Creates a manager of 30 instances without parents. The first instance was on 3 lost workers and waits for an
/// empty worker. Of the two remaining workers, the first has 2 leases and the second has 1.
fn busy() -> (Manager, [WorkerId; 2]) {
    let buckets: Vec<[u32; 1]> = (0..30).map(|id| [id]).collect();
    let buckets: Vec<&[u32]> = buckets.iter().map(<[u32; 1]>::as_slice).collect();
    let (mut manager, workers) = manager(alike(&buckets), 3);
    let mut lose = |number: usize, lease: u64| {
        let worker = manager.handle_join(WorkerInfo::ANY);
        assert_eq!(ask(&mut manager, worker), [format!("w{number} <- 0 under {lease}")]);
        manager.handle_leave(worker, true);
        assert_eq!(effects(&mut manager), NOTHING);
    };
    lose(3, 0);
    lose(4, 1);
    // The instance is a suspect. An empty worker gets it, gets nothing beside it, and is lost.
    assert_eq!(ask(&mut manager, workers[2]), ["w2 <- 0 under 2"]);
    assert_eq!(ask(&mut manager, workers[2]), NOTHING);
    assert_eq!(ask(&mut manager, workers[0]), ["w0 <- 1 under 3"]);
    assert_eq!(ask(&mut manager, workers[0]), ["w0 <- 2 under 4"]);
    assert_eq!(ask(&mut manager, workers[1]), ["w1 <- 3 under 5"]);
    manager.handle_leave(workers[2], true);
    assert_eq!(effects(&mut manager), NOTHING);
    (manager, [workers[0], workers[1]])
}

#[test]
fn waiting_suspect_reserves_the_least_busy_worker() {
    let (mut manager, [busier, other]) = busy();
    // Both workers always have leases, and request more before these end.
    assert_eq!(tick(&mut manager, 1), NOTHING);
    assert_eq!(ask(&mut manager, other), ["w1 <- 4 under 6"]);
    assert_eq!(done(&mut manager, other, 5, 3), ["finished 3"]);
    assert_eq!(tick(&mut manager, 4), NOTHING);
    assert_eq!(ask(&mut manager, other), ["w1 <- 5 under 7"]);
    assert_eq!(done(&mut manager, other, 6, 4), ["finished 4"]);
    // The suspect is overdue after four times the mean time of an instance, which is 2 s at 9 s and 3 s at 20
    // s. The least busy worker then gets nothing more until it is empty.
    assert_eq!(tick(&mut manager, 9), NOTHING);
    assert_eq!(ask(&mut manager, other), ["w1 <- 6 under 8"]);
    assert_eq!(done(&mut manager, other, 7, 5), ["finished 5"]);
    assert_eq!(tick(&mut manager, 20), NOTHING);
    assert_eq!(ask(&mut manager, other), NOTHING);
    assert_eq!(tick(&mut manager, 21), NOTHING);
    // The other worker still gets buckets.
    assert_eq!(ask(&mut manager, busier), ["w0 <- 7 under 9"]);
    assert_eq!(done(&mut manager, other, 8, 6), ["finished 6", "w1 <- 0 under 10"]);
    assert_eq!(ask(&mut manager, other), NOTHING);
    // The suspect is finished and cleared, so the worker gets other buckets again.
    assert_eq!(done(&mut manager, other, 10, 0), ["finished 0", "w1 <- 8 under 11"]);
    assert_eq!(ask(&mut manager, other), ["w1 <- 9 under 12"]);
}

#[test]
fn reserved_worker_is_released_once_another_took_the_suspect() {
    let (mut manager, [_, kept]) = busy();
    assert_eq!(tick(&mut manager, 1), NOTHING);
    assert_eq!(tick(&mut manager, 5), NOTHING);
    assert_eq!(ask(&mut manager, kept), NOTHING);
    let idle = manager.handle_join(WorkerInfo::ANY);
    // The idle worker takes the suspect. The reserved worker is released and gets the bucket that it requested.
    assert_eq!(ask(&mut manager, idle), ["w5 <- 0 under 6", "w1 <- 4 under 7"]);
}

#[test]
fn draining_reserved_worker_is_replaced() {
    let (mut manager, [other, kept]) = busy();
    assert_eq!(tick(&mut manager, 1), NOTHING);
    assert_eq!(tick(&mut manager, 5), NOTHING);
    assert_eq!(ask(&mut manager, kept), NOTHING);
    assert_eq!(ask(&mut manager, other), ["w0 <- 4 under 6"]);
    manager.handle_drain(kept);
    assert_eq!(effects(&mut manager), ["drain w1"]);
    assert_eq!(tick(&mut manager, 6), NOTHING);
    assert_eq!(ask(&mut manager, other), NOTHING);
}

#[test]
fn suspect_goes_to_the_latest_request() {
    let (mut manager, workers) = manager(alike(&[&[0]]), 4);
    // Workers that wait take turns, and those that have waited longest are lost with the instance.
    let first = ask(&mut manager, workers[0]);
    assert_eq!(first, ["w0 <- 0 under 0"]);
    workers[1..].iter().for_each(|worker| assert_eq!(ask(&mut manager, *worker), NOTHING));
    manager.handle_leave(workers[0], true);
    assert_eq!(effects(&mut manager), ["w1 <- 0 under 1"]);
    manager.handle_leave(workers[1], true);
    // A suspect now. The last worker has made its request last.
    assert_eq!(effects(&mut manager), ["w3 <- 0 under 2"]);
}
