//! Whole clusters: random scenarios under audit, and small ones with results computed by hand.
//!
//! A failed scenario leaves its log in the folder of test results. `pleach replay LOG` steps through it.

use pleach_dispatch::plan::BucketPlan;
use pleach_reuse::{Buckets, Member, MergeProblem, ReuseTree, TaskCosts, bucket_costs};
use pleach_simulation::cluster::{Cluster, ClusterStats, workloads};
use pleach_simulation::log::Log;
use pleach_simulation::replay::Replay;
use pleach_simulation::scenario::{Incident, NetworkModel, NodeSpec, Scenario};
use pleach_simulation::workload::{Bucketing, SyntheticWorkload};
use proptest::collection::vec;
use proptest::prelude::*;
use std::fs::File;
use std::num::NonZeroUsize;
use std::path::Path;

const RECIPE: SyntheticWorkload = SyntheticWorkload {
    tiles: 1,
    instances: 12,
    levels: 3,
    values: 3,
    task_seconds: 1.0,
    first_seconds: None,
    variation: 0.0,
    region_bytes: 48_000_000,
    cut: Bucketing::Single,
    seed: 1,
};

fn schedule(nodes: usize, recipe: SyntheticWorkload) -> Scenario {
    Scenario {
        seed: 1,
        nodes: vec![NodeSpec { slots: 1, speed: 1.0 }; nodes],
        studies: vec![(0, recipe)],
        incidents: Vec::new(),
        network: NetworkModel { latency_us: 1000, jitter_us: 0, ..NetworkModel::default() },
        tick_ms: 500,
        replan: false,
        limit_seconds: 10_000.0,
    }
}

/// Runs a scenario under audit. A failed one leaves its log.
fn run(schedule: &Scenario) -> ClusterStats {
    run_cluster(schedule, Cluster::new(schedule.clone(), true, true))
}

fn run_cluster(schedule: &Scenario, mut cluster: Cluster) -> ClusterStats {
    let figures = cluster.run().unwrap_or_else(|stop| {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("simulation-{}.log", schedule.seed));
        let written =
            File::create(&path).and_then(|file| Log::write(schedule, cluster.observed().record(), file));
        panic!("{stop}; the log is {} ({written:?})", path.display());
    });
    assert_eq!(figures.begun_in_vain, 0, "{figures:?}");
    figures
}

#[test]
fn one_worker_takes_the_task_and_message_time() {
    let figures = run(&schedule(1, RECIPE));
    // 12 instances of 3 s each. Join and request arrive after 1 ms, an assignment after 2 ms, and the last report after
    // 1 ms more. A request and an assignment follow each bucket but the last.
    assert_eq!((figures.work_seconds, figures.executed, figures.finished), (36.0, 12, 12));
    assert_eq!(figures.makespan_seconds, 36.0 + 12.0 * 0.002 + 0.001);
    let figures = run(&schedule(12, RECIPE));
    assert_eq!(figures.makespan_seconds, 3.003);
}

#[test]
fn bucket_time_equals_the_planned_cost() {
    let recipe = SyntheticWorkload {
        instances: 40,
        cut: Bucketing::Trtma(NonZeroUsize::new(6).expect("six")),
        ..RECIPE
    };
    let schedule = schedule(2, recipe);
    let design = recipe.design();
    let problem = MergeProblem::new(3, vec![0; 40], design.keys.clone(), TaskCosts::PerLevel(design.seconds))
        .expect("tables");
    let workload = workloads(&schedule).remove(0);
    let mut buckets = Buckets::default();
    let members = |bucket: &BucketPlan| bucket.instances.iter().map(|id| Member(id.0)).collect::<Vec<_>>();
    workload.plan.buckets.iter().for_each(|bucket| buckets.push(members(bucket)));
    let costs = bucket_costs(&ReuseTree::build(&problem), &buckets, |_| true);
    assert!(costs.len() <= 6 && costs.iter().any(|bucket| bucket.tasks < 3 * 40 / 6));
    let planned: f64 = costs.iter().map(|bucket| bucket.cost).sum();
    // Work stealing splits unstarted buckets, and tasks that both parts share run twice.
    let figures = run(&schedule);
    let apart = f64::from(3 * figures.shared as u32);
    assert!(figures.work_seconds >= planned && figures.work_seconds <= planned + apart, "{figures:?}");
    for (bucket, cost) in workload.plan.buckets.iter().zip(costs) {
        let mut instances = bucket.instances.clone();
        instances.sort_by_key(|instance| workload.order(*instance));
        let after = [None].into_iter().chain(instances.iter().copied().map(Some));
        let seconds: f64 =
            after.zip(&instances).map(|(after, instance)| workload.seconds(after, *instance)).sum();
        assert_eq!(seconds, cost.cost);
    }
}

