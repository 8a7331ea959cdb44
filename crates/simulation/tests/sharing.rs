//! Workers that share task results: the tasks that they run, incidents, and equal simulations of equal options.

use pleach_dispatch::plan::ReuseScope;
use pleach_simulation::sharing::{SharedStudy, SharingCluster, SharingOptions, SharingStats};
use proptest::prelude::*;

const SECONDS: [f64; 7] = [1.14, 1.99, 0.65, 0.33, 0.76, 3.76, 0.86];

/// A hundredth of the cost: tasks of 3–38 ms, some of them looked up ahead.
const SHORT: [f64; 7] = [0.0114, 0.0199, 0.0065, 0.0033, 0.0076, 0.0376, 0.0086];

const PLANE_BYTES: u64 = 1 << 24;

fn study(rows: usize, scope: ReuseScope, seconds: [f64; 7]) -> SharedStudy {
    let table = include_str!("../benches/directory/moat_992_seed500.txt");
    let lines: Vec<&str> = table.lines().take(rows).collect();
    SharedStudy::nuclei(&lines.join("\n"), scope, seconds, PLANE_BYTES).expect("a valid table")
}

fn run(study: &SharedStudy, options: SharingOptions) -> SharingStats {
    SharingCluster::new(study.clone(), options).run(10_000.0).expect("the study ends")
}

#[test]
fn workers_that_share_run_each_distinct_task_once() {
    for scope in [ReuseScope::Dataflow, ReuseScope::Value] {
        for seconds in [SECONDS, SHORT] {
            let study = study(200, scope, seconds);
            let stats = run(&study, SharingOptions { logged: true, ..SharingOptions::new(8, 1) });
            assert_eq!(stats.repeated, 0, "{scope:?}");
            // Fewer, if the only reader of an output was found by its content.
            assert!(stats.runs as usize <= study.cost().unique_tasks, "{scope:?}: {}", stats.runs);
            assert_eq!(stats.finished, 200);
            let alone = run(&study, SharingOptions { shared: false, ..SharingOptions::new(8, 1) });
            assert!(alone.repeated > 50, "{scope:?}: {}", alone.repeated);
            assert!(stats.run_seconds < 0.95 * alone.run_seconds);
        }
    }
}

#[test]
fn one_worker_saves_as_much_as_eight() {
    let study = study(150, ReuseScope::Value, SECONDS);
    let (one, eight) = (run(&study, SharingOptions::new(1, 1)), run(&study, SharingOptions::new(8, 1)));
    assert_eq!(one.runs, eight.runs);
    assert_eq!(one.bytes_moved, 0);
}

#[test]
fn longest_paths_first_shorten_the_end() {
    let study = study(300, ReuseScope::Dataflow, SECONDS);
    let paths = run(&study, SharingOptions::new(64, 1));
    let depth = run(&study, SharingOptions { tail_tasks: 0, ..SharingOptions::new(64, 1) });
    assert!(paths.makespan_seconds < 0.95 * depth.makespan_seconds, "{paths:?} {depth:?}");
}

#[test]
fn other_tasks_run_during_waits() {
    let study = study(300, ReuseScope::Value, SECONDS);
    let others = run(&study, SharingOptions::new(64, 1));
    let one = run(&study, SharingOptions { takes_others: false, ..SharingOptions::new(64, 1) });
    assert!(others.makespan_seconds < 0.95 * one.makespan_seconds, "{others:?} {one:?}");
}

#[test]
fn longer_paths_of_other_workers_precede_last_tasks() {
    for (scope, of_bound) in [(ReuseScope::Dataflow, 1.10), (ReuseScope::Value, 1.20)] {
        let study = study(992, scope, SECONDS);
        let paths = run(&study, SharingOptions::new(256, 500));
        let without = run(&study, SharingOptions { steals_paths: false, ..SharingOptions::new(256, 500) });
        assert!(paths.makespan_seconds < 0.98 * without.makespan_seconds, "{paths:?} {without:?}");
        let cost = study.cost();
        let bound = cost.critical_seconds.max(cost.unique_seconds / 256.0);
        assert!(
            paths.makespan_seconds < of_bound * bound,
            "{scope:?}: {} of {bound}",
            paths.makespan_seconds
        );
        assert_eq!(paths.repeated, 0);
        assert_eq!(paths.runs, without.runs);
    }
}

