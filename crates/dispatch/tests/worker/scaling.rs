//! Desired number of workers: worked examples, properties, and a slow reference that tries all numbers.

use pleach_dispatch::scaling::{
    MakespanForecast, PreviousDecision, Reason, ScalingDecision, WorkByPartition, WorkDemand, WorkerPool,
    decide,
};
use proptest::collection::vec;
use proptest::prelude::*;

/// Share of the remaining time that the safety margin of the module leaves.
const IN_TIME: f64 = 0.9;

fn pool(max: u32, price_per_hour: f64, startup_seconds: f64) -> WorkerPool {
    WorkerPool {
        name: "pool".to_owned(),
        slots: 1.0,
        price_per_hour,
        billing_seconds: 0.0,
        startup_seconds,
        min: 0,
        max,
        running: 0,
        starting: 0,
        starting_seconds: 0.0,
        ending_seconds: 0.0,
    }
}

/// Returns a free pool with a fixed number of present workers.
fn base(workers: u32) -> WorkerPool {
    WorkerPool { min: workers, running: workers, ..pool(workers, 0.0, 0.0) }
}

fn first(need: &WorkDemand, pools: &[WorkerPool]) -> ScalingDecision {
    decide(need, pools, None, 0.0)
}

fn close(a: f64, b: f64) {
    assert!((a - b).abs() <= 1e-6 * b.abs().max(1.0), "{a} is not {b}");
}

#[test]
fn half_the_time_takes_extra_workers_and_startup_time() {
    // 8 base workers take 8,000 s for 64,000 s of work. With the margin, 3,600 s of 4,000 s remain. By then the
    // base has done 28,800 s, and each worker that arrives after 100 s does 3,500 s. 10.06 workers are needed.
    let pools = [base(8), pool(100, 0.36, 100.0)];
    let answer = first(&WorkDemand::of(64_000.0, 0.0).by(4_000.0), &pools);
    assert_eq!((answer.desired.as_slice(), answer.reason), ([8, 11].as_slice(), Reason::Deadline));
    let seconds = (64_000.0 + 11.0 * 100.0) / 19.0;
    close(answer.forecast.seconds, seconds);
    close(answer.forecast.cost, 11.0 * seconds * 0.0001);
    assert_eq!((answer.fastest, answer.without_budget), (None, None));
}

#[test]
fn no_worker_is_desired_without_deadline_or_work() {
    let pools = [base(8), pool(100, 1.0, 100.0)];
    let answer = first(&WorkDemand::of(1e9, 0.0), &pools);
    assert_eq!((answer.desired.as_slice(), answer.reason), ([8, 0].as_slice(), Reason::Minimum));
    let answer = first(&WorkDemand::default().by(10.0), &pools);
    assert_eq!((answer.desired.as_slice(), answer.reason), ([8, 0].as_slice(), Reason::Idle));
    assert_eq!(answer.forecast, MakespanForecast { seconds: 0.0, cost: 0.0 });
}

#[test]
fn infeasible_deadline_returns_the_fastest_option() {
    let pools = [base(8), pool(4, 3.6, 100.0)];
    for deadline in [2_000.0, 50.0, 0.0, -5.0] {
        let answer = first(&WorkDemand::of(64_000.0, 0.0).by(deadline), &pools);
        assert_eq!((answer.desired.as_slice(), answer.reason), ([8, 4].as_slice(), Reason::Unreachable));
        let fastest = answer.fastest.expect("it cannot be reached");
        close(fastest.forecast.seconds, (64_000.0 + 400.0) / 12.0);
        close(fastest.forecast.cost, 4.0 * 0.001 * 64_400.0 / 12.0);
    }
    // Without workers, the forecast is infinite.
    let answer = first(&WorkDemand::of(1.0, 0.0).by(10.0), &[base(0)]);
    assert_eq!(answer.fastest.expect("nobody works").forecast.seconds, f64::INFINITY);
}

