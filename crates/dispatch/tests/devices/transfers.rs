//! Transfers beside tasks: hints of the next task of an accelerator, and downloads of the task before.

use crate::rules::{assign, busy, deliver, demand, free, grants, occupied, offer, worker};
use crate::tables::slots;
use pleach_dispatch::message::GrantReason;
use pleach_dispatch::stage::{NodeId, Offer};
use pleach_dispatch::worker::{Effect, SchedulePolicy, Worker, WorkerSlots};
use pleach_dispatch::{BucketId, LeaseId, SlotId};

/// Returns the hints among the effects: lease, slot, task.
fn hints(worker: &mut Worker) -> Vec<(u64, u32, u32)> {
    let effects = std::iter::from_fn(|| worker.poll_effect());
    let hinted = effects.filter_map(|effect| match effect {
        Effect::Prefetch { lease, slot, node } => Some((lease.0, slot.0, node.0)),
        _ => None,
    });
    hinted.collect()
}

/// Returns a worker with prefetch whose slots are all taken.
fn busy_with_prefetch(policy: SchedulePolicy, device_bytes: u64) -> Worker {
    let mut worker = worker(WorkerSlots { device_bytes, ..slots(1, 1, policy) }, u64::MAX);
    worker.enable_prefetch();
    occupied(worker)
}

/// Adds a bucket. Returns the hints that follow.
fn add(worker: &mut Worker, lease: u64, offers: &[Offer]) -> Vec<(u64, u32, u32)> {
    worker.handle_assigned(LeaseId(lease), 0, BucketId(lease as u32), GrantReason::Request);
    worker.handle_offers(LeaseId(lease), offers.to_vec());
    worker.handle_demand(LeaseId(lease), demand(offers, 0));
    hints(worker)
}

#[test]
fn busy_accelerator_gets_one_hint_of_its_next_task() {
    for policy in SchedulePolicy::ALL {
        let mut worker = busy_with_prefetch(policy, u64::MAX);
        assert_eq!(add(&mut worker, 2, &[offer(0, 3000, 0)]), [(2, 1, 0)], "{policy}");
        assert_eq!(add(&mut worker, 3, &[offer(0, 2000, 0)]), [], "{policy}: one at a time");
        assert_eq!(add(&mut worker, 4, &[offer(0, 9000, 0)]), [], "{policy}: one at a time");
        // The hint commits nothing. The next one follows the start of a task.
        worker.handle_offers(LeaseId(1), Vec::new());
        worker.handle_slot_free(SlotId(1), LeaseId(1), demand(&[], 1));
        let effects: Vec<Effect> = std::iter::from_fn(|| worker.poll_effect()).collect();
        let task = |lease: u64| (LeaseId(lease), SlotId(1), NodeId(0));
        let (granted, hinted) = if policy == SchedulePolicy::Pats { (4, 2) } else { (2, 3) };
        let (lease, slot, node) = task(granted);
        assert_eq!(effects[0], Effect::Grant { lease, slot, node }, "{policy}");
        let (lease, slot, node) = task(hinted);
        // PATS hinted bucket 2 before: its inputs are on the device.
        let again = effects.contains(&Effect::Prefetch { lease, slot, node });
        assert_eq!(again, policy != SchedulePolicy::Pats, "{policy}: {effects:?}");
    }
}

/// Rule 4 counts the task whose outputs are being downloaded, which holds its host memory as well.
#[test]
fn next_task_starts_while_outputs_are_downloaded_if_both_fit() {
    for (device_bytes, starts) in [(3, true), (2, false)] {
        let mut worker = worker(WorkerSlots { device_bytes, ..slots(1, 1, SchedulePolicy::Pats) }, u64::MAX);
        worker = occupied(worker);
        let next = Offer { on_core: false, device_bytes: 2, ..offer(0, 3000, 0) };
        assert_eq!(assign(&mut worker, 2, &[next]), []);
        let reserved = worker.reserved_bytes();
        worker.handle_slot_computed(SlotId(1), 7);
        assert_eq!(grants(&mut worker), if starts { vec![(2, 1, 0)] } else { Vec::new() });
        assert_eq!(worker.running(), 2 + usize::from(starts));
        assert!(worker.reserved_bytes() >= reserved, "the task that has computed holds its bytes");
        worker.handle_downloaded(SlotId(1), 7, LeaseId(1), demand(&[], 1));
        assert_eq!(grants(&mut worker), if starts { Vec::new() } else { vec![(2, 1, 0)] });
        assert_eq!(worker.running(), 2);
    }
}

#[test]
fn worker_leaves_after_its_downloads() {
    let mut worker = occupied(worker(slots(1, 1, SchedulePolicy::Pats), u64::MAX));
    worker.handle_slot_computed(SlotId(1), 7);
    worker.handle_slot_free(SlotId(0), LeaseId(0), demand(&[], 1));
    worker.handle_slot_closed(SlotId(1));
    worker.handle_stop();
    let leaves =
        |worker: &mut Worker| std::iter::from_fn(|| worker.poll_effect()).any(|it| it == Effect::Leave);
    assert!(!leaves(&mut worker));
    worker.handle_downloaded(SlotId(1), 7, LeaseId(1), demand(&[], 1));
    assert!(leaves(&mut worker));
}