#[test]
fn the_same_schedule_gives_the_same_events() {
    let mut schedule =
        schedule(3, SyntheticWorkload { first_seconds: Some(2.0), tiles: 4, variation: 0.3, ..RECIPE });
    schedule.network = NetworkModel { jitter_us: 700, loss: 0.05, ..NetworkModel::default() };
    schedule.incidents = vec![
        (3_000, Incident::Crash { node: 1 }),
        (4_000, Incident::Join(NodeSpec { slots: 2, speed: 2.0 })),
        (5_000, Incident::Restart { milliseconds: 700 }),
    ];
    let record = || {
        let mut cluster = Cluster::new(schedule.clone(), true, true);
        cluster.run().expect("it comes to its end");
        cluster.observed().record().to_vec()
    };
    let first = record();
    assert!(first.len() > 100);
    assert_eq!(first, record());
    // A log round trip gives the same events, and their replay has no violation.
    let mut text = Vec::new();
    Log::write(&schedule, &first, &mut text).expect("memory takes anything");
    let log = Log::parse(&String::from_utf8(text).expect("JSON")).expect("a log");
    assert_eq!((&log.schedule, &log.events), (&schedule, &first));
    let steps: Vec<_> = Replay::new(&log).collect();
    assert_eq!(steps.len(), first.len());
    assert!(steps.iter().all(|step| step.breach.is_none()));
    assert!(steps.iter().flat_map(|step| &step.effects).any(|effect| effect == "study 0 is complete"));
}

#[test]
fn log_with_a_violation_is_replayed_up_to_it() {
    let schedule = schedule(2, RECIPE);
    let mut cluster = Cluster::new(schedule.clone(), true, true);
    cluster.run().expect("it comes to its end");
    let mut events = cluster.observed().record().to_vec();
    // A submission of a plan that the log does not have.
    let done =
        events.iter().position(|said| matches!(said.event, pleach_simulation::event::Event::Submit { .. }));
    let mut again = events[done.expect("a submission")].clone();
    if let pleach_simulation::event::Event::Submit { plan, .. } = &mut again.event {
        *plan = 7;
    }
    events.insert(10, again);
    let log = Log { schedule, events };
    let steps: Vec<_> = Replay::new(&log).collect();
    assert_eq!(steps.len(), 11, "nothing after the breach");
    assert!(steps[10].breach.as_ref().is_some_and(|breach| breach.contains("plan: 7")), "{:?}", steps[10]);
}

#[test]
fn worker_cut_off_for_10_s_reattaches_and_for_1_s_keeps_leases() {
    let cut = |milliseconds| {
        let mut schedule = schedule(2, SyntheticWorkload { instances: 6, task_seconds: 5.0, ..RECIPE });
        schedule.incidents = vec![(1_000, Incident::Partition { node: 0, milliseconds })];
        run(&schedule)
    };
    let figures = cut(1_000);
    assert_eq!((figures.lost, figures.executed), (0, 6));
    let figures = cut(10_000);
    // The lost worker reattached its bucket: the other worker was busy and had not taken it.
    assert_eq!((figures.lost, figures.executed), (1, 6));
}

