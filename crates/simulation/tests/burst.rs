//! Cloud bursts: small ones with results computed by hand, costs against an independent sum, and deadlines met whenever
//! the scaling step predicts it.

use pleach_dispatch::PlanId;
use pleach_dispatch::scaling::{PartitionForecast, WorkByPartition, WorkDemand, WorkerPool, decide};
use pleach_simulation::burst::{BaseCluster, Burst, CloudPool, Outcome, Policy, PolicyKind, run};
use pleach_simulation::cluster::{Cluster, SharedMachine};
use pleach_simulation::scenario::{NetworkModel, NodeSpec, Scenario};
use pleach_simulation::workload::{Bucketing, SyntheticWorkload, Workload};
use proptest::prelude::*;
use std::num::NonZeroUsize;

/// Instances of 10 s without reuse.
fn apart(instances: u32) -> Workload {
    Workload::new(PlanId::first_round(0), without_reuse(instances).design())
}

fn without_reuse(instances: u32) -> SyntheticWorkload {
    SyntheticWorkload {
        tiles: 1,
        instances,
        levels: 1,
        values: u32::MAX,
        task_seconds: 10.0,
        first_seconds: None,
        variation: 0.0,
        region_bytes: 1_000_000,
        cut: Bucketing::Single,
        seed: 1,
    }
}

/// Instances with reuse, after a first stage on each tile.
fn shared(tiles: u32, buckets: usize) -> Workload {
    shared_with(tiles, buckets, 0.3)
}

fn shared_with(tiles: u32, buckets: usize, variation: f64) -> Workload {
    let recipe = SyntheticWorkload {
        tiles,
        instances: 60,
        levels: 3,
        values: 4,
        task_seconds: 3.0,
        first_seconds: Some(5.0),
        variation,
        region_bytes: 48_000_000,
        cut: Bucketing::Trtma(NonZeroUsize::new(buckets).expect("some")),
        seed: 2,
    };
    Workload::new(PlanId::first_round(0), recipe.design())
}

fn site(max: u32, startup_seconds: f64) -> CloudPool {
    let pool = WorkerPool {
        name: "cloud".to_owned(),
        slots: 1.0,
        price_per_hour: 36.0,
        billing_seconds: 60.0,
        startup_seconds,
        min: 0,
        max,
        running: 0,
        starting: 0,
        starting_seconds: 0.0,
        ending_seconds: 0.0,
    };
    CloudPool {
        pool,
        cores: 1,
        speed: 1.0,
        startup_variation: 0.0,
        interruptions_per_hour: 0.0,
        notice_seconds: 0.0,
        wide_bytes_per_second: f64::INFINITY,
        store_bytes_per_second: f64::INFINITY,
        egress_price_per_gb: 0.0,
    }
}

fn burst(nodes: u32, sites: Vec<CloudPool>) -> Burst {
    let base = BaseCluster { nodes, cores: 1, speed: 1.0, machine: None };
    Burst {
        base,
        sites,
        bucket_overhead_seconds: 0.0,
        planned_buckets: None,
        step_seconds: 5.0,
        seed: 7,
        limit_seconds: 1e6,
    }
}

fn policy(rule: PolicyKind, deadline_seconds: Option<f64>, budget: Option<f64>) -> Policy {
    Policy { name: rule.name().to_owned(), rule, deadline_seconds, budget }
}

fn fixed(burst: &Burst, workers: u32, workload: Workload) -> Outcome {
    run(burst, &policy(PolicyKind::Fixed(vec![workers]), None, None), workload, true).expect("it ends")
}

fn near(a: f64, b: f64, by: f64) {
    assert!((a - b).abs() <= by, "{a} is not {b}");
}

/// A base of one core each on this number of processors.
fn on_processors(nodes: u32, processors: u32) -> Burst {
    let mut burst = burst(nodes, vec![site(0, 1.0)]);
    burst.base.machine = Some(SharedMachine::with_processors(processors));
    burst
}

