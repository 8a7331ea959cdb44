//! Admission control with little memory, by examples: each rule alone, the order of admission, and crossing
//! messages.

use pleach_dispatch::memory_model::{BucketDemand, MemoryBudget, MemoryForecast};
use pleach_dispatch::message::GrantReason;
use pleach_dispatch::stage::NodeId;
use pleach_dispatch::worker::{Effect, Worker};
use pleach_dispatch::{BucketId, LeaseId, PlanId, SlotId};

pub(crate) const NONE: [u64; 0] = [];

/// Creates a worker with 4 slots and `bytes` of memory, and one study of 3 stages that needs at least
/// `min_bytes`.
pub(crate) fn worker(bytes: u64, min_bytes: u64) -> Worker {
    let mut worker = Worker::new(4, MemoryBudget { bytes, ..MemoryBudget::UNLIMITED });
    worker.handle_study(PlanId::first_round(0), 3, min_bytes);
    effects(&mut worker);
    worker
}

/// Assigns a bucket under a lease of the same number.
pub(crate) fn assign(worker: &mut Worker, number: u64, stage: u32) {
    worker.handle_assigned(LeaseId(number), stage, BucketId(number as u32), GrantReason::Request);
}

/// Demand of an unstarted bucket with one ready task of `bytes`. After the task, the bucket holds these bytes
/// and needs no more.
pub(crate) fn task(bytes: u64) -> BucketDemand {
    let forecast = MemoryForecast { growth_bytes: bytes, finish_bytes: bytes };
    BucketDemand {
        ready: 1,
        next: Some(NodeId(0)),
        next_bytes: bytes,
        then: forecast,
        ..BucketDemand::default()
    }
}

/// Demand of a started bucket that holds `held_bytes` and has one more ready task.
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

/// Demand of a started bucket without a ready task: the others run.
fn busy(heard: u64, growth_bytes: u64, finish_bytes: u64) -> BucketDemand {
    let now = MemoryForecast { growth_bytes, finish_bytes };
    BucketDemand { heard, started: true, now, then: now, ..BucketDemand::default() }
}

fn effects(worker: &mut Worker) -> Vec<Effect> {
    std::iter::from_fn(|| worker.poll_effect()).collect()
}

/// Returns the leases of the grants among the effects.
pub(crate) fn grants(worker: &mut Worker) -> Vec<u64> {
    let lease = |effect| match effect {
        Effect::Grant { lease, .. } => Some(lease.0),
        _ => None,
    };
    effects(worker).into_iter().filter_map(lease).collect()
}

/// Returns the number of the last sync among the effects.
fn call(worker: &mut Worker) -> Option<u64> {
    let call = |effect| match effect {
        Effect::Call { call } => Some(call),
        _ => None,
    };
    effects(worker).into_iter().filter_map(call).next_back()
}

#[test]
fn task_starts_when_it_fits_beside_stored_and_reserved() {
    let mut worker = worker(100, 0);
    worker.handle_stored(30);
    for (number, demand) in [task(40), task(31), task(30)].into_iter().enumerate() {
        assign(&mut worker, number as u64, 0);
        worker.handle_demand(LeaseId(number as u64), demand);
    }
    // The second task would need 101 bytes. The third overtakes it, since its bucket holds nothing.
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
    // The inputs are stored now, and the second bucket reads the same ones.
    worker.handle_stored(50);
    worker.handle_inputs(LeaseId(1), 0, 0);
    let held = BucketDemand { next: None, ready: 0, ..holding(1, 20, 0, 0) };
    worker.handle_slot_free(SlotId(0), LeaseId(0), held);
    assert_eq!(grants(&mut worker), [1]);
    assert_eq!(worker.peak_bytes(), 90);
    // A started bucket misses no inputs, so this update is ignored.
    worker.handle_inputs(LeaseId(1), 0, 1000);
    assign(&mut worker, 2, 0);
    worker.handle_demand(LeaseId(2), task(10));
    assert_eq!(grants(&mut worker), [2]);
}

#[test]
fn buckets_under_way_can_be_finished_one_after_the_other() {
    // Each bucket would hold 40 of the 70 bytes that it needs. Together they would deadlock.
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
    // With a growth of 30 bytes, the second bucket leaves the 70 bytes that the first needs to finish.
    worker.handle_demand(LeaseId(1), bucket(30, 90));
    assert_eq!(grants(&mut worker), [1]);
}