#[test]
fn budget_limits_workers_and_reports_unlimited_cost() {
    // The only pool: a worker does 1 s of work per second, at a price of 0.001.
    let pools = [pool(100, 3.6, 0.0)];
    let need = WorkDemand::of(1_000.0, 0.0);
    let answer = first(&need.clone().within(2.0), &pools);
    // Every number of workers costs the same, so the maximum is chosen.
    assert_eq!((answer.desired[0], answer.reason), (100, Reason::Budget));
    let billed = [WorkerPool { billing_seconds: 60.0, ..pools[0].clone() }];
    let answer = first(&need.clone().by(20.0).within(1.2), &billed);
    // 56 workers would meet the deadline, each billed for 1 minute. The budget allows 20.
    assert_eq!((answer.desired[0], answer.reason), (20, Reason::Budget));
    let beyond = answer.without_budget.expect("more is needed");
    close(beyond.cost, 56.0 * 0.06);
    assert!(beyond.seconds <= 20.0 && answer.forecast.cost <= 1.2 + 1e-9);
    // The budget does not reduce a pool below its minimum.
    let kept = [WorkerPool { min: 3, ..billed[0].clone() }];
    assert_eq!(first(&need.within(0.0), &kept).desired, [3]);
}

#[test]
fn the_cheaper_work_by_the_deadline_comes_first() {
    // The second pool is cheaper per hour, but starts so slowly that its work before the deadline is more
    // expensive.
    let pools = [pool(50, 2.0, 60.0), pool(50, 1.0, 700.0)];
    assert_eq!(first(&WorkDemand::of(5_000.0, 0.0).by(1_000.0), &pools).desired, [6, 0]);
    assert_eq!(first(&WorkDemand::of(50_000.0, 0.0).by(10_000.0), &pools).desired, [0, 7]);
    // Present workers work at once.
    let there = [pools[0].clone(), WorkerPool { running: 50, ..pools[1].clone() }];
    assert_eq!(first(&WorkDemand::of(5_000.0, 0.0).by(1_000.0), &there).desired, [0, 6]);
}

#[test]
fn more_slots_with_less_reuse_stop_being_faster() {
    // More slots lose reuse: from 20 to 40 slots, nothing is gained.
    let cut = |slots, work_seconds| WorkByPartition { slots, work_seconds, longest_seconds: 0.0 };
    let cuts = vec![cut(10, 1_000.0), cut(20, 1_500.0), cut(40, 4_000.0)];
    let need = WorkDemand { cuts, ..WorkDemand::default() };
    let answer = first(&need.clone().by(1.0), &[pool(100, 1.0, 0.0)]);
    // 20 slots take 75 s, 40 take 100 s, and 100 take 40 s: beyond the last partition, no more reuse is lost.
    assert_eq!(answer.fastest.expect("too little time").desired, [100]);
    let answer = first(&need.clone().by(1.0), &[pool(40, 1.0, 0.0)]);
    assert_eq!(answer.desired, [20]);
    let answer = first(&need.by(90.0 / IN_TIME), &[pool(40, 1.0, 0.0)]);
    // 13 slots do 1,150 s of work in 88.5 s. 12 slots take 91.7 s.
    assert_eq!(answer.desired, [13]);
}

#[test]
fn desired_workers_stay_unless_a_goal_forces_a_change() {
    let pools = [WorkerPool { running: 10, ..pool(100, 1.0, 60.0) }];
    let need = |work: f64| WorkDemand::of(work, 0.0).by(1_000.0);
    let before = first(&need(9_000.0), &pools);
    assert_eq!(before.desired, [10]);
    // The margin absorbs a small increase. A larger one takes effect at once.
    assert_eq!(decide(&need(9_400.0), &pools, Some(&before.previous), 1.0).desired, [10]);
    let grown = decide(&need(9_800.0), &pools, Some(&before.previous), 1.0);
    assert_eq!((grown.desired[0], grown.reason, grown.previous.since_seconds), (11, Reason::Deadline, 1.0));
    // A decrease takes effect after the stabilization window, and only if it is large enough.
    let early = decide(&need(4_500.0), &pools, Some(&before.previous), 100.0);
    assert_eq!((early.desired[0], early.reason), (10, Reason::Held));
    assert_eq!(decide(&need(4_500.0), &pools, Some(&before.previous), 121.0).desired, [5]);
    assert_eq!(decide(&need(8_100.0), &pools, Some(&before.previous), 1e6).desired, [10]);
    // Once no work remains, present workers stay for the stabilization window, and no new ones are requested.
    let six = [WorkerPool { running: 6, ..pools[0].clone() }];
    assert_eq!(decide(&need(0.0), &six, Some(&before.previous), 1.0).desired, [6]);
    assert_eq!(decide(&need(0.0), &six, Some(&before.previous), 121.0).desired, [0]);
    // Changed limits apply at once.
    let less = [WorkerPool { max: 7, ..pools[0].clone() }];
    assert_eq!(decide(&need(9_000.0), &less, Some(&before.previous), 1.0).desired, [7]);
    // A previous decision for another number of pools is ignored.
    let held = PreviousDecision { desired: vec![1, 2], since_seconds: 0.0 };
    assert_eq!(decide(&need(9_000.0), &pools, Some(&held), 1.0).desired, [10]);
}

