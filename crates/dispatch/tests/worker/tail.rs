//! The end of a worker's work: long paths first, a query before last tasks, and instances for others.

use pleach_dispatch::memory_model::{BucketDemand, MemoryBudget, TailDemand};
use pleach_dispatch::message::GrantReason;
use pleach_dispatch::stage::NodeId;
use pleach_dispatch::worker::{Effect, Worker};
use pleach_dispatch::{BucketId, LeaseId, PlanId, SlotId};
use std::time::Duration;

const SECOND: Duration = Duration::from_secs(1);

fn effects(worker: &mut Worker) -> Vec<Effect> {
    std::iter::from_fn(|| worker.poll_effect()).collect()
}

/// Returns a worker of one slot without open effects.
fn worker(max_tasks: u32) -> Worker {
    let mut worker = Worker::new(1, MemoryBudget::UNLIMITED).with_tail(max_tasks);
    worker.handle_study(PlanId::first_round(0), 1, 0);
    effects(&mut worker);
    worker
}

/// Returns the demand of a bucket near its end, whose next task has a path of this number of seconds. Paths of up to 1 s are
/// those of last tasks.
fn demand(heard: u64, seconds: u32) -> BucketDemand {
    let tail = TailDemand {
        open_tasks: 7,
        is_tail: true,
        waits: false,
        next_path: SECOND * seconds,
        is_last: seconds <= 1,
        spare_path: Some(SECOND * seconds),
    };
    let next = Some(NodeId(heard as u32));
    BucketDemand { heard, ready: 1, next, started: heard > 0, tail, ..BucketDemand::default() }
}

/// Returns the demand of a bucket without a ready task.
fn busy(heard: u64) -> BucketDemand {
    let tail = TailDemand { spare_path: None, ..demand(heard, 0).tail };
    BucketDemand { ready: 0, next: None, tail, ..demand(heard, 0) }
}

fn assign(worker: &mut Worker, lease: u64, demand: BucketDemand) {
    worker.handle_assigned(LeaseId(lease), 0, BucketId(lease as u32), GrantReason::Request);
    worker.handle_demand(LeaseId(lease), demand);
}

fn grant(lease: u64, node: u32) -> Effect {
    Effect::Grant { lease: LeaseId(lease), slot: SlotId(0), node: NodeId(node) }
}

const QUERY: Effect = Effect::Query { longer_than: SECOND };

#[test]
fn last_task_waits_for_the_answer_to_a_query() {
    let mut worker = worker(40);
    assign(&mut worker, 0, demand(0, 1));
    assert_eq!(effects(&mut worker), [QUERY]);
    // No further event repeats the query, requests a bucket or grants the slot.
    worker.handle_demand(LeaseId(0), demand(0, 1));
    assert_eq!(effects(&mut worker), []);
    worker.handle_query_answer(false);
    assert_eq!(effects(&mut worker), [grant(0, 0)]);
    worker.handle_slot_free(SlotId(0), LeaseId(0), demand(1, 1));
    assert_eq!(effects(&mut worker), [QUERY], "each last task is preceded by a query");
}

#[test]
fn found_instance_precedes_the_last_task() {
    let mut worker = worker(40);
    assign(&mut worker, 0, demand(0, 1));
    assert_eq!(effects(&mut worker), [QUERY]);
    worker.handle_assigned(LeaseId(1), 0, BucketId(1), GrantReason::Request);
    worker.handle_query_answer(true);
    assert_eq!(effects(&mut worker), [], "the new bucket has not sent its demand");
    worker.handle_demand(LeaseId(1), demand(0, 4));
    assert_eq!(effects(&mut worker), [grant(1, 0)]);
    // The task is being looked up. Its answer decides.
    let looks_up = BucketDemand { resolving: true, ..busy(1) };
    worker.handle_slot_free(SlotId(0), LeaseId(1), looks_up);
    assert_eq!(effects(&mut worker), []);
    worker.handle_demand(LeaseId(1), demand(1, 4));
    assert_eq!(effects(&mut worker), [grant(1, 1)]);
}

