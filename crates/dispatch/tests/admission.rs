//! A worker whose memory is short, by examples: each rule alone, whose turn it is, and messages that cross.

use pleach_dispatch::memory_model::{BucketDemand, MemoryBudget, MemoryForecast};
use pleach_dispatch::stage::NodeId;
use pleach_dispatch::worker::{Effect, Worker};
use pleach_dispatch::{BucketId, LeaseId, PlanId, SlotId};

const NONE: [u64; 0] = [];

/// A worker with slots enough, and the study that it works on: three stages, so much at least.
fn worker(bytes: u64, least_bytes: u64) -> Worker {
    let mut worker = Worker::new(4, MemoryBudget { bytes, ..MemoryBudget::UNLIMITED });
    worker.handle_study(PlanId::whole(0), 3, least_bytes);
    effects(&mut worker);
    worker
}

/// A bucket of the plan and a lease of the same number.
fn assign(worker: &mut Worker, number: u64, stage: u32) {
    worker.handle_assigned(LeaseId(number), stage, BucketId(number as u32), false);
}

/// One ready task of a bucket not begun; when it is done, it holds what it took, and needs nothing more.
fn task(bytes: u64) -> BucketDemand {
    let forecast = MemoryForecast { growth_bytes: bytes, finish_bytes: bytes };
    BucketDemand {
        ready: 1,
        next: Some(NodeId(0)),
        next_bytes: bytes,
        then: forecast,
        ..BucketDemand::default()
    }
}

/// What a bucket says once it holds something, with one more task ready.
fn holding(heard: u64, held_bytes: u64, next_bytes: u64, finish_bytes: u64) -> BucketDemand {
    let now = MemoryForecast { growth_bytes: 0, finish_bytes };
    let then = MemoryForecast { growth_bytes: next_bytes, finish_bytes };
    let next = Some(NodeId(heard as u32));
    BucketDemand {
        heard,
        ready: 1,
        next,
        started: true,
        held_bytes,
        next_bytes,
        now,
        then,
        ..BucketDemand::default()
    }
}

/// What a bucket says whose tasks all run.
fn busy(heard: u64, growth_bytes: u64, finish_bytes: u64) -> BucketDemand {
    let now = MemoryForecast { growth_bytes, finish_bytes };
    BucketDemand { heard, started: true, now, then: now, ..BucketDemand::default() }
}

fn effects(worker: &mut Worker) -> Vec<Effect> {
    std::iter::from_fn(|| worker.poll_effect()).collect()
}

/// Leases of the grants among the effects.
fn grants(worker: &mut Worker) -> Vec<u64> {
    let lease = |effect| match effect {
        Effect::Grant { lease, .. } => Some(lease.0),
        _ => None,
    };
    effects(worker).into_iter().filter_map(lease).collect()
}

/// The number of the last call among the effects.
fn call(worker: &mut Worker) -> Option<u64> {
    let call = |effect| match effect {
        Effect::Call { call } => Some(call),
        _ => None,
    };
    effects(worker).into_iter().filter_map(call).next_back()
}

#[test]
fn a_task_starts_when_what_it_takes_fits_beside_what_is_held_and_reserved() {
    let mut worker = worker(100, 0);
    worker.handle_stored(30);
    for (number, demand) in [task(40), task(31), task(30)].into_iter().enumerate() {
        assign(&mut worker, number as u64, 0);
        worker.handle_demand(LeaseId(number as u64), demand);
    }
    // The second would be the 101st byte, and is overtaken, for it holds nothing.
    assert_eq!(grants(&mut worker), [0, 2]);
    assert_eq!(worker.peak_bytes(), 100);
    worker.handle_stored(29);
    assert_eq!(grants(&mut worker), NONE);
    worker.handle_bucket_finished(LeaseId(2));
    assert_eq!(grants(&mut worker), NONE, "its task still has the slot");
    worker.handle_slot_free(SlotId(1), LeaseId(2), BucketDemand::default());
    assert_eq!(grants(&mut worker), [1]);
}