#[test]
fn restarted_manager_keeps_the_leases_of_workers() {
    let mut schedule = schedule(4, SyntheticWorkload { instances: 8, task_seconds: 10.0, ..RECIPE });
    schedule.incidents = vec![(5_000, Incident::Restart { milliseconds: 1_000 })];
    let figures = run(&schedule);
    // No instance runs twice, and the outage adds only the time until workers reattach.
    assert_eq!((figures.executed, figures.finished, figures.work_seconds), (8, 8, 240.0));
    assert!(figures.makespan_seconds < 60.1, "{figures:?}");
}

#[test]
fn joining_worker_gets_unstarted_instances_by_replan() {
    let cut = Bucketing::Trtma(NonZeroUsize::new(6).expect("six"));
    let recipe = SyntheticWorkload { instances: 60, values: 4, cut, ..RECIPE };
    let join = |replan: bool| {
        let mut schedule = schedule(2, recipe);
        schedule.replan = replan;
        let spec = NodeSpec { slots: 1, speed: 1.0 };
        schedule.incidents = vec![(1_500, Incident::Join(spec)), (1_600, Incident::Join(spec))];
        run(&schedule)
    };
    let (kept, anew) = (join(false), join(true));
    assert_eq!((kept.replans, kept.instances_moved), (0, 0));
    assert!(anew.replans > 0 && anew.instances_moved > 0 && anew.instances_moved < 60, "{anew:?}");
    assert_eq!((kept.finished, anew.finished), (60, 60));
    // More buckets share fewer tasks: the replan gives up some reuse.
    assert!(anew.work_seconds >= kept.work_seconds);
}

#[test]
fn node_with_time_limit_starts_only_what_it_can_finish() {
    // Instances of 3 s each. One node has 10 s: enough for 3 instances, and 1 s remains unused.
    let recipe = SyntheticWorkload {
        instances: 30,
        cut: Bucketing::Rtma(NonZeroUsize::new(5).expect("five")),
        ..RECIPE
    };
    let run = |milliseconds: Option<u64>| {
        let mut schedule = schedule(2, SyntheticWorkload { values: 1000, ..recipe });
        let end = milliseconds.map(|milliseconds| (0, Incident::LeaseEnd { node: 1, milliseconds }));
        schedule.incidents = end.into_iter().collect();
        run(&schedule)
    };
    let (stays, ends) = (run(None), run(Some(10_000)));
    assert_eq!((stays.executed, ends.executed, ends.finished), (30, 30, 30));
    // No instance runs twice, and the other node runs 27 of them.
    assert_eq!(ends.work_seconds, stays.work_seconds);
    assert!((81.0..81.2).contains(&ends.makespan_seconds), "{ends:?}");
    // A worker without time for any instance gets none.
    assert!((90.0..90.2).contains(&run(Some(2_000)).makespan_seconds));
}

/// Compared with an even division of the work, and with a manager without task timings.
#[test]
fn slow_nodes_get_less_work_and_do_not_delay_the_study() {
    let nodes: Vec<NodeSpec> =
        (0..8).map(|node| NodeSpec { slots: 2, speed: if node % 2 == 0 { 1.6 } else { 0.4 } }).collect();
    let cut = Bucketing::Trtma(NonZeroUsize::new(3 * 16).expect("48"));
    let recipe = SyntheticWorkload { instances: 600, values: 5, levels: 5, variation: 0.2, cut, ..RECIPE };
    let helped = Scenario { nodes, ..schedule(0, recipe) };
    let figures = run(&helped);
    let even = figures.work_seconds / 16.0;
    assert_eq!(figures.finished, 600);
    assert!(figures.makespan_seconds < 1.15 * even, "evenly {even} s: {figures:?}");
    // Without ticks no worker steals, so the makespan depends on the grants alone.
    let alone = Scenario { tick_ms: 10_000_000, ..helped };
    let (knowing, cluster) = (run(&alone), Cluster::new(alone.clone(), true, true));
    let unknowing = run_cluster(&alone, cluster.without_times());
    assert!(knowing.makespan_seconds < 0.85 * unknowing.makespan_seconds, "{knowing:?}, {unknowing:?}");
}

