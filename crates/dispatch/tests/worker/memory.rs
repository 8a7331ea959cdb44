//! Manager, worker and stages together, within a memory budget: it is never exceeded, and every study ends.

use crate::node::{Node, Setup};
use crate::studies::{Study, studies};
use pleach_dispatch::InstanceId;
use pleach_dispatch::dry_run::rehearse;
use pleach_dispatch::memory_model::TaskMemory;
use pleach_dispatch::worker::{SchedulePolicy, WorkerSlots};
use proptest::collection::vec;
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::num::NonZeroU32;

/// Returns the study with the minimum memory of a dry run on estimates, which are `believed` quarters of the
/// true sizes.
fn rehearsed(mut study: Study, believed: u64) -> Study {
    let guess = |bytes: u64| bytes * believed / 4;
    let bytes = |stage, pixels| {
        let of = |task: TaskMemory| TaskMemory {
            scratch: guess(task.scratch),
            outputs: task.outputs.into_iter().map(guess).collect(),
        };
        study.bytes(stage, pixels).into_iter().map(of).collect()
    };
    study.plan.needs = rehearse(&study.plan, bytes).expect("a plan that keeps the rules").needs;
    study
}

/// Slots of cores only, or of both kinds under any policy.
fn slots() -> impl Strategy<Value = WorkerSlots> {
    let kinds = (1u32..5, 1u32..4, 0..SchedulePolicy::ALL.len());
    let both = kinds.prop_map(|(cores, accelerators, policy)| WorkerSlots {
        cores,
        accelerators,
        device_bytes: 2,
        policy: SchedulePolicy::ALL[policy],
    });
    prop_oneof![(1u32..5).prop_map(WorkerSlots::from), both]
}

fn active_paths() -> impl Strategy<Value = Option<NonZeroU32>> {
    prop_oneof![Just(None), (1u32..4).prop_map(NonZeroU32::new)]
}

/// Returns the instances with reported outputs that `chosen` selects as finished.
fn reporters(study: &Study, chosen: &[bool]) -> BTreeSet<InstanceId> {
    let ids = study.plan.instances.enumerate();
    let reports = ids.filter(|(_, instance)| instance.outputs.iter().any(|output| output.reported));
    reports
        .map(|(id, _)| id)
        .zip(chosen.iter().cycle())
        .filter(|(_, chosen)| **chosen)
        .map(|(id, _)| id)
        .collect()
}

fn open(study: &Study, finished: &BTreeSet<InstanceId>) -> BTreeSet<InstanceId> {
    let open = (0u32..).map(InstanceId).zip(study.plan.unfinished(finished));
    open.filter(|(_, open)| *open).map(|(id, _)| id).collect()
}

fn all_is_done_within(node: &mut Node<'_>, study: &Study, budget: u64) -> Result<(), TestCaseError> {
    while node.step() {}
    prop_assert!(node.complete, "stuck:\n{}", node.log.join("\n"));
    prop_assert_eq!(node.done.len(), study.plan.instances.len());
    prop_assert_eq!(node.held_bytes(), 0);
    let most = node.worker.peak_bytes().max(node.most_bytes);
    prop_assert!(most <= budget, "{most} of {budget}:\n{}", node.log.join("\n"));
    Ok(())
}

proptest! {
    #[test]
    fn dry_run_memory_suffices_and_is_never_exceeded(
        study in studies().prop_filter("see `rehearsal`", |study| !study.crosses),
        slots in slots(),
        more in prop_oneof![Just(0u64), 1u64..200],
        active_paths in active_paths(),
        seed: u64,
    ) {
        let study = rehearsed(study, 4);
        let budget = study.plan.needs.min_bytes + more;
        let mut node = Node::new(&study, Setup { slots, budget, active_paths, believed: 4, seed, below: 0 }, &BTreeSet::new());
        all_is_done_within(&mut node, &study, budget)?;
    }

}