#[test]
fn inputs_are_taken_with_the_first_task_unless_another_bucket_brings_them_before() {
    let mut worker = worker(100, 0);
    for number in 0..2 {
        assign(&mut worker, number, 0);
        worker.handle_demand(LeaseId(number), BucketDemand { load_bytes: 50, ..task(20) });
    }
    assert_eq!(grants(&mut worker), [0]);
    assert_eq!(worker.peak_bytes(), 70);
    // They are there now, and those that the second one would have brought are the same.
    worker.handle_stored(50);
    worker.handle_inputs(LeaseId(1), 0, 0);
    let held = BucketDemand { next: None, ready: 0, ..holding(1, 20, 0, 0) };
    worker.handle_slot_free(SlotId(0), LeaseId(0), held);
    assert_eq!(grants(&mut worker), [1]);
    assert_eq!(worker.peak_bytes(), 90);
    // Of one that has begun, nothing is missing any more.
    worker.handle_inputs(LeaseId(1), 0, 1000);
    assign(&mut worker, 2, 0);
    worker.handle_demand(LeaseId(2), task(10));
    assert_eq!(grants(&mut worker), [2]);
}

#[test]
fn buckets_under_way_can_be_finished_one_after_the_other() {
    // Each holds a part of what it needs: together they would wait for each other for ever.
    let bucket = |growth_bytes, finish_bytes| BucketDemand {
        then: MemoryForecast { growth_bytes, finish_bytes },
        ..task(growth_bytes)
    };
    let mut worker = worker(100, 0);
    for number in 0..2 {
        assign(&mut worker, number, 0);
        worker.handle_demand(LeaseId(number), bucket(40, 70));
    }
    assert_eq!(grants(&mut worker), [0]);
    // With 30 left beside the other, it can.
    worker.handle_demand(LeaseId(1), bucket(30, 90));
    assert_eq!(grants(&mut worker), [1]);
}

#[test]
fn what_a_bucket_brings_is_in_the_way_of_those_that_are_finished_before_it() {
    for (load_bytes, granted) in [(20, vec![0, 1]), (21, vec![0])] {
        let mut worker = worker(100, 0);
        assign(&mut worker, 0, 0);
        worker.handle_demand(
            LeaseId(0),
            BucketDemand { then: MemoryForecast { growth_bytes: 10, finish_bytes: 70 }, ..task(10) },
        );
        assign(&mut worker, 1, 0);
        worker.handle_demand(LeaseId(1), BucketDemand { load_bytes, ..task(10) });
        assert_eq!(grants(&mut worker), granted, "{load_bytes}");
    }
}

#[test]
fn what_a_finished_bucket_has_let_go_of_is_there_for_the_next() {
    // 60 are held by the first, and 90 needed by the second: not at once.
    let mut worker = worker(100, 0);
    assign(&mut worker, 0, 0);
    worker.handle_demand(LeaseId(0), task(60));
    assert_eq!(grants(&mut worker), [0]);
    let held = BucketDemand { ready: 0, next: None, ..holding(1, 60, 0, 5) };
    worker.handle_demand(LeaseId(0), BucketDemand { held_bytes: 0, ..held });
    worker.handle_slot_free(SlotId(0), LeaseId(0), held);
    assign(&mut worker, 1, 0);
    let then = MemoryForecast { growth_bytes: 10, finish_bytes: 90 };
    worker.handle_demand(LeaseId(1), BucketDemand { then, ..task(10) });
    assert_eq!(grants(&mut worker), [1]);
}

#[test]
fn what_stays_of_a_finished_bucket_is_in_the_way_of_the_next() {
    // Each can be finished while the other holds 10; when the first is over, its inputs and what has to wait stay.
    let bucket = |load_bytes, stay_bytes, finish_bytes| BucketDemand {
        load_bytes,
        stay_bytes,
        then: MemoryForecast { growth_bytes: 10, finish_bytes },
        ..task(10)
    };
    for (load_bytes, stay_bytes, granted) in [(0, 0, vec![0, 1]), (20, 0, vec![0]), (0, 20, vec![0])] {
        let mut worker = worker(100, 0);
        assign(&mut worker, 0, 0);
        worker.handle_demand(LeaseId(0), bucket(load_bytes, stay_bytes, 20));
        assign(&mut worker, 1, 0);
        worker.handle_demand(LeaseId(1), bucket(0, 0, 90));
        assert_eq!(grants(&mut worker), granted, "{load_bytes} {stay_bytes}");
    }
}