#[test]
fn crashing_instance_fails_at_crash_limit_and_others_finish() {
    let mut schedule = schedule(3, SyntheticWorkload { instances: 20, ..RECIPE });
    schedule.incidents = vec![(0, Incident::CrashingInstance { study: 0, instance: 4 })];
    schedule.incidents.extend((0..6).map(|number| (3_000 * number, Incident::Join(schedule.nodes[0]))));
    let figures = run(&schedule);
    assert_eq!((figures.lost, figures.failed, figures.finished), (5, 1, 19));
}

/// Eight tiles on 8 nodes, each with small tasks in 3 buckets. Each bucket takes a time on its slot before its first task.
fn queued(overhead_seconds: f64, set_up: impl Fn(Cluster) -> Cluster) -> (ClusterStats, Option<f64>) {
    let cut = Bucketing::Trtma(NonZeroUsize::new(24).expect("24"));
    let first_seconds = Some(1.0);
    let small = SyntheticWorkload { tiles: 8, instances: 60, values: 6, task_seconds: 0.05, ..RECIPE };
    let recipe = SyntheticWorkload { first_seconds, cut, ..small };
    let schedule = Scenario { tick_ms: 10, replan: true, ..schedule(8, recipe) };
    let mut cluster = set_up(Cluster::new(schedule, true, false).with_bucket_overhead(overhead_seconds));
    let figures = cluster.run().expect("it comes to its end");
    assert_eq!(figures.finished, 8 + 8 * 60, "{figures:?}");
    (figures, cluster.measured_bucket_overhead())
}

#[test]
fn small_tasks_behind_a_queue_go_in_larger_buckets() {
    let ((learned, measured), (unlearned, unmeasured)) =
        (queued(5.0, |cluster| cluster), queued(5.0, Cluster::without_times));
    let measured = measured.expect("more than 8 leases");
    assert!((measured - 5.0).abs() < 0.2 * 5.0, "{measured} s");
    assert_eq!(unmeasured, None, "without times of tasks, no overhead is known");
    // One bucket of a tile is running, and the other two become one.
    assert!(learned.replans > 0 && learned.instances_moved >= 8 * 15, "{learned:?}");
    assert_eq!((unlearned.replans, unlearned.instances_moved), (0, 0), "{unlearned:?}");
    assert!(learned.leases < unlearned.leases, "{learned:?}, {unlearned:?}");
    assert!(learned.makespan_seconds < unlearned.makespan_seconds, "{learned:?}, {unlearned:?}");
}

/// Two tiles on 8 nodes, after 8 tiles whose leases have shown the overhead of a bucket.
#[test]
fn work_shorter_than_the_measured_overhead_is_not_stolen() {
    let stolen = |set_up: fn(Cluster) -> Cluster, overhead_seconds: f64| {
        let recipe = |tiles, instances| SyntheticWorkload {
            tiles,
            instances,
            values: 6,
            task_seconds: 0.05,
            first_seconds: Some(1.0),
            cut: Bucketing::Trtma(NonZeroUsize::new(6).expect("6")),
            ..RECIPE
        };
        let mut schedule = Scenario { tick_ms: 10, replan: true, ..schedule(8, recipe(8, 20)) };
        schedule.studies.push((60_000, recipe(2, 60)));
        let mut cluster = set_up(Cluster::new(schedule, true, false).with_bucket_overhead(overhead_seconds));
        let figures = cluster.run().expect("it comes to its end");
        (figures.shared, figures.makespan_seconds)
    };
    let (learned, unlearned) = (stolen(|cluster| cluster, 5.0), stolen(Cluster::without_times, 5.0));
    assert!(learned.0 <= 2 && unlearned.0 >= 10, "{learned:?}, {unlearned:?}");
    assert!(learned.1 < unlearned.1, "{learned:?}, {unlearned:?}");
    assert!(stolen(|cluster| cluster, 0.0).0 >= 8, "without an overhead, idle nodes help");
}

