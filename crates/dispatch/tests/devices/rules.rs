//! Rules of a worker with accelerators, one at a time.

use crate::shapes::{key, stage, task};
use crate::tables::slots;
use pleach_dispatch::memory_model::{
    BucketDemand, MemoryBudget, MemoryForecast, OutputConsumption, TaskMemory,
};
use pleach_dispatch::message::{BucketWork, GrantReason, InstanceWork};
use pleach_dispatch::plan::{OutputPlan, ReuseScope};
use pleach_dispatch::stage::{BucketExecution, DeviceTask, NodeId, Offer};
use pleach_dispatch::worker::{Effect, SchedulePolicy, Worker, WorkerSlots};
use pleach_dispatch::{BucketId, InstanceId, LeaseId, PlanId, SlotId, SlotKind};
use pleach_workflow::TaskInput;
use std::time::Duration;

pub(crate) fn worker(slots: WorkerSlots, bytes: u64) -> Worker {
    let mut worker = Worker::new(slots, MemoryBudget { bytes, ..MemoryBudget::UNLIMITED });
    worker.handle_study(PlanId::first_round(0), 1, 0);
    worker
}

/// A task with a gain in thousandths that takes `bytes`.
pub(crate) fn offer(node: u32, gain: u32, bytes: u64) -> Offer {
    Offer {
        node: NodeId(node),
        on_core: true,
        on_accelerator: gain > 0,
        gain,
        trial: None,
        core_time: Duration::from_secs(1),
        upward_rank: Duration::from_secs(1),
        device_bytes: 1,
        after: None,
        next_bytes: bytes,
        next_time: Duration::ZERO,
        then: MemoryForecast { growth_bytes: 0, finish_bytes: bytes },
    }
}

pub(crate) fn demand(offers: &[Offer], heard: u64) -> BucketDemand {
    let first = offers.first();
    BucketDemand {
        heard,
        ready: offers.len() as u32,
        next: first.map(|offer| offer.node),
        next_bytes: first.map_or(0, |offer| offer.next_bytes),
        then: first.map_or(MemoryForecast::default(), |offer| offer.then),
        started: heard > 0,
        ..BucketDemand::default()
    }
}

/// Delivers the offers of a bucket. Returns the grants: lease, slot, task.
pub(crate) fn deliver(worker: &mut Worker, lease: u64, offers: &[Offer], heard: u64) -> Vec<(u64, u32, u32)> {
    worker.handle_offers(LeaseId(lease), offers.to_vec());
    worker.handle_demand(LeaseId(lease), demand(offers, heard));
    grants(worker)
}

pub(crate) fn assign(worker: &mut Worker, lease: u64, offers: &[Offer]) -> Vec<(u64, u32, u32)> {
    worker.handle_assigned(LeaseId(lease), 0, BucketId(lease as u32), GrantReason::Request);
    deliver(worker, lease, offers, 0)
}

pub(crate) fn grants(worker: &mut Worker) -> Vec<(u64, u32, u32)> {
    let effects = std::iter::from_fn(|| worker.poll_effect());
    let granted = effects.filter_map(|effect| match effect {
        Effect::Grant { lease, slot, node } => Some((lease.0, slot.0, node.0)),
        _ => None,
    });
    granted.collect()
}

/// Returns a worker whose slots are all taken, by bucket 0 on the core and bucket 1 on the accelerator.
pub(crate) fn busy(policy: SchedulePolicy, bytes: u64) -> Worker {
    occupied(worker(slots(1, 1, policy), bytes))
}

/// Gives bucket 0 to the core of a worker, and bucket 1, of `device_bytes` 1, to its accelerator, slot 1.
pub(crate) fn occupied(mut worker: Worker) -> Worker {
    assert_eq!(assign(&mut worker, 0, &[offer(0, 0, 1)]), [(0, 0, 0)]);
    assert_eq!(assign(&mut worker, 1, &[Offer { on_core: false, ..offer(0, 5000, 1) }]), [(1, 1, 0)]);
    deliver(&mut worker, 0, &[], 1);
    deliver(&mut worker, 1, &[], 1);
    worker
}

pub(crate) fn free(worker: &mut Worker, slot: u32, lease: u64, offers: &[Offer]) -> Vec<(u64, u32, u32)> {
    worker.handle_offers(LeaseId(lease), offers.to_vec());
    worker.handle_slot_free(SlotId(slot), LeaseId(lease), demand(offers, 1));
    grants(worker)
}