#[test]
fn a_bucket_that_leaves_regions_behind_is_begun_only_beside_what_the_rest_takes() {
    // 10 of the first, and 60 for the rest: 30 are left to what is stored already and what comes.
    for (stored_bytes, store_bytes, load_bytes, granted) in [
        (10, 20, 0, vec![0, 1]),
        (10, 21, 0, vec![0]),
        (10, 0, 20, vec![0, 1]),
        (10, 0, 21, vec![0]),
        // One that leaves nothing behind is not in the way.
        (31, 0, 0, vec![0, 1]),
    ] {
        let mut worker = worker(100, 60);
        assign(&mut worker, 0, 1);
        worker.handle_demand(LeaseId(0), BucketDemand { store_bytes: 10, ..task(5) });
        worker.handle_stored(stored_bytes);
        assign(&mut worker, 1, 0);
        worker.handle_demand(LeaseId(1), BucketDemand { store_bytes, load_bytes, ..task(5) });
        assert_eq!(grants(&mut worker), granted, "{stored_bytes} {store_bytes} {load_bytes}");
    }
}

#[test]
fn a_bucket_under_way_is_not_overtaken() {
    let mut worker = worker(100, 0);
    assign(&mut worker, 0, 0);
    worker.handle_demand(LeaseId(0), task(20));
    assign(&mut worker, 1, 0);
    worker.handle_demand(LeaseId(1), task(60));
    assert_eq!(grants(&mut worker), [0, 1]);
    worker.handle_demand(LeaseId(1), busy(1, 0, 0));
    worker.handle_slot_free(SlotId(0), LeaseId(0), holding(1, 20, 30, 30));
    // 30 more are not there, 10 would be.
    assign(&mut worker, 2, 0);
    worker.handle_demand(LeaseId(2), task(10));
    assert_eq!(grants(&mut worker), NONE);
    worker.handle_bucket_finished(LeaseId(1));
    worker.handle_slot_free(SlotId(1), LeaseId(1), BucketDemand::default());
    assert_eq!(grants(&mut worker), [0, 2]);
}

#[test]
fn what_is_said_before_a_grant_is_heard_is_not_taken_for_what_comes_after() {
    // Two of four tasks run, the third is granted: it lets go of 50 when it is done.
    let mut worker = worker(100, 0);
    assign(&mut worker, 0, 0);
    worker.handle_demand(LeaseId(0), task(10));
    assert_eq!(grants(&mut worker), [0]);
    let then = MemoryForecast { growth_bytes: 0, finish_bytes: 20 };
    worker.handle_demand(LeaseId(0), BucketDemand { then, ..holding(1, 50, 10, 70) });
    assert_eq!(grants(&mut worker), [0]);
    // Meanwhile the first has ended, and the stage does not know of the third: 5 more are held.
    let crossed = holding(1, 55, 10, 70);
    worker.handle_slot_free(SlotId(0), LeaseId(0), crossed);
    assert_eq!(grants(&mut worker), NONE, "one grant at a time");
    // Another bucket is admitted by what is foreseen of both: 50 + 20 beside 30.
    assign(&mut worker, 1, 0);
    worker.handle_demand(LeaseId(1), task(30));
    assert_eq!(grants(&mut worker), [1]);
    // When the stage has heard, what it says counts again.
    worker.handle_demand(LeaseId(0), holding(2, 55, 5, 5));
    assert_eq!(grants(&mut worker), [0]);
}

#[test]
fn who_is_stuck_calls_and_goes_by_turns_when_nothing_is_on_its_way() {
    let mut worker = worker(100, 60);
    worker.handle_stored(50);
    // Refused by the third rule: 50 and 10 beside 60.
    assign(&mut worker, 3, 1);
    worker.handle_demand(LeaseId(3), BucketDemand { store_bytes: 10, ..task(20) });
    let first = call(&mut worker).expect("a call");
    // What was on its way comes first: the call is void, whatever is said to it.
    assign(&mut worker, 2, 1);
    assert_eq!(call(&mut worker), None, "the new one has not spoken");
    worker.handle_demand(LeaseId(2), BucketDemand { store_bytes: 10, ..task(30) });
    worker.handle_sync_ack(first);
    assert_eq!(grants(&mut worker), NONE);
    let second = first + 1;
    worker.handle_sync_ack(second);
    // It is the turn of the one that is first in the plan.
    assert_eq!(grants(&mut worker), [2]);
    worker.handle_sync_ack(second);
    assert_eq!(effects(&mut worker), []);
    assert_eq!(worker.peak_bytes(), 80);
}