fn any_pool() -> impl Strategy<Value = WorkerPool> {
    let counts = (0_u32..4, 0_u32..5, 0_u32..4, 0_u32..3);
    let rates = (1_u32..5, 0.0..5.0_f64, prop::sample::select(vec![0.0, 1.0, 60.0, 3600.0]), 0.0..900.0_f64);
    (counts, rates).prop_map(|((min, more, running, starting), (slots, price, billing, startup))| {
        WorkerPool {
            slots: f64::from(slots),
            billing_seconds: billing,
            min,
            running,
            starting,
            starting_seconds: startup / 2.0,
            ending_seconds: startup / 3.0,
            ..pool(min + more, price, startup)
        }
    })
}

fn slots(pools: &[WorkerPool], workers: &[u32]) -> f64 {
    pools.iter().zip(workers).map(|(pool, workers)| pool.slots * f64::from(*workers)).sum()
}

/// Returns all combinations of workers that the pools allow.
fn all_numbers(pools: &[WorkerPool]) -> Vec<Vec<u32>> {
    pools.iter().fold(vec![Vec::new()], |all, pool| {
        let with = |before: &Vec<u32>| {
            let before = before.clone();
            (pool.min..=pool.max).map(move |more| [before.clone(), vec![more]].concat()).collect::<Vec<_>>()
        };
        all.iter().flat_map(with).collect()
    })
}