#[test]
fn hint_counts_the_task_whose_outputs_are_downloaded() {
    for (device_bytes, hinted) in [(4, true), (3, false)] {
        let mut worker = busy_with_prefetch(SchedulePolicy::Pats, device_bytes);
        let next = |lease| (lease, Offer { on_core: false, device_bytes: 2, ..offer(0, 3000, 0) });
        let (lease, offer) = next(2);
        add(&mut worker, lease, &[offer]);
        worker.handle_slot_computed(SlotId(1), 7);
        hints(&mut worker);
        deliver(&mut worker, 2, &[], 1);
        // 1 of the download, 2 of the running task, 1 of the next one.
        let (lease, offer) = next(3);
        let found = add(&mut worker, lease, &[Offer { device_bytes: 1, ..offer }]);
        assert_eq!(found, if hinted { vec![(3, 1, 0)] } else { Vec::new() }, "{device_bytes} bytes");
    }
}

#[test]
fn worker_without_prefetch_emits_no_hint() {
    let mut worker = busy(SchedulePolicy::Pats, u64::MAX);
    assert_eq!(add(&mut worker, 2, &[offer(0, 3000, 0)]), []);
}

#[test]
fn hint_is_void_once_its_task_runs_elsewhere_or_its_bucket_ends() {
    // A core takes the hinted task, the only one.
    let mut worker = busy_with_prefetch(SchedulePolicy::Pats, u64::MAX);
    assert_eq!(add(&mut worker, 2, &[offer(0, 3000, 0)]), [(2, 1, 0)]);
    assert_eq!(free(&mut worker, 0, 0, &[]), [(2, 0, 0)]);
    deliver(&mut worker, 2, &[], 1);
    assert_eq!(add(&mut worker, 3, &[offer(0, 2000, 0)]), [(3, 1, 0)], "another hint may follow");
    // The bucket ends.
    worker.handle_bucket_finished(LeaseId(3));
    assert_eq!(add(&mut worker, 4, &[offer(0, 1500, 0)]), [(4, 1, 0)]);
    // The bucket withdraws the task.
    worker.handle_offers(LeaseId(4), Vec::new());
    worker.handle_demand(LeaseId(4), demand(&[], 0));
    assert_eq!(add(&mut worker, 5, &[offer(0, 1200, 0)]), [(5, 1, 0)]);
    // The slot closes.
    worker.handle_slot_closed(SlotId(1));
    worker.handle_bucket_finished(LeaseId(5));
    assert_eq!(add(&mut worker, 6, &[offer(0, 9000, 0)]), []);
}

/// Rule 4 with prefetch: the running task and the hinted one fit together, and a task to run needs room for itself only.
#[test]
fn hint_needs_room_beside_the_running_task() {
    for policy in SchedulePolicy::ALL {
        for (device_bytes, expected) in [(11, vec![(2, 1, 0)]), (10, Vec::new())] {
            let mut worker = busy_with_prefetch(policy, device_bytes);
            let large = Offer { device_bytes: 10, ..offer(0, 9000, 0) };
            assert_eq!(add(&mut worker, 2, &[large]), expected, "{policy}, {device_bytes} bytes");
            assert_eq!(free(&mut worker, 1, 1, &[]), [(2, 1, 0)], "{policy}: it runs anyway");
        }
    }
}

#[test]
fn accelerators_have_different_hints() {
    for policy in SchedulePolicy::ALL {
        let mut worker = worker(slots(1, 2, policy), u64::MAX);
        worker.enable_prefetch();
        let needs = Offer { on_core: false, ..offer(0, 5000, 0) };
        (0..2).for_each(|lease| assert_eq!(assign(&mut worker, lease, &[needs]).len(), 1));
        (0..2).for_each(|lease| _ = deliver(&mut worker, lease, &[], 1));
        let mut hinted: Vec<_> = (2..6).flat_map(|lease| add(&mut worker, lease, &[needs])).collect();
        hinted.sort_by_key(|hint| hint.1);
        assert_eq!(hinted.len(), 2, "{policy}: {hinted:?}");
        assert_eq!((hinted[0].1, hinted[1].1), (1, 2), "{policy}");
        assert_ne!(hinted[0].0, hinted[1].0, "{policy}: one task for two slots");
    }
}

#[test]
fn pats_prefers_the_hinted_task_among_equal_gains_only() {
    for (gain, expected) in [(3000, 3), (3001, 2)] {
        let mut worker = busy_with_prefetch(SchedulePolicy::Pats, u64::MAX);
        assert_eq!(add(&mut worker, 3, &[offer(0, 3000, 0)]), [(3, 1, 0)]);
        // Bucket 2 precedes bucket 3 in the plan's order.
        assert_eq!(add(&mut worker, 2, &[offer(0, gain, 0)]), []);
        assert_eq!(free(&mut worker, 1, 1, &[]), [(expected, 1, 0)], "gain {gain}");
    }
}