#[test]
fn nodes_of_one_machine_share_its_processors() {
    // 12 instances of 10 s.
    for (nodes, processors, seconds) in
        [(2, 4, 60.0), (4, 4, 30.0), (4, 2, 60.0), (4, 1, 120.0), (3, 2, 60.0), (12, 8, 15.0)]
    {
        let outcome = fixed(&on_processors(nodes, processors), 0, apart(12));
        near(outcome.makespan_seconds, seconds, 0.2);
        // Some start with a processor of their own, and all get slower when the last one has started.
        assert!(outcome.bound_seconds.is_none_or(|bound| bound <= seconds + 0.1), "{outcome:?}");
    }
    // 5 instances: the last one has a processor of its own, after 2 + 2 that shared two.
    near(fixed(&on_processors(4, 2), 0, apart(5)).makespan_seconds, 30.0, 0.2);
}

/// 10,000 tasks of 1 ms and 0.3 ms beside each of them: a sixth of that delays the slot, and another processor does the rest for one
/// worker. Two workers on two processors do it themselves.
#[test]
fn work_beside_short_tasks_delays_them_and_more_without_a_processor_to_spare() {
    let cut = Bucketing::Trtma(NonZeroUsize::new(20).expect("some"));
    let short = SyntheticWorkload { levels: 10, task_seconds: 0.001, cut, ..without_reuse(1000) };
    let seconds = |nodes: u32, machine: SharedMachine| {
        let mut burst = on_processors(nodes, 1);
        burst.base.machine = Some(machine);
        let workload = Workload::new(PlanId::first_round(0), short.design());
        fixed(&burst, 0, workload).makespan_seconds
    };
    let machine = |processors: u32| SharedMachine { processors, task_seconds: 0.0003, pixel_seconds: 0.0 };
    near(seconds(1, machine(2)), 10.5, 0.3);
    near(seconds(2, machine(4)), 5.25, 0.3);
    near(seconds(2, machine(2)), 6.5, 0.3);
    // 1 ms beside each task, and none.
    near(seconds(2, SharedMachine { task_seconds: 0.001, ..machine(2) }), 10.0, 0.4);
    near(seconds(2, SharedMachine { task_seconds: 0.0, ..machine(2) }), 5.0, 0.2);
}

/// Workers with shared results on one processor take the time of one worker, and never less than on two.
#[test]
fn shared_results_on_shared_processors_take_the_time_of_fewer_workers() {
    let alone = fixed(&burst(1, vec![site(0, 1.0)]), 0, shared(4, 12)).makespan_seconds;
    let both = fixed(&on_processors(2, 1), 0, shared(4, 12)).makespan_seconds;
    assert!(both >= 0.98 * alone && both <= 1.15 * alone, "{both} {alone}");
    let apart = fixed(&burst(2, vec![site(0, 1.0)]), 0, shared(4, 12)).makespan_seconds;
    assert!(apart < 0.65 * both, "{apart} {both}");
}

#[test]
fn arriving_worker_takes_its_share_and_is_billed_by_period() {
    // 12 instances of 10 s: 120 s on the base worker alone. A second worker arrives after 40 s, when 4 instances are
    // done, and 8 remain for two workers.
    near(fixed(&burst(1, vec![site(4, 40.0)]), 0, apart(12)).makespan_seconds, 120.0, 0.2);
    let outcome = fixed(&burst(1, vec![site(4, 40.0)]), 1, apart(12));
    near(outcome.makespan_seconds, 80.0, 0.5);
    // 0.01 per second, and 2 started minutes.
    near(outcome.cost, 1.2, 1e-9);
    assert_eq!((outcome.requested, outcome.max_workers, outcome.interruptions), (1, 1, 0));
    near(outcome.utilization, 1.0, 0.01);
    let whole: f64 = outcome.happened.spans.iter().map(|span| (span.to_us - span.from_us) as f64 / 1e6).sum();
    near(whole, 120.0, 1e-6);
    assert!(outcome.happened.spans.iter().all(|span| span.is_whole));
}