#[test]
fn what_is_asked_for_after_a_call_needs_another_call() {
    let mut worker = worker(100, 60);
    worker.handle_stored(50);
    for number in 0..4 {
        assign(&mut worker, number, 1);
        worker.handle_demand(LeaseId(number), BucketDemand { store_bytes: 10, ..task(20) });
    }
    let first = call(&mut worker).expect("a call");
    // One of them cannot be run: another one is asked for, which may come before those that are here.
    worker.handle_bucket_finished(LeaseId(3));
    assert_eq!(
        effects(&mut worker),
        [Effect::Request { buckets: 1, after: None }, Effect::Call { call: first + 1 }]
    );
    worker.handle_sync_ack(first);
    assert_eq!(effects(&mut worker), []);
    worker.handle_sync_ack(first + 1);
    assert_eq!(grants(&mut worker), [0]);
}

#[test]
fn a_release_that_comes_late_comes_before_the_echo() {
    let mut worker = worker(100, 0);
    worker.handle_stored(90);
    assign(&mut worker, 0, 0);
    worker.handle_demand(LeaseId(0), task(20));
    let number = call(&mut worker).expect("a call");
    worker.handle_stored(80);
    assert_eq!(grants(&mut worker), [0]);
    worker.handle_sync_ack(number);
    assert_eq!(effects(&mut worker), []);
    assert_eq!(worker.peak_bytes(), 100);
}

#[test]
fn a_bucket_under_way_goes_on_where_one_before_it_does_not_fit() {
    let mut worker = worker(100, 60);
    assign(&mut worker, 0, 0);
    worker.handle_demand(LeaseId(0), task(10));
    assert_eq!(grants(&mut worker), [0]);
    // It holds 80 now, and is foreseen not to fit; one of the last stage has come that does not fit either, and one
    // of the same stage that would.
    worker.handle_slot_free(SlotId(0), LeaseId(0), holding(1, 80, 20, 30));
    assert!(call(&mut worker).is_some());
    assign(&mut worker, 1, 2);
    worker.handle_demand(LeaseId(1), task(30));
    assign(&mut worker, 2, 0);
    worker.handle_demand(LeaseId(2), BucketDemand { store_bytes: 1, ..task(5) });
    let number = call(&mut worker).expect("a call");
    worker.handle_sync_ack(number);
    assert_eq!(grants(&mut worker), [0]);
}

#[test]
fn a_bucket_that_is_not_first_does_not_begin_because_the_first_does_not_fit() {
    let mut worker = worker(100, 60);
    worker.handle_stored(50);
    assign(&mut worker, 0, 1);
    worker.handle_demand(LeaseId(0), task(60));
    assign(&mut worker, 1, 0);
    worker.handle_demand(LeaseId(1), BucketDemand { store_bytes: 10, ..task(10) });
    let number = call(&mut worker).expect("a call");
    worker.handle_sync_ack(number);
    // Beyond the budget rather than further away from what is needed.
    assert_eq!((grants(&mut worker), worker.peak_bytes()), (vec![0], 110));
}

#[test]
fn what_never_fits_runs_alone_beyond_the_budget() {
    let mut worker = worker(100, 0);
    assign(&mut worker, 0, 0);
    worker.handle_demand(LeaseId(0), task(150));
    let number = call(&mut worker).expect("a call");
    assert_eq!(worker.peak_bytes(), 0);
    worker.handle_sync_ack(number);
    assert_eq!(grants(&mut worker), [0]);
    assert_eq!(worker.peak_bytes(), 150);
    assign(&mut worker, 1, 0);
    worker.handle_demand(LeaseId(1), task(1));
    assert_eq!(effects(&mut worker), [], "something runs: nobody calls");
}

#[test]
fn told_to_stop_a_worker_starts_nothing_and_leaves_when_nothing_runs() {
    let mut worker = worker(100, 0);
    for number in 0..2 {
        assign(&mut worker, number, 0);
        worker.handle_demand(LeaseId(number), task(10));
    }
    assert_eq!(grants(&mut worker), [0, 1]);
    worker.handle_stop();
    assign(&mut worker, 2, 0);
    worker.handle_demand(LeaseId(2), task(10));
    worker.handle_slot_free(SlotId(1), LeaseId(1), holding(1, 10, 10, 10));
    assert_eq!(effects(&mut worker), []);
    worker.handle_slot_free(SlotId(0), LeaseId(0), BucketDemand::default());
    assert_eq!(effects(&mut worker), [Effect::Leave]);
    worker.handle_stop();
    worker.handle_stored(0);
    worker.handle_bucket_finished(LeaseId(0));
    assert_eq!(effects(&mut worker), [], "it leaves once");
}