#[test]
fn pats_gives_greatest_gain_to_accelerator_and_least_to_core() {
    for (slot, expected) in [(1, (3, 1, 2)), (0, (2, 0, 1))] {
        let mut worker = busy(SchedulePolicy::Pats, u64::MAX);
        assert_eq!(assign(&mut worker, 2, &[offer(0, 3000, 0), offer(1, 2000, 0)]), []);
        assert_eq!(assign(&mut worker, 3, &[offer(0, 4000, 0), offer(2, 9000, 0)]), []);
        assert_eq!(free(&mut worker, slot, u64::from(slot), &[]), [expected]);
    }
}

#[test]
fn fcfs_gives_the_first_ready_task_to_any_slot() {
    for slot in [0, 1] {
        let mut worker = busy(SchedulePolicy::Fcfs, u64::MAX);
        assign(&mut worker, 3, &[offer(0, 4000, 0)]);
        assign(&mut worker, 2, &[offer(0, 3000, 0)]);
        // It was ready first, and still is.
        deliver(&mut worker, 3, &[offer(0, 4000, 0), offer(1, 4000, 0)], 0);
        assert_eq!(free(&mut worker, slot, u64::from(slot), &[]), [(3, slot, 0)]);
    }
}

#[test]
fn heft_keeps_a_task_in_its_queue() {
    let mut worker = busy(SchedulePolicy::Heft, u64::MAX);
    // Three tasks on the accelerator are estimated to end before one on the core.
    for lease in 2..5 {
        assign(&mut worker, lease, &[offer(0, 4000, 0)]);
    }
    assert_eq!(free(&mut worker, 0, 0, &[]), [], "an idle core takes nothing from another queue");
    assert_eq!(free(&mut worker, 1, 1, &[]), [(2, 1, 0)]);
    worker.handle_slot_closed(SlotId(1));
    assert_eq!(grants(&mut worker), [(3, 0, 0)], "tasks of a closed slot are queued again");
}

#[test]
fn heft_queues_tasks_by_falling_upward_rank() {
    let mut worker = busy(SchedulePolicy::Heft, u64::MAX);
    let ranked = |node, seconds| Offer { upward_rank: Duration::from_secs(seconds), ..offer(node, 4000, 0) };
    assign(&mut worker, 2, &[ranked(0, 1), ranked(1, 3), ranked(2, 2)]);
    assert_eq!(free(&mut worker, 1, 1, &[]), [(2, 1, 1)]);
}

#[test]
fn idle_core_precedes_an_accelerator_that_is_slower() {
    let mut worker = worker(slots(1, 1, SchedulePolicy::Pats), u64::MAX);
    assert_eq!(assign(&mut worker, 0, &[offer(0, 999, 0)]), [(0, 0, 0)]);
    assert_eq!(assign(&mut worker, 1, &[offer(0, 999, 0)]), [(1, 1, 0)], "the core is taken");
}

#[test]
fn unknown_times_are_tried_first() {
    let tried = |node, trial| Offer { trial: Some(trial), ..offer(node, 5000, 0) };
    let offers =
        [offer(0, 9000, 0), tried(1, SlotKind::Accelerator), tried(2, SlotKind::Core), offer(3, 1000, 0)];
    for (slot, node) in [(1, 1), (0, 2)] {
        let mut worker = busy(SchedulePolicy::Pats, u64::MAX);
        assign(&mut worker, 2, &offers);
        assert_eq!(free(&mut worker, slot, u64::from(slot), &[]), [(2, slot, node)]);
    }
}

/// Rule 4.
#[test]
fn task_beyond_the_device_runs_on_a_core() {
    for policy in SchedulePolicy::ALL {
        let mut worker = worker(WorkerSlots { device_bytes: 10, ..slots(1, 1, policy) }, u64::MAX);
        let large = Offer { device_bytes: 11, ..offer(0, 9000, 0) };
        assert_eq!(assign(&mut worker, 0, &[large]), [(0, 0, 0)]);
        assert_eq!(assign(&mut worker, 1, &[large]), [], "{policy}: it waits for the core");
        let fits = Offer { device_bytes: 10, ..offer(0, 9000, 0) };
        assert_eq!(assign(&mut worker, 2, &[fits]), [(2, 1, 0)], "{policy}");
    }
}