#[test]
fn query_without_an_answer_counts_as_refused_after_two_ticks() {
    let mut worker = worker(40);
    assign(&mut worker, 0, demand(0, 1));
    assert_eq!(effects(&mut worker), [QUERY]);
    worker.handle_tick(SECOND);
    assert_eq!(effects(&mut worker), []);
    worker.handle_tick(2 * SECOND);
    assert_eq!(effects(&mut worker), [grant(0, 0)]);
    // The answer comes late.
    worker.handle_query_answer(false);
    assert_eq!(effects(&mut worker), []);
}

#[test]
fn worker_with_many_open_tasks_or_without_a_limit_neither_queries_nor_sorts() {
    for max_tasks in [0, 13] {
        let mut worker = worker(max_tasks);
        assign(&mut worker, 0, BucketDemand { ready: 0, next: None, ..demand(0, 1) });
        assign(&mut worker, 1, BucketDemand { ready: 0, next: None, ..demand(0, 4) });
        effects(&mut worker);
        worker.handle_demand(LeaseId(1), demand(0, 4));
        assert_eq!(effects(&mut worker), [grant(1, 0)]);
        worker.handle_demand(LeaseId(0), demand(0, 1));
        worker.handle_slot_free(SlotId(0), LeaseId(1), demand(1, 4));
        assert_eq!(effects(&mut worker), [grant(0, 0)], "in the order of the plan");
    }
}

#[test]
fn spare_instances_are_returned_once_all_slots_are_busy() {
    let mut worker = worker(40);
    assign(&mut worker, 0, busy(0));
    effects(&mut worker);
    worker.handle_steal_request(LeaseId(0), SECOND);
    assert_eq!(effects(&mut worker), []);
    // The slot is free for the only ready task, whose bucket must not lose it on the way.
    worker.handle_demand(LeaseId(0), demand(0, 4));
    assert_eq!(effects(&mut worker), [grant(0, 0)]);
    worker.handle_demand(LeaseId(0), demand(1, 1));
    assert_eq!(effects(&mut worker), [], "a path of 1 s is not longer");
    worker.handle_demand(LeaseId(0), demand(1, 4));
    let share = Effect::ShareSpare { lease: LeaseId(0), longer_than: SECOND };
    assert_eq!(effects(&mut worker), [share]);
    worker.handle_demand(LeaseId(0), demand(1, 4));
    assert_eq!(effects(&mut worker), [], "one answer to each request");
}

#[test]
fn bucket_before_its_end_returns_half_at_once() {
    let mut worker = worker(40);
    let tail = TailDemand { open_tasks: 700, ..TailDemand::default() };
    assign(&mut worker, 0, BucketDemand { tail, ..demand(0, 4) });
    effects(&mut worker);
    worker.handle_steal_request(LeaseId(0), Duration::ZERO);
    assert_eq!(effects(&mut worker), [Effect::ShareHalf { lease: LeaseId(0) }]);
}

/// A worker with free slots that it cannot use, for lack of memory or of active paths, gives instances as a busy one does.
#[test]
fn spare_instances_are_returned_where_no_further_task_can_start() {
    let mut worker = Worker::new(2, MemoryBudget::UNLIMITED).with_tail(40);
    worker.handle_study(PlanId::first_round(0), 1, 0);
    effects(&mut worker);
    let limited = |heard| BucketDemand { next: None, ready: 0, ..demand(heard, 5) };
    let is_share = |effect: &Effect| matches!(effect, Effect::ShareSpare { lease: LeaseId(0), .. });
    assign(&mut worker, 0, demand(0, 5));
    assert!(effects(&mut worker).contains(&grant(0, 0)));
    // The next demand may have a task for the free slot.
    worker.handle_steal_request(LeaseId(0), SECOND);
    assert!(!effects(&mut worker).iter().any(is_share));
    worker.handle_demand(LeaseId(0), limited(1));
    assert!(effects(&mut worker).iter().any(is_share));
}
