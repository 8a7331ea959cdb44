//! Contiguous ranges: each worker continues where it stopped, and tiles stay on the worker that began them.

use crate::elastic::{NOTHING, ask, done, effects, tick};
use crate::plans::{chain, ids, tile_key};
use crate::solo::STUDY;
use pleach_dispatch::manager::{Manager, WorkerInfo};
use pleach_dispatch::plan::{BucketPlan, ExecutionPlan, ReuseScope};
use pleach_dispatch::{InstanceId, LeaseId, PlanId, WorkerId};
use std::collections::{BTreeMap, BTreeSet};

/// Returns a plan of tiles, each of this number of buckets of 2 instances, which share tasks.
fn tiles(buckets: &[u32]) -> ExecutionPlan {
    let all: u32 = buckets.iter().sum();
    let pairs: Vec<Vec<u32>> = (0..all).map(|bucket| vec![2 * bucket, 2 * bucket + 1]).collect();
    let pairs: Vec<&[u32]> = pairs.iter().map(Vec::as_slice).collect();
    let mut plan = chain(&vec![(0, None); 2 * all as usize], &pairs);
    let tile_of = (0u32..).zip(buckets).flat_map(|(tile, buckets)| vec![tile; 2 * *buckets as usize]);
    plan.instances.edit(|all| {
        all.iter_mut().zip(tile_of).for_each(|(instance, tile)| instance.inputs = vec![tile_key(tile)]);
    });
    ExecutionPlan { sharing: ReuseScope::Dataflow, ..plan }
}

/// A worker with a slot for each of its buckets, so that every request is of an idle worker.
const WIDE: WorkerInfo = WorkerInfo { slots: 100, ..WorkerInfo::ANY };

fn manager(plan: ExecutionPlan, workers: usize) -> (Manager, Vec<WorkerId>) {
    let mut manager = Manager::new(0);
    manager.handle_submit(STUDY, plan, &BTreeSet::new()).expect("a plan that keeps the rules");
    (0..workers).for_each(|_| _ = manager.handle_join(WIDE));
    (manager, (0..workers as u32).map(WorkerId).collect())
}

/// Grants a worker its next bucket. Returns the first instance, divided by 2: the number of the planned bucket.
fn next(manager: &mut Manager, worker: WorkerId) -> u32 {
    let granted = ask(manager, worker);
    let granted = granted.iter().find(|line| line.contains("<-")).expect("a grant");
    let first = granted.split(' ').nth(2).expect("a grant such as `w0 <- 2 3 under 0`");
    first.parse::<u32>().expect("an instance") / 2
}

/// Submits a plan to workers that wait already. Returns the first bucket of each.
fn begin(plan: ExecutionPlan, workers: u32) -> (Manager, Vec<WorkerId>, Vec<u32>) {
    let mut manager = Manager::new(0);
    let workers: Vec<WorkerId> = (0..workers).map(|_| manager.handle_join(WIDE)).collect();
    workers.iter().for_each(|worker| manager.handle_request(*worker, 1, None));
    manager.handle_submit(STUDY, plan, &BTreeSet::new()).expect("a plan that keeps the rules");
    let granted = effects(&mut manager);
    let first =
        |line: &String| line.split(' ').nth(2).and_then(|id| id.parse::<u32>().ok()).expect("an id") / 2;
    (manager, workers, granted.iter().map(first).collect())
}

#[test]
fn workers_begin_in_evenly_spaced_places_and_continue_there() {
    let (mut manager, workers, first) = begin(tiles(&[24]), 8);
    assert_eq!(
        BTreeSet::from_iter(first.iter().copied()),
        BTreeSet::from_iter((0..8).map(|worker| 3 * worker))
    );
    // Two rounds, in any order of the workers: each gets the two buckets after its first.
    for round in 1..3 {
        for worker in [5, 0, 7, 2, 1, 6, 3, 4] {
            assert_eq!(next(&mut manager, workers[worker]), first[worker] + round);
        }
    }
    assert_eq!(ask(&mut manager, workers[0]), NOTHING);
}

#[test]
fn a_plan_of_the_tree_scope_is_granted_in_order() {
    let tree = ExecutionPlan { sharing: ReuseScope::Tree, ..tiles(&[24]) };
    assert_eq!(begin(tree, 8).2, [0, 1, 2, 3, 4, 5, 6, 7]);
}

#[test]
fn idle_worker_takes_half_of_the_longest_remaining_run() {
    let (mut manager, workers) = manager(tiles(&[8, 4]), 3);
    assert_eq!([0, 1].map(|worker| next(&mut manager, workers[worker])), [0, 8]);
    // Of 7 and 3 remaining buckets, the later 4 of the 7.
    assert_eq!(next(&mut manager, workers[2]), 4);
    assert_eq!([0, 1, 2].map(|worker| next(&mut manager, workers[worker])), [1, 9, 5]);
    // The first worker continues up to the place where the thief began, and becomes a thief itself.
    assert_eq!([0, 0, 0].map(|worker| next(&mut manager, workers[worker])), [2, 3, 7]);
    assert_eq!([1, 2, 0].map(|worker| next(&mut manager, workers[worker])), [10, 6, 11]);
}