#[test]
fn interrupted_worker_loses_its_tasks_and_is_replaced() {
    let taken = CloudPool { interruptions_per_hour: 60.0, ..site(4, 10.0) };
    let outcome = fixed(&burst(1, vec![taken.clone()]), 3, apart(90));
    assert!(
        outcome.interruptions > 3 && outcome.requested as u64 == 3 + outcome.interruptions,
        "{outcome:?}"
    );
    assert!(outcome.lost_seconds > 0.0, "{outcome:?}");
    let lost = outcome.happened.spans.iter().filter(|span| !span.is_whole);
    let lost: f64 = lost.map(|span| (span.to_us - span.from_us) as f64 / 1e6).sum();
    near(outcome.lost_seconds, lost, 1e-6);
    // With a notice, a worker starts no instance that it cannot finish.
    let told = CloudPool { notice_seconds: 15.0, ..taken };
    let outcome = fixed(&burst(1, vec![told]), 3, apart(90));
    assert!(outcome.interruptions > 0 && outcome.lost_seconds == 0.0, "{outcome:?}");
}

#[test]
fn remote_transfers_take_time_and_egress_is_paid() {
    // 20 s for each transfer.
    let far = CloudPool { wide_bytes_per_second: 2.4e6, ..site(4, 0.0) };
    let near_by = fixed(&burst(2, vec![site(4, 0.0)]), 4, shared(3, 18));
    let slow = fixed(&burst(2, vec![far.clone()]), 4, shared(3, 18));
    assert!(slow.makespan_seconds > near_by.makespan_seconds + 10.0, "{slow:?}");
    // Base nodes read the outputs of first stages that run in the pool.
    let paid = CloudPool { egress_price_per_gb: 10.0, ..site(4, 0.0) };
    let outcome = fixed(&burst(1, vec![paid]), 4, shared(8, 16));
    assert!(outcome.egress_cost > 0.0, "{outcome:?}");
    near((outcome.egress_cost / 10.0 * 1e9) % 48e6, 0.0, 1.0);
}

#[test]
fn budget_is_kept_and_queue_policy_requests_while_work_waits() {
    let cloud = burst(1, vec![site(20, 20.0)]);
    let outcome =
        run(&cloud, &policy(PolicyKind::Budget, None, Some(9.0)), shared(10, 60), false).expect("it ends");
    assert!(outcome.cost <= 9.0 && outcome.cost > 3.0, "{outcome:?}");
    let queue = policy(PolicyKind::QueueLength(2.0), None, None);
    let outcome = run(&cloud, &queue, shared(10, 60), false).expect("it ends");
    // 10 tiles wait at first.
    assert!(outcome.max_workers > 3 && outcome.workers.len() > 3, "{outcome:?}");
}

#[test]
fn reuse_aware_policy_requests_more_workers_at_first() {
    let cloud = burst(4, vec![site(100, 10.0)]);
    let simple = policy(PolicyKind::Deadline, Some(60.0), None);
    let aware = policy(PolicyKind::Trtma, Some(60.0), None);
    let [simple, aware] =
        [simple, aware].map(|policy| run(&cloud, &policy, shared(4, 12), false).expect("it ends"));
    // The workers requested at the submission arrive after 10 s.
    let first = |outcome: &Outcome| {
        let by_then = outcome.workers.iter().take_while(|(at, _)| *at < 12.0);
        by_then.map(|(_, workers)| workers[0]).max().unwrap_or(0)
    };
    assert!(first(&aware) > first(&simple), "{} {}", first(&aware), first(&simple));
    // The simple policy does not know the lost reuse, so it keeps requesting more workers.
    assert!(aware.in_time == Some(true) && aware.cost < simple.cost, "{} {}", aware.cost, simple.cost);
}