/// Rules 1 and 2 on both kinds: a bucket under way is passed only if it was refused by rule 1 alone.
#[test]
fn refused_bucket_under_way_is_passed_only_if_both_can_finish() {
    for (finish_bytes, passes) in [(80, true), (101, false)] {
        let mut worker = busy(SchedulePolicy::Pats, 100);
        // Bucket 1 is under way. Its next task does not fit beside the one that takes 30 bytes.
        let next = Offer { then: MemoryForecast { growth_bytes: 0, finish_bytes }, ..offer(1, 9000, 80) };
        assign(&mut worker, 2, &[offer(0, 0, 30)]);
        assert_eq!(free(&mut worker, 0, 0, &[]), [(2, 0, 0)]);
        deliver(&mut worker, 2, &[], 1);
        assign(&mut worker, 3, &[offer(0, 2000, 10)]);
        let granted = free(&mut worker, 1, 1, &[next]);
        assert_eq!(
            granted,
            if passes { vec![(3, 1, 0)] } else { Vec::new() },
            "{finish_bytes} bytes to finish"
        );
    }
}

#[test]
fn task_that_needs_an_accelerator_waits_for_one_until_all_are_closed() {
    let needs = Offer { on_core: false, ..offer(0, 5000, 0) };
    for policy in SchedulePolicy::ALL {
        let mut worker = worker(slots(2, 1, policy), u64::MAX);
        assert_eq!(assign(&mut worker, 0, &[needs]), [(0, 2, 0)]);
        deliver(&mut worker, 0, &[], 1);
        assert_eq!(assign(&mut worker, 1, &[needs]), [], "{policy}: cores are idle");
        worker.handle_slot_closed(SlotId(2));
        assert_eq!(grants(&mut worker).len(), 1, "{policy}: a core, where it fails");
        assert_eq!(worker.open_slots(), 2);
    }
}

/// Nothing else runs, so it gets the device that is too small for it.
#[test]
fn task_beyond_every_slot_is_forced() {
    let needs = Offer { on_core: false, device_bytes: 11, ..offer(0, 5000, 0) };
    for policy in SchedulePolicy::ALL {
        let mut worker = worker(WorkerSlots { device_bytes: 10, ..slots(2, 1, policy) }, u64::MAX);
        worker.handle_assigned(LeaseId(0), 0, BucketId(0), GrantReason::Request);
        worker.handle_offers(LeaseId(0), vec![needs]);
        worker.handle_demand(LeaseId(0), demand(&[needs], 0));
        let mut granted = Vec::new();
        while let Some(effect) = worker.poll_effect() {
            match effect {
                Effect::Call { call } => worker.handle_sync_ack(call),
                Effect::Grant { slot, .. } => granted.push(slot),
                _ => {}
            }
        }
        assert_eq!(granted, [SlotId(2)], "{policy}");
    }
}

#[test]
fn closed_slot_takes_no_task_and_its_last_one_ends() {
    let mut worker = busy(SchedulePolicy::Pats, u64::MAX);
    worker.handle_slot_closed(SlotId(1));
    worker.handle_slot_closed(SlotId(1));
    assert_eq!(free(&mut worker, 1, 1, &[offer(1, 9000, 0)]), []);
    assert_eq!(free(&mut worker, 0, 0, &[]), [(1, 0, 1)]);
}

#[test]
fn worker_requests_two_and_a_half_buckets_for_each_slot() {
    let requested = |slots: WorkerSlots| {
        let mut worker = Worker::new(slots, MemoryBudget::UNLIMITED);
        std::iter::from_fn(|| worker.poll_effect()).fold(0, |sum, effect| match effect {
            Effect::Request { buckets, .. } => sum + buckets,
            _ => sum,
        })
    };
    assert_eq!(requested(slots(16, 1, SchedulePolicy::Pats)), 43);
    assert_eq!(requested(WorkerSlots::from(16)), 16);
}

#[test]
fn policies_have_names() {
    for policy in SchedulePolicy::ALL {
        assert_eq!(policy.to_string().parse(), Ok(policy));
    }
    let unknown = "PATS".parse::<SchedulePolicy>().unwrap_err().to_string();
    assert_eq!(unknown, "schedule policy \"PATS\": unknown; pats, heft and fcfs are allowed");
}

/// A bucket of one instance with six independent tasks and one that reads them.
fn wide() -> (pleach_workflow::Stage, BucketExecution) {
    let reads = (0..6).map(|task| TaskInput::Task { task, output: 0 }).collect::<Vec<_>>();
    let mut tasks: Vec<_> =
        (0..6).map(|n| task(&format!("t{n}"), &[], &[TaskInput::StageInput(0)], 1)).collect();
    tasks.push(task("end", &[], &reads, 1));
    let stage = stage(0, 1, tasks, &[(6, 0)]);
    let instance = InstanceWork {
        id: InstanceId(0),
        parameters: Vec::new(),
        inputs: vec![key(1)],
        outputs: vec![OutputPlan { key: key(2), stored: true, reported: false }],
        stays: false,
    };
    let work = BucketWork {
        bucket: BucketId(0),
        stage: 0,
        pixels: 1,
        drain: OutputConsumption::default(),
        sharing: ReuseScope::Dataflow,
        own_tile: None,
        instances: vec![instance],
        elsewhere: Vec::new(),
    };
    let bytes = vec![TaskMemory { scratch: 3, outputs: vec![5] }; 7];
    let run = BucketExecution::new(&stage, &work, bytes, None).expect("fits");
    (stage, run)
}