#[test]
fn tiles_stay_on_the_worker_that_began_them() {
    let (mut manager, workers) = manager(tiles(&[3, 3, 3, 3]), 2);
    let mut tiles: BTreeMap<usize, Vec<u32>> = BTreeMap::new();
    for turn in 0..12 {
        // The second worker asks twice as often.
        let worker = usize::from(turn % 3 > 0);
        tiles.entry(worker).or_default().push(next(&mut manager, workers[worker]) / 3);
    }
    assert_eq!(tiles[&0], [0, 0, 0, 3]);
    assert_eq!(tiles[&1], [1, 1, 1, 2, 2, 2, 3, 3]);
}

/// Returns the steal requests of the first two ticks with an overhead of a bucket, for a worker beside two leases: 4 instances of
/// 1 s, and 2 of 3 s whose readers take another second.
fn asked(ranks: &[f32], bucket_overhead_seconds: f64) -> Vec<String> {
    asked_with(ranks, bucket_overhead_seconds, None)
}

/// As [`asked`], with an overhead measured since the plan.
fn asked_with(ranks: &[f32], bucket_overhead_seconds: f64, measured: Option<f64>) -> Vec<String> {
    let instances = [vec![(0, None); 6], vec![(1, Some(4)), (1, Some(5))]].concat();
    let plan = chain(&instances, &[&[0, 1, 2, 3], &[4, 5], &[6], &[7]]);
    let (mut manager, workers) =
        manager(ExecutionPlan { ranks: ranks.to_vec(), bucket_overhead_seconds, ..plan }, 3);
    measured.into_iter().for_each(|seconds| manager.handle_bucket_overhead(STUDY, seconds));
    for worker in workers {
        ask(&mut manager, worker);
    }
    [tick(&mut manager, 1), tick(&mut manager, 2)].concat()
}

const RANKS: [f32; 8] = [1.0, 1.0, 1.0, 1.0, 4.0, 4.0, 1.0, 1.0];

#[test]
fn steal_takes_from_the_longest_path_to_the_end() {
    assert_eq!(asked(&RANKS, 0.0), ["share w1 1", "share w0 0"]);
    // Without predictions, the lease with the most instances.
    assert_eq!(asked(&[], 0.0), ["share w0 0", "share w1 1"]);
}

#[test]
fn steal_moves_more_work_than_the_overhead_of_its_bucket() {
    // Half of the leases are 2 s and 3 s.
    assert_eq!(asked(&RANKS, 1.9), ["share w1 1", "share w0 0"]);
    assert_eq!(asked(&RANKS, 2.5), ["share w1 1"]);
    assert_eq!(asked(&RANKS, 3.0), [""; 0]);
    // Unknown times may be longer.
    assert_eq!(asked(&[], 3.0), ["share w0 0", "share w1 1"]);
}

/// The overhead of the plan may have been measured in another hour.
#[test]
fn steal_moves_more_work_than_the_overhead_measured_since_the_plan() {
    assert_eq!(asked_with(&RANKS, 0.0, Some(2.5)), ["share w1 1"]);
    assert_eq!(asked_with(&RANKS, 0.0, Some(3.0)), [""; 0]);
    assert_eq!(asked_with(&RANKS, 3.0, Some(0.0)), ["share w1 1", "share w0 0"]);
}

#[test]
fn longest_path_comes_first_where_workers_outnumber_buckets() {
    let begin = |ranks: Vec<f32>, workers| begin(ExecutionPlan { ranks, ..tiles(&[1, 1]) }, workers).2;
    assert_eq!(begin(vec![1.0, 1.0, 9.0, 9.0], 3), [1, 0]);
    assert_eq!(begin(vec![1.0, 1.0, 1.1, 1.1], 3), [0, 1]);
    // One worker can take both, so the plan's order counts.
    assert_eq!(begin(vec![1.0, 1.0, 9.0, 9.0], 1), [0]);
}

#[test]
fn new_tile_precedes_the_tiles_of_other_workers() {
    // Three tiles: instances 0 to 2 are normalized, and each is read by two buckets.
    let readers = (0..6).map(|reader| (1, Some(reader / 2)));
    let instances: Vec<(usize, Option<u32>)> = (0..3).map(|_| (0, None)).chain(readers).collect();
    let buckets: Vec<Vec<u32>> = (0..9).map(|instance| vec![instance]).collect();
    let buckets: Vec<&[u32]> = buckets.iter().map(Vec::as_slice).collect();
    let mut plan = ExecutionPlan { sharing: ReuseScope::Value, ..chain(&instances, &buckets) };
    plan.instances.edit(|all| (0..3).for_each(|tile| all[tile as usize].inputs = vec![tile_key(tile)]));
    let (mut manager, workers) = manager(plan, 2);
    assert_eq!(ask(&mut manager, workers[0]), ["w0 <- 0 under 0"]);
    assert_eq!(ask(&mut manager, workers[1]), ["w1 <- 1 under 1"]);
    assert_eq!(done(&mut manager, workers[0], 0, 0), ["finished 0"]);
    assert_eq!(done(&mut manager, workers[1], 1, 1), ["finished 1"]);
    assert_eq!(ask(&mut manager, workers[0]), ["w0 <- 3 under 2"]);
    assert_eq!(ask(&mut manager, workers[0]), ["w0 <- 4 under 3"]);
    // Buckets 5 and 6 are of the second worker's tile.
    assert_eq!(ask(&mut manager, workers[0]), ["w0 <- 2 under 4"]);
    assert_eq!(ask(&mut manager, workers[0]), ["w0 <- 5 under 5"]);
}