proptest! {
    /// With a spill tier for all stored regions, a smaller budget suffices and is never exceeded.
    #[test]
    fn spill_room_lowers_the_minimum_memory(
        study in studies().prop_filter("see `rehearsal`", |study| !study.crosses),
        slots in slots(),
        more in prop_oneof![Just(0u64), 1u64..200],
        active_paths in active_paths(),
        seed: u64,
    ) {
        let study = rehearsed(study, 4);
        let needs = &study.plan.needs;
        prop_assert!(needs.busy_bytes <= needs.min_bytes);
        let budget = needs.busy_bytes + more;
        let setup = Setup { slots, budget, active_paths, believed: 4, seed, below: 1 << 40 };
        let mut node = Node::new(&study, setup, &BTreeSet::new());
        all_is_done_within(&mut node, &study, budget)?;
    }

    /// The study ends with a spill tier of any size.
    #[test]
    fn limited_spill_room_completes_the_study(
        study in studies(), slots in slots(), believed in 0u64..5, quarters in 0u64..5, below in 0u64..500, seed: u64,
    ) {
        let study = rehearsed(study, believed);
        let budget = study.plan.needs.min_bytes * quarters / 4;
        let setup = Setup { slots, budget, active_paths: None, believed, seed, below };
        let mut node = Node::new(&study, setup, &BTreeSet::new());
        while node.step() {}
        prop_assert!(node.complete, "stuck:\n{}", node.log.join("\n"));
        prop_assert_eq!(node.held_bytes(), 0);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Beside processes of any size, the rest of the budget is never exceeded, and the minimum memory suffices.
    #[test]
    fn processes_take_a_part_of_the_budget(
        study in studies().prop_filter("see `rehearsal`", |study| !study.crosses),
        slots in slots(),
        more in prop_oneof![Just(0u64), 1u64..200],
        process_bytes in 0u64..1000,
        seed: u64,
    ) {
        let study = rehearsed(study, 4);
        let left = study.plan.needs.min_bytes + more;
        let budget = left + process_bytes;
        let setup = Setup { slots, budget, active_paths: None, believed: 4, seed, below: 0 };
        let mut node = Node::new(&study, setup, &BTreeSet::new());
        node.worker.handle_processes(process_bytes);
        all_is_done_within(&mut node, &study, left)?;
    }

    /// A budget that is never reached leads to the same execution as no budget.
    #[test]
    fn ample_memory_never_delays_a_task(study in studies(), slots in 1u32..5, seed: u64) {
        let study = rehearsed(study, 4);
        let all = study.plan.needs.min_bytes * 8 * (study.plan.instances.len() as u64 + 1);
        let run = |budget| {
            let setup = Setup { slots: slots.into(), budget, active_paths: None, believed: 4, seed, below: 0 };
            let mut node = Node::new(&study, setup, &BTreeSet::new());
            while node.step() {}
            (node.log.clone(), node.calls)
        };
        let plenty = run(all);
        prop_assert_eq!(plenty.1, 0, "somebody was stuck");
        prop_assert_eq!(plenty, run(u64::MAX));
    }

    /// For any true sizes and any budget, the study ends. With exact estimates, the worker's peak covers all
    /// bytes.
    #[test]
    fn insufficient_memory_completes_the_study(
        study in studies(), slots in slots(), believed in 0u64..5, quarters in 0u64..5, active_paths in active_paths(), seed: u64,
    ) {
        let study = rehearsed(study, believed);
        let budget = study.plan.needs.min_bytes * quarters / 4;
        let mut node = Node::new(&study, Setup { slots, budget, active_paths, believed, seed, below: 0 }, &BTreeSet::new());
        while node.step() {}
        prop_assert!(node.complete, "stuck:\n{}", node.log.join("\n"));
        prop_assert_eq!(node.done.len(), study.plan.instances.len());
        prop_assert_eq!(node.held_bytes(), 0);
        if believed == 4 {
            // The worker has reserved all bytes, within the budget or beyond it.
            prop_assert!(node.most_bytes <= node.worker.peak_bytes());
        }
    }

    #[test]
    fn resumed_study_runs_exactly_the_open_instances(
        study in studies(), slots in slots(), chosen in vec(any::<bool>(), 1..20), seed: u64,
    ) {
        let study = rehearsed(study, 4);
        let finished = reporters(&study, &chosen);
        let budget = study.plan.needs.min_bytes;
        let mut node = Node::new(&study, Setup { slots, budget, active_paths: None, believed: 4, seed, below: 0 }, &finished);
        while node.step() {}
        prop_assert!(node.complete);
        prop_assert_eq!(&node.done, &open(&study, &finished));
        prop_assert_eq!(node.held_bytes(), 0);
    }

    /// Stopped at any moment, the worker finishes and reports its running tasks and starts no others. The rest
    /// can be resumed.
    #[test]
    fn stopped_study_leaves_no_unreported_instance(
        study in studies(), slots in slots(), more in 0u64..200, steps in 0usize..150, seed: u64,
    ) {
        let study = rehearsed(study, 4);
        let budget = study.plan.needs.min_bytes + more;
        let setup = Setup { slots, budget, active_paths: None, believed: 4, seed, below: 0 };
        let mut node = Node::new(&study, setup, &BTreeSet::new());
        for _ in 0..steps {
            node.step();
        }
        node.stop();
        while node.step() {}
        prop_assert!(node.complete || node.stopped);
        prop_assert!(node.left || node.complete);
        prop_assert!(study.crosses || node.most_bytes <= budget);

        let all = reporters(&study, &[true]);
        let finished: BTreeSet<InstanceId> = node.done.intersection(&all).copied().collect();
        let mut rest = Node::new(&study, setup, &finished);
        while rest.step() {}
        prop_assert!(rest.complete);
        prop_assert_eq!(&rest.done, &open(&study, &finished));
        prop_assert!(all.is_subset(&finished.union(&rest.done).copied().collect()));
    }
}