#[test]
fn bucket_offers_the_first_tasks_and_those_of_greatest_and_least_gain() {
    let (stage, mut run) = wide();
    assert_eq!(run.offers(), [], "no estimates are known");
    let with_gain = |gain| DeviceTask {
        on_accelerator: true,
        gain,
        device_bytes: 7,
        ..DeviceTask::for_cores(Duration::from_secs(2))
    };
    run.set_device_tasks(&stage, [5, 4, 3, 2, 1, 9, 5].map(|gain| with_gain(gain * 1000)).into(), 1, 1);
    let offers = run.offers();
    assert_eq!(offers.iter().map(|offer| offer.node.0).collect::<Vec<_>>(), [0, 5, 4, 1]);
    assert!(offers.iter().all(|offer| offer.device_bytes == 7 && offer.next_bytes == 8));
    assert_eq!(offers[0].then, run.demand(0).then);
    // Mean times: 2 s and 2/9 s on this task, 2 s and 0.4 s on the one that reads it.
    let rank = offers[1].upward_rank.as_secs_f64();
    assert!((rank - (2.0 + 2.0 / 9.0) / 2.0 - 1.2).abs() < 1e-6, "{rank}");

    run.start_task(&stage, NodeId(5), 0).expect("ready");
    run.handle_device_failed(NodeId(5));
    let offers = run.offers();
    let again = offers.iter().find(|offer| offer.node == NodeId(5)).expect("it has the least gain now");
    assert!(again.on_core && !again.on_accelerator);
    assert!(offers.iter().filter(|offer| offer.node != NodeId(5)).all(|offer| offer.on_accelerator));
}

#[test]
fn offer_names_the_task_that_made_it_ready() {
    let (stage, mut run) = wide();
    run.set_device_tasks(&stage, vec![DeviceTask::for_cores(Duration::ZERO); 7], 1, 1);
    for node in [3, 0, 1, 2, 5, 4].map(NodeId) {
        run.start_task(&stage, node, 0).expect("ready");
        run.handle_done(node);
    }
    assert_eq!(
        run.offers().iter().map(|offer| (offer.node.0, offer.after)).collect::<Vec<_>>(),
        [(6, Some(NodeId(4)))]
    );
}

/// Rule 3.
#[test]
fn bucket_that_leaves_regions_behind_starts_only_beside_the_minimum_memory() {
    for (store_bytes, starts) in [(20, true), (21, false)] {
        let mut worker = busy(SchedulePolicy::Pats, 100);
        worker.handle_study(PlanId::first_round(1), 1, 50);
        worker.handle_stored(30);
        let offers = [offer(0, 5000, 1)];
        worker.handle_assigned(LeaseId(2), 0, BucketId(2), GrantReason::Request);
        worker.handle_offers(LeaseId(2), offers.to_vec());
        worker.handle_demand(LeaseId(2), BucketDemand { store_bytes, ..demand(&offers, 0) });
        let granted = free(&mut worker, 1, 1, &[]);
        assert_eq!(granted, if starts { vec![(2, 1, 0)] } else { Vec::new() }, "{store_bytes} bytes");
    }
}

#[test]
fn tail_rule_waits_until_no_bucket_is_unstarted() {
    for has_unstarted in [true, false] {
        let mut worker = worker(slots(1, 1, SchedulePolicy::Pats), u64::MAX);
        assert_eq!(assign(&mut worker, 0, &[offer(0, 5000, 0)]), [(0, 1, 0)]);
        if has_unstarted {
            worker.handle_assigned(LeaseId(1), 0, BucketId(1), GrantReason::Request);
        }
        deliver(&mut worker, 0, &[], 1);
        (1..9).for_each(|call| worker.handle_sync_ack(call));
        let granted = deliver(&mut worker, 0, &[offer(1, 9000, 0)], 1);
        assert_eq!(granted, if has_unstarted { vec![(0, 0, 1)] } else { Vec::new() }, "{has_unstarted}");
    }
}
