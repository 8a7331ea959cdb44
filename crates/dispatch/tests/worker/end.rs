//! Time limit of a worker: it starts only work that it can finish, and returns the rest.

use pleach_dispatch::memory_model::{BucketDemand, MemoryBudget};
use pleach_dispatch::message::GrantReason;
use pleach_dispatch::stage::NodeId;
use pleach_dispatch::worker::{Effect, Worker};
use pleach_dispatch::{BucketId, LeaseId, PlanId, SlotId};
use proptest::collection::vec;
use proptest::prelude::*;
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

const STAGES: u32 = 4;

fn effects(worker: &mut Worker) -> Vec<Effect> {
    std::iter::from_fn(|| worker.poll_effect()).collect()
}

/// Demand of a bucket whose next task leads to a finished instance in `seconds`.
fn taking(heard: u64, seconds: u64) -> BucketDemand {
    let (next, next_time) = (Some(NodeId(heard as u32)), Duration::from_secs(seconds));
    BucketDemand { heard, ready: 1, next, next_time, started: heard > 0, ..BucketDemand::default() }
}

#[test]
fn task_beyond_the_time_limit_is_returned_unstarted() {
    let grant = |lease, node| Effect::Grant { lease: LeaseId(lease), slot: SlotId(0), node: NodeId(node) };
    let back = |lease| Effect::HandBack { lease: LeaseId(lease) };
    let mut worker = Worker::new(1, MemoryBudget::UNLIMITED);
    worker.handle_study(PlanId::first_round(0), 1, 0);
    worker.handle_end(Duration::from_secs(100));
    // The earliest time limit applies.
    worker.handle_end(Duration::from_secs(200));
    effects(&mut worker);
    worker.handle_assigned(LeaseId(0), 0, BucketId(0), GrantReason::Request);
    worker.handle_demand(LeaseId(0), taking(0, 100));
    assert_eq!(effects(&mut worker), [grant(0, 0)], "what ends just in time is in time");
    worker.handle_time(Duration::from_secs(40));
    worker.handle_slot_free(SlotId(0), LeaseId(0), taking(1, 60));
    assert_eq!(effects(&mut worker), [grant(0, 1)]);
    worker.handle_time(Duration::from_secs(90));
    worker.handle_slot_free(SlotId(0), LeaseId(0), taking(2, 11));
    // The worker requests the return once, in spite of further events. A shorter task of another bucket gets
    // the slot.
    assert_eq!(effects(&mut worker)[0], back(0));
    worker.handle_demand(LeaseId(0), taking(2, 11));
    worker.handle_assigned(LeaseId(1), 0, BucketId(1), GrantReason::Request);
    worker.handle_demand(LeaseId(1), taking(0, 10));
    assert_eq!(effects(&mut worker), [grant(1, 0)]);
    // Without an answer, the next tick repeats the request.
    worker.handle_tick(Duration::from_secs(91));
    assert_eq!(effects(&mut worker), [back(0)]);
    worker.handle_bucket_finished(LeaseId(0));
    worker.handle_slot_free(SlotId(0), LeaseId(1), taking(1, 10));
    assert!(effects(&mut worker).contains(&back(1)));
}

#[test]
fn waiting_bucket_is_returned_once_it_cannot_finish() {
    let mut worker = Worker::new(1, MemoryBudget::UNLIMITED);
    worker.handle_study(PlanId::first_round(0), 1, 0);
    worker.handle_end(Duration::from_secs(30));
    worker.handle_assigned(LeaseId(0), 0, BucketId(0), GrantReason::Request);
    worker.handle_demand(LeaseId(0), taking(0, 20));
    worker.handle_assigned(LeaseId(1), 0, BucketId(1), GrantReason::Request);
    worker.handle_demand(LeaseId(1), taking(0, 20));
    effects(&mut worker);
    worker.handle_tick(Duration::from_secs(10));
    assert_eq!(effects(&mut worker), []);
    worker.handle_tick(Duration::from_secs(11));
    assert_eq!(effects(&mut worker), [Effect::HandBack { lease: LeaseId(1) }]);
    // Nothing else can run. A sync would let the late task run regardless of its forecast, so none is sent.
    worker.handle_slot_free(
        SlotId(0),
        LeaseId(0),
        BucketDemand { heard: 1, started: true, ..BucketDemand::default() },
    );
    worker.handle_bucket_finished(LeaseId(0));
    assert!(!effects(&mut worker).iter().any(|effect| matches!(effect, Effect::Call { .. })));
}

proptest! {
    /// For any order of events, each granted task is predicted to end before the time limit, and only buckets
    /// that are too late are returned.
    #[test]
    fn worker_with_time_limit_starts_only_tasks_it_can_finish(
        slots in 1u32..4, end in 0u64..60, buckets in vec((0u32..4, vec(0u64..30, 1..5)), 1..8), waits in vec(0u64..8, 60),
    ) {
        let mut worker = Worker::new(slots, MemoryBudget::UNLIMITED);
        worker.handle_study(PlanId::first_round(0), STAGES, 0);
        worker.handle_end(Duration::from_secs(end));
        let (mut now, mut running) = (0, VecDeque::new());
        let mut left: BTreeMap<LeaseId, (u64, VecDeque<u64>)> = BTreeMap::new();
        let mut coming: VecDeque<_> = buckets.into();
        let demand = |(heard, tasks): &(u64, VecDeque<u64>)| match tasks.front() {
            Some(&seconds) => taking(*heard, seconds),
            None => BucketDemand { heard: *heard, started: true, ..BucketDemand::default() },
        };
        for (number, wait) in (0u64..).zip(waits) {
            now += wait;
            worker.handle_time(Duration::from_secs(now));
            match (coming.pop_front(), running.pop_front()) {
                (Some((stage, tasks)), _) => {
                    worker.handle_assigned(LeaseId(number), stage, BucketId(number as u32), GrantReason::Request);
                    left.insert(LeaseId(number), (0, tasks.into()));
                    worker.handle_demand(LeaseId(number), demand(&left[&LeaseId(number)]));
                }
                (None, Some((slot, lease))) => {
                    let demand = left.get(&lease).map_or(BucketDemand::default(), demand);
                    worker.handle_slot_free(slot, lease, demand);
                }
                (None, None) => worker.handle_tick(Duration::from_secs(now)),
            }
            while let Some(effect) = worker.poll_effect() {
                match effect {
                    Effect::Grant { lease, slot, .. } => {
                        let bucket = left.get_mut(&lease).expect("a bucket that it has");
                        let seconds = bucket.1.pop_front().expect("a task that there is");
                        prop_assert!(now + seconds <= end, "{} s are begun {} s before the end", seconds, end.saturating_sub(now));
                        bucket.0 += 1;
                        running.push_back((slot, lease));
                        // The bucket's other tasks wait for this one.
                        worker.handle_demand(lease, BucketDemand { heard: bucket.0, started: true, ..BucketDemand::default() });
                    }
                    Effect::HandBack { lease } => {
                        let bucket = left.remove(&lease).expect("a bucket that it has");
                        prop_assert!(bucket.1.front().is_some_and(|seconds| now + seconds > end), "it had the time");
                        worker.handle_bucket_finished(lease);
                    }
                    Effect::Request { .. } => {}
                    effect => prop_assert!(false, "{effect:?}"),
                }
            }
        }
    }
}