#[test]
fn told_to_stop_with_nothing_running_a_worker_leaves_at_once() {
    let mut idle = worker(100, 0);
    idle.handle_stop();
    assert_eq!(effects(&mut idle), [Effect::Leave]);

    // Also when it is stuck; the echo is of no interest any more.
    let mut stuck = worker(100, 0);
    assign(&mut stuck, 0, 0);
    stuck.handle_demand(LeaseId(0), task(150));
    let number = call(&mut stuck).expect("a call");
    stuck.handle_stop();
    stuck.handle_sync_ack(number);
    assert_eq!(effects(&mut stuck), [Effect::Leave]);
}

#[test]
fn room_is_made_below_before_a_task_is_refused() {
    let mut worker = worker(100, 0);
    worker.handle_spillable(50, 1000);
    worker.handle_stored(80);
    assign(&mut worker, 0, 0);
    // Of what could leave memory, it reads 10 itself.
    worker.handle_demand(LeaseId(0), BucketDemand { here_bytes: 10, ..task(45) });
    let asked = Effect::MakeRoom { bytes: 25, lease: LeaseId(0) };
    assert!(effects(&mut worker).contains(&asked));
    // Nothing else begins meanwhile: it might read what is leaving.
    assign(&mut worker, 1, 1);
    worker.handle_demand(LeaseId(1), task(1));
    assert_eq!(grants(&mut worker), NONE);
    worker.handle_spillable(20, 970);
    worker.handle_stored(50);
    worker.handle_memory_freed(30);
    assert_eq!(grants(&mut worker), [1, 0]);
}

/// Of 100 bytes, 80 are stored, of which 50 could leave; a task of 45 waits until 25 have.
fn in_need_of_room() -> Worker {
    let mut worker = worker(100, 0);
    worker.handle_spillable(50, 1000);
    worker.handle_stored(80);
    assign(&mut worker, 0, 0);
    worker.handle_demand(LeaseId(0), task(45));
    assert!(effects(&mut worker).contains(&Effect::MakeRoom { bytes: 25, lease: LeaseId(0) }));
    worker
}

#[test]
fn room_that_others_have_filled_meanwhile_is_made_again() {
    let mut worker = in_need_of_room();
    // 30 have left, and 40 have come.
    worker.handle_spillable(60, 970);
    worker.handle_stored(90);
    worker.handle_memory_freed(30);
    assert!(effects(&mut worker).contains(&Effect::MakeRoom { bytes: 35, lease: LeaseId(0) }));
    worker.handle_spillable(25, 935);
    worker.handle_stored(55);
    worker.handle_memory_freed(35);
    assert_eq!(grants(&mut worker), [0]);
    assert_eq!(worker.peak_bytes(), 100);
}

/// What is begun goes on in its order: room is made for the first that this is enough for, before a later one adds to what
/// is held.
#[test]
fn room_is_made_for_what_goes_on_by_turns() {
    let mut worker = worker(100, 0);
    worker.handle_spillable(30, 1000);
    worker.handle_stored(30);
    // By what is foreseen none can finish; the first does not fit even when all has gone that can.
    for (number, stage, demand) in
        [(1, 0, holding(0, 20, 40, 200)), (2, 0, holding(0, 20, 10, 200)), (0, 1, task(100))]
    {
        assign(&mut worker, number, stage);
        worker.handle_demand(LeaseId(number), demand);
    }
    let number = call(&mut worker).expect("nothing is admitted");
    worker.handle_sync_ack(number);
    assert_eq!(effects(&mut worker), [Effect::MakeRoom { bytes: 10, lease: LeaseId(1) }]);
    worker.handle_spillable(0, 970);
    worker.handle_stored(0);
    worker.handle_memory_freed(30);
    let number = call(&mut worker).expect("nothing is admitted");
    worker.handle_sync_ack(number);
    assert_eq!(grants(&mut worker), [1]);
}

#[test]
fn room_that_cannot_be_made_is_not_asked_for_again() {
    let mut worker = in_need_of_room();
    // The disk is broken: as much is stored as before.
    worker.handle_spillable(50, 1000);
    worker.handle_stored(80);
    worker.handle_memory_freed(0);
    let call = call(&mut worker).expect("nothing runs");
    worker.handle_sync_ack(call);
    // Its turn has come, whatever it takes.
    assert_eq!(grants(&mut worker), [0]);
    assert_eq!(worker.peak_bytes(), 125);
}
