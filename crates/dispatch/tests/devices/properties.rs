//! Properties of all policies on random pipelines.

use crate::clock::{Clock, Setup};
use crate::reference::setups;
use pleach_dispatch::SlotKind;
use pleach_dispatch::worker::{SchedulePolicy, WorkerSlots};
use proptest::prelude::*;
use std::collections::BTreeSet;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    /// Every task of every instance ends once, on any policy, also if devices fail until all are closed.
    #[test]
    fn every_task_runs_once_under_every_policy(setup in setups(), fails_every in prop_oneof![Just(None), (1u32..6).prop_map(Some)]) {
        let all: BTreeSet<(u32, usize)> =
            (0..setup.instances).flat_map(|instance| (0..setup.tasks.len()).map(move |task| (instance, task))).collect();
        for policy in SchedulePolicy::ALL {
            let slots = WorkerSlots { policy, ..setup.slots };
            let outcome = Clock::run(&Setup { slots, fails_every, ..setup.clone() });
            prop_assert!(outcome.ran.values().all(|ran| ran.len() == 1), "{policy}: {:?}", outcome.ran);
            prop_assert_eq!(&outcome.ran.keys().copied().collect::<BTreeSet<_>>(), &all);
            if fails_every == Some(1) {
                prop_assert!(outcome.ran.values().all(|ran| ran[0] == SlotKind::Core));
                prop_assert!(outcome.closed <= setup.slots.accelerators);
            }
        }
    }

    /// The driver asserts that a hint is for a busy accelerator, names a ready task, and that a task is hinted for one slot.
    #[test]
    fn hints_change_neither_the_tasks_nor_their_order(setup in setups(), transfer_ms in 0u32..3) {
        for policy in SchedulePolicy::ALL {
            let slots = WorkerSlots { policy, ..setup.slots };
            let setup = Setup { slots, prefetch: true, transfer_ms: f64::from(transfer_ms), ..setup.clone() };
            let outcome = Clock::run(&setup);
            prop_assert_eq!(outcome.ran.len(), setup.instances as usize * setup.tasks.len());
            prop_assert!(outcome.ran.values().all(|ran| ran.len() == 1), "{policy}: {:?}", outcome.ran);
            prop_assert!(outcome.prefetched <= outcome.hints);
            // No two tasks fit a device at once.
            let slots = WorkerSlots { device_bytes: 1, ..slots };
            let full = Clock::run(&Setup { slots, ..setup.clone() });
            prop_assert_eq!(full.hints, 0);
            // Without ties, the policy decides as without hints.
            if policy == SchedulePolicy::Heft && transfer_ms == 0 {
                prop_assert_eq!(outcome.seconds, Clock::run(&Setup { prefetch: false, ..setup }).seconds);
            }
        }
    }

    /// The driver and the worker assert that an accelerator has one download at a time. Rule 4 lets no task run beside one that fills
    /// the device.
    #[test]
    fn downloads_lose_no_task(setup in setups(), transfer_ms in 0u32..3, fails_every in prop_oneof![Just(None), (2u32..6).prop_map(Some)]) {
        for policy in SchedulePolicy::ALL {
            let slots = WorkerSlots { policy, ..setup.slots };
            let transfer_ms = f64::from(transfer_ms);
            let setup = Setup { slots, downloads: true, prefetch: true, transfer_ms, fails_every, ..setup.clone() };
            let outcome = Clock::run(&setup);
            prop_assert_eq!(outcome.ran.len(), setup.instances as usize * setup.tasks.len());
            prop_assert!(outcome.ran.values().all(|ran| ran.len() == 1), "{policy}: {:?}", outcome.ran);
            let slots = WorkerSlots { device_bytes: 1, ..slots };
            let full = Clock::run(&Setup { slots, ..setup });
            prop_assert_eq!(full.overlapped, 0);
            prop_assert_eq!(full.ran.len(), outcome.ran.len());
        }
    }

    /// An accelerator as fast as a core is one more core to FCFS.
    #[test]
    fn accelerator_without_gain_is_a_core(setup in setups()) {
        let tasks = setup.tasks.iter().map(|task| crate::clock::PipelineTask { device_ms: task.core_ms, ..task.clone() });
        let tasks: Vec<_> = tasks.collect();
        let run = |cores, accelerators| {
            let policy = SchedulePolicy::Fcfs;
            let slots = WorkerSlots { cores, accelerators, policy, ..setup.slots };
            Clock::run(&Setup { answers: false, ..Setup::new(&tasks, slots, setup.instances, setup.in_flight) }).seconds
        };
        let (cores, accelerators) = (setup.slots.cores, setup.slots.accelerators);
        prop_assert_eq!(run(cores, accelerators), run(cores + accelerators - 1, 1));
    }
}