/// The manager forecasts from its replanner's tables and a snapshot, the simulator from the unstarted instances alone.
#[test]
fn simulator_and_manager_decide_alike_in_the_same_state() {
    let study = PlanId::first_round(0);
    let schedule = Scenario {
        seed: 7,
        nodes: vec![NodeSpec { slots: 1, speed: 1.0 }; 4],
        studies: vec![(0, SyntheticWorkload::UNUSED)],
        incidents: Vec::new(),
        network: NetworkModel::default(),
        tick_ms: 500,
        replan: true,
        limit_seconds: 1e6,
    };
    // Without variation, the instances take the times that they are planned with.
    let cluster = Cluster::with_workloads(schedule, vec![shared_with(4, 12, 0.0)], false, false);
    let mut cluster = cluster.with_planned_buckets(12);
    cluster.run_until(10_000).expect("a study");
    let slots = PartitionForecast::slots(4, 60);
    let (left, longest) = (cluster.remaining_work(study), cluster.longest_remaining(study));
    let simulated = cluster.cuts(study, &slots);
    let snapshot = cluster.snapshot(study).expect("a study");
    let forecaster = cluster.forecaster(study).expect("a planned study");
    let live = forecaster.forecast(&snapshot, &slots, left).expect("unstarted instances").cuts(left, longest);
    let work: Vec<f64> = simulated.iter().map(|cut| cut.work_seconds).collect();
    assert!(work[4] > 1.04 * work[0], "{work:?}");
    for (simulated, live) in simulated.iter().zip(&live) {
        assert!((simulated.work_seconds - live.work_seconds).abs() < 1e-6, "{simulated:?} {live:?}");
    }
    let pools = [site(60, 10.0).pool];
    for deadline_seconds in [30.0, 60.0, 90.0, 120.0, 200.0] {
        let decide = |cuts: &[WorkByPartition]| {
            let need = WorkDemand { cuts: cuts.to_vec(), ..WorkDemand::default() }.by(deadline_seconds);
            let answer = decide(&need, &pools, None, 0.0);
            (answer.desired, answer.reason)
        };
        assert_eq!(decide(&simulated), decide(&live), "{deadline_seconds}");
    }
}

#[test]
fn the_same_burst_is_the_same_again() {
    let taken = CloudPool { interruptions_per_hour: 30.0, startup_variation: 0.5, ..site(8, 15.0) };
    let cloud = burst(2, vec![taken]);
    let policy = policy(PolicyKind::Trtma, Some(120.0), Some(50.0));
    let again = || run(&cloud, &policy, shared(6, 24), true).expect("it ends");
    assert_eq!(again(), again());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn predicted_deadlines_are_met_and_costs_equal_a_recount(
        nodes in 1_u32..6, startup in 0.0..120.0_f64, tiles in 2_u32..12, part in 0.25..0.9_f64, is_aware in any::<bool>(),
    ) {
        let cloud = burst(nodes, vec![site(60, startup)]);
        let workload = shared(tiles, 3 * nodes as usize + tiles as usize);
        let alone = fixed(&cloud, 0, workload.clone());
        let deadline = part * alone.makespan_seconds;
        let rule = if is_aware { PolicyKind::Trtma } else { PolicyKind::Deadline };
        let outcome = run(&cloud, &policy(rule, Some(deadline), None), workload, true).expect("it ends");
        if outcome.fastest_seconds.is_none() && outcome.predicted_seconds.is_some_and(|seconds| seconds <= 0.9 * deadline) {
            // The prediction is at least 10 % below the deadline. The last bucket may exceed it by up to 15 s.
            prop_assert!(outcome.in_time == Some(true) || outcome.makespan_seconds < deadline + 15.0, "{outcome:?}");
        }
        // Independent sum: 0.01 per second, billed by the minute.
        let paid: f64 = outcome
            .happened
            .stays
            .iter()
            .filter(|stay| stay.site.is_some())
            .map(|stay| ((stay.seconds[2] - stay.seconds[0]) / 60.0 - 1e-9).ceil().max(0.0) * 0.6)
            .sum();
        prop_assert!((outcome.cost - paid).abs() < 1e-6, "{} {paid}", outcome.cost);
        prop_assert!(outcome.makespan_seconds <= alone.makespan_seconds * 1.02 + 10.0);
        prop_assert!(outcome.happened.stays.iter().all(|stay| stay.seconds[0] <= stay.seconds[1] && stay.seconds[1] <= stay.seconds[2]));
    }
}