proptest! {
    #[test]
    fn decision_respects_limits_and_is_deterministic(
        pools in vec(any_pool(), 1..4), work in 0.0..1e6_f64, deadline in -10.0..1e5_f64, budget in 0.0..100.0_f64, now in 0.0..1e6_f64,
    ) {
        let goals = [None, Some(deadline)];
        let budgets = [None, Some(budget)];
        for (goal, budget) in goals.into_iter().flat_map(|goal| budgets.map(|budget| (goal, budget))) {
            let need = WorkDemand::of(work, 5.0);
            let need = goal.map_or(need.clone(), |deadline| need.by(deadline));
            let need = WorkDemand { budget, ..need };
            let answer = decide(&need, &pools, None, now);
            for (pool, wanted) in pools.iter().zip(&answer.desired) {
                prop_assert!((pool.min..=pool.max).contains(wanted), "{answer:?}");
            }
            let least: Vec<u32> = pools.iter().map(|pool| pool.min).collect();
            if let Some(budget) = budget {
                prop_assert!(answer.forecast.cost <= budget + 1e-9 || answer.desired == least, "{answer:?}");
            }
            if answer.fastest.is_none() && answer.without_budget.is_none() && goal.is_some() {
                prop_assert!(answer.forecast.seconds <= deadline.max(0.0), "{answer:?}");
            }
            // The same demand leads to the same decision at any later time.
            for later in [0.0, 1.0, 1e9] {
                let again = decide(&need, &pools, Some(&answer.previous), now + later);
                prop_assert_eq!(&again.desired, &answer.desired);
                prop_assert_eq!(again.previous, answer.previous.clone());
            }
        }
    }

    #[test]
    fn more_work_never_wants_fewer(pools in vec(any_pool(), 1..4), work in 100.0..1e5_f64, more in 1.0..3.0_f64, deadline in 1.0..1e5_f64) {
        let of = |work| first(&WorkDemand::of(work, 50.0).by(deadline), &pools).desired;
        let (less, more) = (of(work), of(work * more));
        prop_assert!(less.iter().zip(&more).all(|(less, more)| less <= more), "{less:?} {more:?}");
    }

    #[test]
    fn less_time_never_wants_fewer(pools in vec(any_pool(), 1..4), work in 100.0..1e5_f64, deadline in -10.0..1e5_f64, less in 0.0..1.0_f64) {
        // Pools with equal start-up and billing times: otherwise, less time can make other pools the cheaper
        // ones.
        let alike = |pool: &WorkerPool| WorkerPool { running: 0, starting: 0, startup_seconds: 100.0, billing_seconds: 0.0, ending_seconds: 0.0, ..pool.clone() };
        let pools: Vec<WorkerPool> = pools.iter().map(alike).collect();
        let of = |deadline| first(&WorkDemand::of(work, 50.0).by(deadline), &pools).desired;
        let (long, short) = (of(deadline), of(deadline * less));
        prop_assert!(slots(&pools, &long) <= slots(&pools, &short), "{long:?} {short:?}");
    }

    #[test]
    fn decision_matches_an_exhaustive_search(
        pools in vec(any_pool(), 1..4), work in 100.0..1e5_f64, deadline in 1.0..1e5_f64,
    ) {
        let need = WorkDemand::of(work, 50.0).by(deadline);
        let answer = first(&need, &pools);
        let all = all_numbers(&pools);
        let in_time = |part: f64| {
            let meets = |numbers: &&Vec<u32>| MakespanForecast::of(&need, &pools, numbers).seconds <= deadline * part;
            all.iter().filter(meets).cloned().collect::<Vec<_>>()
        };
        prop_assert_eq!(answer.fastest.is_none(), !in_time(1.0).is_empty());
        let comfortable = in_time(IN_TIME);
        if !comfortable.is_empty() {
            prop_assert_eq!(answer.reason, Reason::Deadline);
            prop_assert!(comfortable.contains(&answer.desired));
            if let [_] = pools.as_slice() {
                prop_assert_eq!(Some(&answer.desired), comfortable.first());
            }
        }
    }

}

proptest! {
    // Each case is a whole study of hundreds of steps.
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn a_cluster_that_follows_is_in_time_and_does_not_flap(
        work in 1e4..1e6_f64, startup in 10.0..300.0_f64, errors in vec(0.97..1.03_f64, 50), slack in 1.3..4.0_f64,
    ) {
        // The deadline is the time of 8 base workers and 200 others, with some slack.
        let fastest = first(&WorkDemand::of(work, 0.0).by(0.0), &[base(8), pool(200, 1.0, startup)]);
        let deadline = fastest.forecast.seconds * slack + 100.0;
        let (mut left, mut now, mut held) = (work, 0.0, None);
        // Arrival time of each worker.
        let mut there: Vec<f64> = Vec::new();
        let (mut turns, mut last_change) = (0, 0_i64);
        let step = 5.0;
        let mut number = 0;
        while left > 0.0 {
            prop_assert!(now <= deadline, "late: {left} s are left");
            let running = there.iter().filter(|at| **at <= now).count() as u32;
            let starting = there.len() as u32 - running;
            let starting_seconds = there.iter().map(|at| (at - now).max(0.0)).fold(0.0, f64::max);
            let pools = [base(8), WorkerPool { running, starting, starting_seconds, ..pool(200, 1.0, startup) }];
            let need = WorkDemand::of(left * errors[number % errors.len()], 0.0).by(deadline - now);
            let answer = decide(&need, &pools, held.as_ref(), now);
            let change = i64::from(answer.desired[1]) - there.len() as i64;
            if change != 0 {
                turns += u32::from(change.signum() != last_change && last_change != 0);
                last_change = change.signum();
            }
            there.resize(answer.desired[1] as usize, now + startup);
            held = Some(answer.previous);
            left -= step * f64::from(8 + running);
            now += step;
            number += 1;
        }
        prop_assert!(turns <= 4, "{turns} turns");
    }
}
