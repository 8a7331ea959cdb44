//! Long random histories of a manager with several studies: the audit finds no violation after any event, and one good
//! worker finishes all studies in the end.

#[path = "../../../dispatch/tests/support/plans.rs"]
mod plans;
#[path = "../../../dispatch/tests/support/shapes.rs"]
mod shapes;
mod world;

use plans::{chain, plans};
use pleach_dispatch::plan::ExecutionPlan;
use proptest::collection::vec;
use proptest::prelude::*;
use world::{Step, World};

/// Possible events. Numbers choose among the objects that exist at the time.
fn steps() -> impl Strategy<Value = Step> {
    let number = any::<usize>;
    prop_oneof![
        2 => number().prop_map(|plan| Step::Submit { plan }),
        1 => number().prop_map(|which| Step::Cancel { which }),
        3 => (1u32..4, any::<u8>(), 0u64..4).prop_map(|(slots, lacks, memory)| Step::Join { slots, lacks, memory }),
        8 => (number(), 0u32..4).prop_map(|(worker, buckets)| Step::Ask { worker, buckets }),
        4 => (number(), 0u32..4).prop_map(|(worker, stage)| Step::AskAfter { worker, stage }),
        14 => (number(), prop::bool::weighted(0.93)).prop_map(|(which, succeeds)| Step::Report { which, succeeds }),
        2 => (number(), any::<bool>()).prop_map(|(which, succeeds)| Step::Late { which, succeeds }),
        1 => number().prop_map(|which| Step::Forged { which }),
        2 => (number(), any::<u8>()).prop_map(|(which, keys)| Step::Lacks { which, keys }),
        2 => (number(), any::<u64>()).prop_map(|(which, chosen)| Step::Back { which, chosen }),
        2 => (number(), any::<u64>(), 1usize..4).prop_map(|(which, chosen, size)| Step::Replan { which, chosen, size }),
        2 => number().prop_map(|worker| Step::Drain { worker }),
        3 => (number(), prop::bool::weighted(0.8)).prop_map(|(which, succeeds)| Step::Copied { which, succeeds }),
        3 => number().prop_map(|which| Step::Replicate { which }),
        1 => (number(), number()).prop_map(|(worker, which)| Step::Dropped { worker, which }),
        3 => (number(), any::<bool>()).prop_map(|(worker, lost)| Step::Leave { worker, lost }),
        4 => (0u64..5000).prop_map(|milliseconds| Step::Tick { milliseconds }),
        3 => (number(), number(), 0u32..8, 0.0f64..9.0)
            .prop_map(|(worker, which, tasks, seconds)| Step::Ran { worker, which, tasks, seconds }),
        1 => (number(), 0u64..60_000).prop_map(|(worker, milliseconds)| Step::LeaseEnd { worker, milliseconds }),
        1 => (any::<u64>(), any::<bool>()).prop_map(|(bring, early)| Step::Restart { bring, early }),
    ]
}

/// Plans with different operations in their stages, and different memory needs.
fn several() -> impl Strategy<Value = Vec<ExecutionPlan>> {
    vec((plans(), 0u64..3), 1..4)
        .prop_map(|plans| plans.into_iter().map(|(plan, bytes)| named(plan, bytes)).collect())
}

/// Instances without parents.
fn alike(instances: u32, bucket: usize) -> ExecutionPlan {
    let all: Vec<u32> = (0..instances).collect();
    let buckets: Vec<&[u32]> = all.chunks(bucket).collect();
    chain(&vec![(0, None); instances as usize], &buckets)
}

/// Gives each stage an operation of its own.
fn named(mut plan: ExecutionPlan, min_bytes: u64) -> ExecutionPlan {
    for (number, stage) in plan.stages.iter_mut().enumerate() {
        stage.tasks.iter_mut().for_each(|task| task.operation = format!("test.s{number}"));
    }
    plan.needs.min_bytes = min_bytes;
    plan
}

proptest! {
    #[test]
    fn one_good_worker_completes_studies_after_any_history(plans in several(), steps in vec(steps(), 0..160)) {
        let mut world = World::new(plans);
        for step in steps {
            world.step(step);
        }
        world.leave_all_but_the_drained();
        world.finish_with_one_worker();
    }

    /// Studies that share workers have equal numbers of leases while all have a ready bucket that any worker can run.
    #[test]
    fn studies_that_share_workers_have_as_many_leases_each(
        sizes in vec((1u32..20, 1usize..3), 2..5), workers in vec(1u32..5, 1..6), order in vec(any::<usize>(), 60),
    ) {
        let count = sizes.len();
        let mut world = World::new(sizes.into_iter().map(|(instances, bucket)| alike(instances, bucket)).collect());
        let workers: Vec<_> = workers.into_iter().map(|slots| (world.join_good(slots), slots)).collect();
        (0..count).for_each(|plan| world.step(Step::Submit { plan }));
        for (worker, slots) in workers {
            world.ask(worker, slots);
            world.even_leases();
        }
        for which in order {
            world.report_and_ask(which);
            world.even_leases();
        }
        world.leave_all_but_the_drained();
        world.finish_with_one_worker();
    }

    /// A draining worker is dismissed after it has returned its instances and peers have fetched its sole copies.
    #[test]
    fn a_drain_ends_and_loses_nothing(plans in several(), steps in vec(steps(), 0..100), which in any::<usize>()) {
        let mut world = World::new(plans);
        for step in steps {
            world.step(step);
        }
        world.resume();
        world.join_good(2);
        world.step(Step::Drain { worker: which });
        world.end_drains();
        world.leave_all_but_the_drained();
        world.finish_with_one_worker();
    }

    /// Under constant load, an instance of lost workers still gets an empty worker before the end of the study.
    #[test]
    fn suspect_instance_gets_an_isolated_worker_under_load(good in vec(2u32..4, 1..5), order in vec(any::<usize>(), 40)) {
        let mut world = World::new(vec![alike(100, 1)]);
        world.step(Step::Submit { plan: 0 });
        world.lose_with_the_first(2);
        let good: Vec<_> = good.into_iter().map(|slots| (world.join_good(slots), slots)).collect();
        world.keep_busy(&good, &order);
        world.leave_all_but_the_drained();
        world.finish_with_one_worker();
    }

    /// An instance that crashes every worker fails at the crash limit, and all other instances finish.
    #[test]
    fn crashing_instance_fails_alone_at_the_crash_limit(plans in several(), poison in any::<usize>(), slots in 1u32..4) {
        let mut world = World::new(plans);
        world.step(Step::Submit { plan: 0 });
        world.finish_with_poison(poison, slots);
    }
}