#[test]
fn inputs_of_a_bucket_count_against_earlier_buckets() {
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
fn bytes_released_by_a_finished_bucket_admit_the_next() {
    // The first bucket holds 60 bytes and the second needs up to 90. They fit one after the other.
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
fn bytes_left_by_a_finished_bucket_block_the_next() {
    // Each bucket can finish while the other holds 10 bytes. After the first one, its loaded inputs and its
    // waiting outputs stay in memory.
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
    // The first bucket leaves 10 bytes, and the study needs at least 60. 30 bytes remain for stored regions and
    // new ones.
    for (stored_bytes, store_bytes, load_bytes, granted) in [
        (10, 20, 0, vec![0, 1]),
        (10, 21, 0, vec![0]),
        (10, 0, 20, vec![0, 1]),
        (10, 0, 21, vec![0]),
        // Rule 3 does not apply to a bucket that leaves nothing behind.
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
fn running_bucket_is_not_overtaken() {
    let mut worker = worker(100, 0);
    assign(&mut worker, 0, 0);
    worker.handle_demand(LeaseId(0), task(20));
    assign(&mut worker, 1, 0);
    worker.handle_demand(LeaseId(1), task(60));
    assert_eq!(grants(&mut worker), [0, 1]);
    worker.handle_demand(LeaseId(1), busy(1, 0, 0));
    worker.handle_slot_free(SlotId(0), LeaseId(0), holding(1, 20, 30, 30));
    // The 30 bytes of the started bucket do not fit. The 10 bytes of the new one would, but it must not
    // overtake.
    assign(&mut worker, 2, 0);
    worker.handle_demand(LeaseId(2), task(10));
    assert_eq!(grants(&mut worker), NONE);
    worker.handle_bucket_finished(LeaseId(1));
    worker.handle_slot_free(SlotId(1), LeaseId(1), BucketDemand::default());
    assert_eq!(grants(&mut worker), [0, 2]);
}

#[test]
fn demand_sent_before_a_grant_arrives_is_ignored() {
    // The next task releases 50 bytes: the forecast is 70 bytes before its grant and 20 after.
    let mut worker = worker(100, 0);
    assign(&mut worker, 0, 0);
    worker.handle_demand(LeaseId(0), task(10));
    assert_eq!(grants(&mut worker), [0]);
    let then = MemoryForecast { growth_bytes: 0, finish_bytes: 20 };
    worker.handle_demand(LeaseId(0), BucketDemand { then, ..holding(1, 50, 10, 70) });
    assert_eq!(grants(&mut worker), [0]);
    // The first task has ended. The stage sent this demand before it received the second grant, and holds 5
    // bytes more.
    let crossed = holding(1, 55, 10, 70);
    worker.handle_slot_free(SlotId(0), LeaseId(0), crossed);
    assert_eq!(grants(&mut worker), NONE, "one grant at a time");
    // Another bucket is admitted by the forecasts of both: 50 + 20 bytes beside 30.
    assign(&mut worker, 1, 0);
    worker.handle_demand(LeaseId(1), task(30));
    assert_eq!(grants(&mut worker), [1]);
    // Once the stage has received the grant, its demand counts again.
    worker.handle_demand(LeaseId(0), holding(2, 55, 5, 5));
    assert_eq!(grants(&mut worker), [0]);
}

#[test]
fn stuck_worker_syncs_then_admits_in_plan_order() {
    let mut worker = worker(100, 60);
    worker.handle_stored(50);
    // Rule 3 refuses the bucket: 50 stored bytes and 10 left ones do not fit beside 60.
    assign(&mut worker, 3, 1);
    worker.handle_demand(LeaseId(3), BucketDemand { store_bytes: 10, ..task(20) });
    let first = call(&mut worker).expect("a call");
    // A pending bucket arrives before the answer. The sync is void, and its ack has no effect.
    assign(&mut worker, 2, 1);
    assert_eq!(call(&mut worker), None, "the new one has not spoken");
    worker.handle_demand(LeaseId(2), BucketDemand { store_bytes: 10, ..task(30) });
    worker.handle_sync_ack(first);
    assert_eq!(grants(&mut worker), NONE);
    let second = first + 1;
    worker.handle_sync_ack(second);
    // The bucket that is first in the plan runs.
    assert_eq!(grants(&mut worker), [2]);
    worker.handle_sync_ack(second);
    assert_eq!(effects(&mut worker), []);
    assert_eq!(worker.peak_bytes(), 80);
}

#[test]
fn request_after_a_sync_needs_another_sync() {
    let mut worker = worker(100, 60);
    worker.handle_stored(50);
    for number in 0..4 {
        assign(&mut worker, number, 1);
        worker.handle_demand(LeaseId(number), BucketDemand { store_bytes: 10, ..task(20) });
    }
    let first = call(&mut worker).expect("a call");
    // One bucket cannot run. The worker requests a replacement, which may rank before the present buckets.
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
fn late_release_arrives_before_the_sync_ack() {
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
fn running_bucket_continues_past_one_that_does_not_fit() {
    let mut worker = worker(100, 60);
    assign(&mut worker, 0, 0);
    worker.handle_demand(LeaseId(0), task(10));
    assert_eq!(grants(&mut worker), [0]);
    // The bucket holds 80 bytes, and its forecast exceeds the budget. A bucket of the last stage does not fit
    // either. One of the same stage would fit.
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
    // The first task exceeds the budget. Starting the second bucket instead would only take more memory from
    // it.
    assert_eq!((grants(&mut worker), worker.peak_bytes()), (vec![0], 110));
}

#[test]
fn task_larger_than_the_budget_runs_alone() {
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
fn stopping_worker_leaves_after_its_running_tasks() {
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
fn stopping_idle_worker_leaves_at_once() {
    let mut idle = worker(100, 0);
    idle.handle_stop();
    assert_eq!(effects(&mut idle), [Effect::Leave]);

    // A worker that waits for a sync leaves at once as well, and ignores the ack.
    let mut stuck = worker(100, 0);
    assign(&mut stuck, 0, 0);
    stuck.handle_demand(LeaseId(0), task(150));
    let number = call(&mut stuck).expect("a call");
    stuck.handle_stop();
    stuck.handle_sync_ack(number);
    assert_eq!(effects(&mut stuck), [Effect::Leave]);
}

#[test]
fn regions_are_spilled_before_a_task_is_refused() {
    let mut worker = worker(100, 0);
    worker.handle_spillable(50, 1000);
    worker.handle_stored(80);
    assign(&mut worker, 0, 0);
    // The bucket reads 10 of the 50 spillable bytes itself.
    worker.handle_demand(LeaseId(0), BucketDemand { local_bytes: 10, ..task(45) });
    let asked = Effect::MakeRoom { bytes: 25, lease: LeaseId(0) };
    assert!(effects(&mut worker).contains(&asked));
    // No other bucket starts meanwhile: its inputs may be among the regions being spilled.
    assign(&mut worker, 1, 1);
    worker.handle_demand(LeaseId(1), task(1));
    assert_eq!(grants(&mut worker), NONE);
    worker.handle_spillable(20, 970);
    worker.handle_stored(50);
    worker.handle_memory_freed(30);
    assert_eq!(grants(&mut worker), [1, 0]);
}

/// Creates a worker with 80 of 100 bytes stored, 50 of them spillable. Its task of 45 bytes waits until 25
/// bytes have been spilled.
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
fn memory_taken_meanwhile_is_freed_again() {
    let mut worker = in_need_of_room();
    // 30 bytes were spilled, and 40 arrived.
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

/// After a sync, memory is freed for the first started bucket in order that can fit, before a later one adds to
/// the held bytes.
#[test]
fn memory_is_freed_for_running_buckets_in_plan_order() {
    let mut worker = worker(100, 0);
    worker.handle_spillable(30, 1000);
    worker.handle_stored(30);
    // No bucket can finish by its forecast. The first one in order does not fit even without the spillable
    // bytes.
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
fn failed_freeing_of_memory_is_not_requested_again() {
    let mut worker = in_need_of_room();
    // The disk has failed: the stored bytes are unchanged.
    worker.handle_spillable(50, 1000);
    worker.handle_stored(80);
    worker.handle_memory_freed(0);
    let call = call(&mut worker).expect("nothing runs");
    worker.handle_sync_ack(call);
    // The task runs in order, beyond the budget.
    assert_eq!(grants(&mut worker), [0]);
    assert_eq!(worker.peak_bytes(), 125);
}