#[test]
fn receivers_send_the_outputs_of_first_tasks_on() {
    let study = study(992, ReuseScope::Value, SECONDS);
    let all = run(&study, SharingOptions::new(1024, 500));
    let one = run(&study, SharingOptions { broadcasts: false, ..SharingOptions::new(1024, 500) });
    assert!(all.makespan_seconds < 0.95 * one.makespan_seconds, "{all:?} {one:?}");
    assert!(all.makespan_seconds < 1.06 * study.cost().critical_seconds, "{}", all.makespan_seconds);
    assert_eq!(all.repeated, 0);
}

/// At 100 Mbit/s a plane takes 1.3 s, longer than all tasks but two.
#[test]
fn tasks_run_again_where_their_outputs_take_longer() {
    for scope in [ReuseScope::Dataflow, ReuseScope::Value] {
        let study = study(200, scope, SECONDS);
        let slow = SharingOptions { bytes_per_second: 1.25e7, ..SharingOptions::new(8, 1) };
        let (again, fetched) = (run(&study, slow), run(&study, SharingOptions { recomputes: false, ..slow }));
        // A claimer whose inputs take longer than its task is expected to: another worker runs the task too.
        assert!(fetched.repeated <= 2, "{fetched:?}");
        assert!(
            again.repeated > fetched.repeated && again.bytes_moved < fetched.bytes_moved,
            "{again:?} {fetched:?}"
        );
        assert!(again.makespan_seconds < fetched.makespan_seconds, "{again:?} {fetched:?}");
        assert_eq!(again.finished, 200);
        // Outputs of a fast network are fetched.
        assert_eq!(run(&study, SharingOptions::new(8, 1)).repeated, 0);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn every_study_ends_and_is_reproducible(
        seed in any::<u64>(),
        rows in 1..80_usize,
        workers in 1..24_usize,
        is_value in any::<bool>(),
        is_short in any::<bool>(),
        planes in 4..60_u64,
        lost in 0..4_usize,
        after_us in 0..20_000_000_u64,
        tail_tasks in 0..60_usize,
        waiting_buckets in 1..4_usize,
        takes_others in any::<bool>(),
        announces_early in any::<bool>(),
        steals_paths in any::<bool>(),
        broadcasts in any::<bool>(),
        megabytes_per_second in prop::sample::select(vec![1250.0, 40.0, 4.0]),
    ) {
        let scope = if is_value { ReuseScope::Value } else { ReuseScope::Dataflow };
        let study = study(rows, scope, if is_short { SHORT } else { SECONDS });
        let lost = lost.min(workers - 1);
        let options = SharingOptions {
            result_bytes: planes * PLANE_BYTES,
            lost: (lost > 0).then_some((lost, if is_short { after_us / 100 } else { after_us })),
            tail_tasks,
            waiting_buckets,
            takes_others,
            announces_early,
            steals_paths,
            broadcasts,
            bytes_per_second: megabytes_per_second * 1e6,
            logged: true,
            ..SharingOptions::new(workers, seed)
        };
        let (mut first, mut second) =
            (SharingCluster::new(study.clone(), options), SharingCluster::new(study, options));
        let (stats, again) = (first.run(10_000.0), second.run(10_000.0));
        prop_assert!(stats.is_ok(), "{stats:?}");
        prop_assert_eq!(stats.clone(), again);
        let differs = first.log().iter().zip(second.log()).find(|(a, b)| a != b);
        prop_assert_eq!(differs, None);
        prop_assert!(stats.unwrap().finished >= rows as u64);
    }
}