#[test]
fn busy_worker_that_asks_ahead_leaves_other_workers_their_tiles() {
    let (mut manager, _) = manager(tiles(&[2, 3]), 0);
    let workers = [0, 1].map(|_| manager.handle_join(WorkerInfo::ANY));
    assert_eq!(workers.map(|worker| next(&mut manager, worker)), [2, 0]);
    assert_eq!(next(&mut manager, workers[1]), 1);
    // The second worker has a bucket for its slot and no further one of its tile. It waits until it is idle.
    assert_eq!(ask(&mut manager, workers[1]), NOTHING);
    for (lease, instance) in [(1, 0), (1, 1), (2, 2)] {
        assert!(done(&mut manager, workers[1], lease, instance).iter().all(|line| !line.contains("<-")));
    }
    let idle = done(&mut manager, workers[1], 2, 3);
    assert!(idle.contains(&"w1 <- 8 9 under 3".to_owned()), "{idle:?}");
}

/// Finishes all instances of a worker's only lease.
fn finish(manager: &mut Manager, study: PlanId, worker: WorkerId) {
    let leases: Vec<(LeaseId, Vec<InstanceId>)> = manager
        .study(study)
        .into_iter()
        .flat_map(|study| {
            study.all_leases().filter(|(of, _)| *of == worker).map(|(_, lease)| lease).collect::<Vec<_>>()
        })
        .filter_map(|lease| {
            let (_, open) = manager.study(study)?.leased(lease)?;
            Some((lease, open.iter().copied().collect()))
        })
        .collect();
    for (lease, open) in leases {
        open.into_iter().for_each(|id| assert!(manager.handle_done(worker, study, lease, id)));
    }
}

#[test]
fn next_round_has_the_same_tiles_on_the_same_workers() {
    let (mut manager, workers) = manager(tiles(&[2, 2, 2]), 3);
    // The tiles in another order than the workers.
    for worker in [2, 0, 1, 2, 0, 1] {
        next(&mut manager, workers[worker]);
        finish(&mut manager, STUDY, workers[worker]);
    }
    assert_eq!(effects(&mut manager).last().map(String::as_str), Some("complete"));
    let round = PlanId { round: 1, ..STUDY };
    manager.handle_submit(round, tiles(&[2, 2, 2]), &BTreeSet::new()).expect("a plan");
    assert_eq!(ask(&mut manager, workers[0]), ["w0 <- 4 5 of the other under 6"]);
    assert_eq!(ask(&mut manager, workers[1]), ["w1 <- 8 9 of the other under 7"]);
    // A worker that is lost gives up its tiles, and one without tiles takes them.
    manager.handle_leave(workers[2], true);
    let new = manager.handle_join(WIDE);
    assert_eq!(ask(&mut manager, new), ["w3 <- 0 1 of the other under 8"]);
}

#[test]
fn returned_instances_are_granted_at_their_place() {
    let (mut manager, workers) = manager(tiles(&[3]), 2);
    assert_eq!(ask(&mut manager, workers[0]), ["w0 <- 0 1 under 0"]);
    assert!(manager.handle_returned(workers[0], STUDY, LeaseId(0), &ids([1])));
    // Position 1 precedes the other buckets, and joins their run.
    assert_eq!(ask(&mut manager, workers[1]), ["w1 <- 1 under 1"]);
    assert_eq!(ask(&mut manager, workers[1]), ["w1 <- 2 3 under 2"]);
    assert_eq!(done(&mut manager, workers[0], 0, 0), ["finished 0"]);
    assert_eq!(tick(&mut manager, 1), NOTHING);
}

#[test]
fn scattered_buckets_are_granted_each_once() {
    // As after a replan that moved branches: the second bucket has instances before and after the first.
    let mut plan = tiles(&[3]);
    plan.buckets =
        [[2, 3], [0, 5], [4, 1]].map(|bucket| BucketPlan { instances: ids(bucket), pixels: 64 }).to_vec();
    let (mut manager, workers) = manager(plan, 1);
    let granted: BTreeSet<Vec<String>> = (0..3).map(|_| ask(&mut manager, workers[0])).collect();
    assert_eq!(granted.len(), 3);
    assert_eq!(ask(&mut manager, workers[0]), NOTHING);
}
