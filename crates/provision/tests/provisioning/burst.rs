//! A day of random studies, with the real scaling decision.

use crate::cloud::Faults;
use crate::random::Random;
use crate::world::{STEP_SECONDS, World, pool};
use pleach_dispatch::scaling::{PreviousDecision, WorkDemand, WorkerPool, decide};

const HOUR: f64 = 3600.0;

#[derive(Clone, Copy, Debug)]
struct Submission {
    at_seconds: f64,
    work_seconds: f64,
    deadline_seconds: f64,
}

#[derive(Debug, Default)]
struct Day {
    submissions: usize,
    late: usize,
    /// Largest number of workers at once.
    most: usize,
    cost: f64,
    /// Cost if the workers at the peak ran all day.
    fixed_cost: f64,
}

/// Prices per hour. The second pool is more expensive and starts faster.
const PRICES: [f64; 2] = [0.1, 0.3];

fn worker_pool(world: &World, number: usize) -> WorkerPool {
    let (pool, counts) = (&world.pools[number], world.provisioner.counts(number));
    // Other pools replace one without capacity.
    let max = if counts.has_no_capacity { counts.joined } else { pool.max };
    WorkerPool {
        name: pool.name.clone(),
        slots: 4.0,
        price_per_hour: PRICES[number],
        billing_seconds: 60.0,
        startup_seconds: pool.startup_seconds,
        min: 0,
        max,
        running: counts.joined,
        starting: counts.starting,
        starting_seconds: (pool.startup_seconds - counts.starting_seconds).max(0.0),
        ending_seconds: pool.idle_seconds,
    }
}

fn submissions(random: &mut Random) -> Vec<Submission> {
    let mut all = Vec::new();
    let mut at = 0.0;
    loop {
        // One study an hour on average, as a Poisson process.
        at -= HOUR * (1.0 - random.unit()).ln();
        if at > 21.0 * HOUR {
            return all;
        }
        let work_seconds = random.between(600.0, 40_000.0);
        let deadline_seconds = at + random.between(900.0, 7200.0);
        all.push(Submission { at_seconds: at, work_seconds, deadline_seconds });
    }
}

fn day(seed: u64, faults: Faults) -> (World, Day) {
    let mut random = Random(seed);
    let coming = submissions(&mut random);
    let mut world = World::new(seed, vec![pool("spot", 12, 180.0), pool("cloud", 12, 90.0)], faults);
    // A second worker of a name that lists show late outlives its first one.
    world.is_strict = faults.twice == 0.0;
    let mut day = Day { submissions: coming.len(), ..Day::default() };
    let mut open: Vec<Submission> = Vec::new();
    let mut coming = coming.into_iter().peekable();
    let mut previous: Option<PreviousDecision> = None;
    while world.now < 24.0 * HOUR {
        while coming.peek().is_some_and(|study| study.at_seconds <= world.now) {
            open.extend(coming.next());
        }
        let pools = [worker_pool(&world, 0), worker_pool(&world, 1)];
        let work: f64 = open.iter().map(|study| study.work_seconds).sum();
        let first = open.iter().map(|study| study.deadline_seconds).fold(f64::INFINITY, f64::min);
        let demand = match open.is_empty() {
            true => WorkDemand::default(),
            false => WorkDemand::of(work, 60.0).by(first - world.now),
        };
        let decision = decide(&demand, &pools, previous.as_ref(), world.now);
        previous = Some(decision.previous);
        world.step(&decision.desired, !open.is_empty());
        let connected = world.cloud.connected(world.now);
        let slots = connected.iter().filter(|worker| !worker.is_draining).count() as f64 * 4.0;
        let done = slots * STEP_SECONDS / open.len().max(1) as f64;
        open.iter_mut().for_each(|study| study.work_seconds -= done);
        let now = world.now;
        let ends = |study: &Submission| study.work_seconds <= 0.0;
        day.late += open.iter().filter(|study| ends(study) && study.deadline_seconds < now).count();
        open.retain(|study| !ends(study));
        day.most = day.most.max(world.cloud.workers.len());
        for worker in &world.cloud.workers {
            day.cost += PRICES[worker.pool] / HOUR * STEP_SECONDS;
        }
    }
    assert!(open.is_empty() && coming.next().is_none(), "studies are left: {open:?}");
    day.fixed_cost = 24.0 * PRICES[0] * day.most as f64;
    world.wind_down();
    (world, day)
}

#[test]
fn day_of_random_submissions_leaves_nothing_running() {
    let (world, day) = day(11, Faults::default());
    assert!(day.submissions > 10 && day.most > 5, "{day:?}");
    assert!(day.late * 5 <= day.submissions, "{day:?}");
    assert!(day.cost < 0.6 * day.fixed_cost, "{day:?}");
    assert!(world.cloud.started.len() > day.most, "{day:?}");
}

#[test]
fn day_with_faults_kills_and_interruptions_leaves_nothing_running() {
    for seed in 12..15 {
        let faults = Faults {
            refuse: 0.2,
            hang: 0.05,
            garbage: 0.05,
            nothing: 0.05,
            twice: 0.05,
            fail: 0.1,
            stuck: 0.05,
            lose: 1.0 / HOUR,
            lag_seconds: 15.0,
        };
        let (_, day) = day(seed, faults);
        assert!(day.submissions > 10, "{day:?}");
    }
}

/// Without capacity in the cheap pool, the decision uses the other one.
#[test]
fn other_pool_replaces_one_without_capacity() {
    let mut world = World::new(21, vec![pool("spot", 12, 60.0), pool("cloud", 12, 60.0)], Faults::default());
    world.cloud.refusing = Some(0);
    let (mut work, mut previous) = (40_000.0, None);
    let deadline = 3.0 * HOUR;
    while work > 0.0 {
        assert!(world.now < deadline, "{work} s of work are left");
        let pools = [worker_pool(&world, 0), worker_pool(&world, 1)];
        let demand = WorkDemand::of(work, 60.0).by(deadline - world.now);
        let decision = decide(&demand, &pools, previous.as_ref(), world.now);
        previous = Some(decision.previous);
        world.step(&decision.desired, true);
        let connected = world.cloud.connected(world.now);
        work -= connected.iter().filter(|worker| !worker.is_draining).count() as f64 * 4.0 * STEP_SECONDS;
    }
    assert!(world.most[0] == 0 && world.most[1] > 0, "{:?}", world.most);
    world.wind_down();
}