/// 1 ms: far below the overheads that change a plan.
#[test]
fn buckets_without_a_queue_stay_as_they_are() {
    let ((learned, measured), (unlearned, _)) =
        (queued(1e-3, |cluster| cluster), queued(1e-3, |cluster| cluster.with_bucket_overhead(0.0)));
    assert!(measured.is_some_and(|seconds| seconds < 0.1), "{measured:?}");
    let plan = |figures: ClusterStats| (figures.replans, figures.instances_moved, figures.leases);
    assert_eq!(plan(learned), plan(unlearned));
}

fn incidents() -> impl Strategy<Value = (u64, Incident)> {
    let incident = prop_oneof![
        4 => (1u32..4, 0.25f64..4.0).prop_map(|(slots, speed)| Incident::Join(NodeSpec { slots, speed })),
        3 => (0usize..8).prop_map(|node| Incident::Crash { node }),
        4 => (0usize..8, 1u64..12_000).prop_map(|(node, milliseconds)| Incident::Partition { node, milliseconds }),
        3 => (0usize..8).prop_map(|node| Incident::Drain { node }),
        2 => (0usize..8, 0u64..40_000)
            .prop_map(|(node, milliseconds)| Incident::LeaseEnd { node, milliseconds }),
        2 => (1u64..5_000).prop_map(|milliseconds| Incident::Restart { milliseconds }),
        1 => (0usize..3).prop_map(|study| Incident::Cancel { study }),
        1 => (0usize..3, 0u32..40).prop_map(|(study, instance)| Incident::CrashingInstance { study, instance }),
    ];
    (0u64..60_000, incident)
}

prop_compose! {
    fn recipes()(
        tiles in 1u32..5, instances in 1u32..14, levels in 1u32..4, values in 1u32..4, task_seconds in 0.05f64..4.0,
        first_seconds in prop::option::of(0.1f64..8.0), variation in 0.0f64..1.0, size in 1usize..20, kind in 0u8..4,
        seed in any::<u64>(),
    ) -> SyntheticWorkload {
        let size = NonZeroUsize::new(size).expect("at least 1");
        let cut = match kind {
            0 => Bucketing::Single,
            1 => Bucketing::Rtma(size),
            2 => Bucketing::Trtma(size),
            _ => Bucketing::TrtmaByCount(size),
        };
        SyntheticWorkload { tiles, instances, levels, values, task_seconds, first_seconds, variation, region_bytes: 48_000_000, cut, seed }
    }
}

prop_compose! {
    fn schedules()(
        seed in any::<u64>(),
        nodes in vec((1u32..4, 0.25f64..4.0).prop_map(|(slots, speed)| NodeSpec { slots, speed }), 0..6),
        studies in vec((0u64..20_000, recipes()), 1..4),
        mut incidents in vec(incidents(), 0..16),
        latency_us in 10u64..100_000, jitter_us in 0u64..100_000, loss in prop_oneof![Just(0.0), 0.0f64..0.4],
        replan in any::<bool>(),
    ) -> Scenario {
        // At the end, enough good workers join for the instances that crash theirs.
        let good = NodeSpec { slots: 2, speed: 1.0 };
        incidents.extend((0..18).map(|number| (61_000 + 4_000 * number, Incident::Join(good))));
        let network = NetworkModel { latency_us, jitter_us, loss, bytes_per_second: 1.25e8 };
        Scenario { seed, nodes, studies, incidents, network, tick_ms: 500, replan, limit_seconds: 20_000.0 }
    }
}

proptest! {
    #[test]
    fn any_scenario_completes_without_audit_violation(schedule in schedules()) {
        run(&schedule);
    }
}
