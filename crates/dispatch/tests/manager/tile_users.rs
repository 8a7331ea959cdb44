//! Tiles that one worker alone has, effect by effect.

use crate::elastic::done;
use crate::plans::{chain, ids, output_key, tile_key};
use crate::solo::{STUDY, manager_of};
use pleach_dispatch::manager::{Effect, Manager, WorkerInfo};
use pleach_dispatch::plan::{ExecutionPlan, ReuseScope};
use pleach_dispatch::study::Study;
use pleach_dispatch::{LeaseId, PlanId, WorkerId};
use pleach_regions::{RegionIdentity, RegionKey};
use std::collections::BTreeSet;

/// A manager of a plan of one tile.
fn manager(plan: ExecutionPlan, sharing: ReuseScope) -> Manager {
    manager_of(ExecutionPlan { sharing, ..plan }, &BTreeSet::new()).expect("a plan that keeps the rules")
}

fn join(manager: &mut Manager) -> WorkerId {
    manager.handle_join(WorkerInfo { slots: 4, ..WorkerInfo::ANY })
}

/// Returns the grants, `*` behind those of an own tile, and the workers that learn that their tile is shared.
fn effects(manager: &mut Manager) -> Vec<String> {
    let mut lines = Vec::new();
    while let Some(effect) = manager.poll_effect() {
        match effect {
            Effect::Assign { worker, work, .. } => {
                assert!(work.own_tile.is_none_or(|tile| tile == tile_key(0)));
                let own = if work.own_tile.is_some() { "*" } else { "" };
                lines.push(format!("w{} <- {}{own}", worker.0, work.instances[0].id.0));
            }
            Effect::TileShared { worker, tile } => {
                assert_eq!(tile, tile_key(0));
                lines.push(format!("w{} shares", worker.0));
            }
            _ => {}
        }
    }
    lines
}

fn ask(manager: &mut Manager, worker: WorkerId) -> Vec<String> {
    manager.handle_request(worker, 1, None);
    effects(manager)
}

fn alike() -> ExecutionPlan {
    chain(&[(0, None); 6], &[&[0], &[1], &[2], &[3], &[4], &[5]])
}

#[test]
fn tile_is_own_until_another_worker_gets_a_bucket_of_it() {
    for sharing in [ReuseScope::Dataflow, ReuseScope::Value] {
        let mut manager = manager(alike(), sharing);
        let (first, second) = (join(&mut manager), join(&mut manager));
        assert_eq!(ask(&mut manager, first), ["w0 <- 0*"]);
        assert_eq!(ask(&mut manager, first), ["w0 <- 1*"]);
        // The first worker learns of it once.
        let stolen = ask(&mut manager, second);
        assert_eq!(stolen[0], "w0 shares");
        assert!(!stolen[1].ends_with('*'), "{stolen:?}");
        for worker in [first, second] {
            let granted = ask(&mut manager, worker);
            assert!(granted.len() == 1 && !granted[0].ends_with('*'), "{granted:?}");
        }
    }
}

#[test]
fn tile_of_a_lost_worker_is_the_next_ones_own() {
    let mut manager = manager(alike(), ReuseScope::Value);
    let (first, second) = (join(&mut manager), join(&mut manager));
    assert_eq!(ask(&mut manager, first), ["w0 <- 0*"]);
    manager.handle_leave(first, true);
    assert_eq!(ask(&mut manager, second), ["w1 <- 0*"]);
}

#[test]
fn buckets_that_share_nothing_name_no_tile() {
    let mut manager = manager(alike(), ReuseScope::Tree);
    let first = join(&mut manager);
    assert_eq!(ask(&mut manager, first), ["w0 <- 0"]);
}

#[test]
fn tiles_are_those_of_all_studies() {
    let mut manager = manager(alike(), ReuseScope::Value);
    let (first, second) = (join(&mut manager), join(&mut manager));
    assert_eq!(ask(&mut manager, first), ["w0 <- 0*"]);
    let other = ExecutionPlan { sharing: ReuseScope::Value, ..alike() };
    manager.handle_submit(PlanId::first_round(1), other, &BTreeSet::new()).expect("valid");
    let granted = ask(&mut manager, second);
    assert_eq!(granted, ["w0 shares", "w1 <- 0"]);
}

/// Each study has a copy of its input files.
#[test]
fn tiles_are_compared_by_content() {
    for contents in [[1, 1], [1, 2]] {
        let mut manager = Manager::new(0);
        let (first, second) = (join(&mut manager), join(&mut manager));
        let tile = |content: u8| RegionKey([content; 16]);
        for (id, content) in (0..).zip(contents) {
            let plan = ExecutionPlan { sharing: ReuseScope::Value, ..alike() };
            let study = Study::resume(plan, &BTreeSet::new()).expect("a plan that keeps the rules");
            let study = study.with_tile_contents(|_| Some(RegionIdentity([content; 32])));
            manager.handle_start(PlanId::first_round(id), study);
        }
        let mut own = Vec::new();
        for worker in [first, second] {
            manager.handle_request(worker, 1, None);
            while let Some(effect) = manager.poll_effect() {
                match effect {
                    Effect::Assign { work, .. } => own.push(work.own_tile),
                    Effect::TileShared { worker, tile: shared } => {
                        assert_eq!((worker, shared), (first, tile(contents[0])));
                    }
                    _ => {}
                }
            }
        }
        let is_own = contents[0] != contents[1];
        assert_eq!(own, [Some(tile(contents[0])), is_own.then_some(tile(contents[1]))]);
    }
}

#[test]
fn reattached_workers_use_the_tiles_of_their_leases_and_regions() {
    let instances = [(0, None), (0, None), (1, Some(0)), (1, Some(1))];
    for by_lease in [true, false] {
        let mut manager = manager(chain(&instances, &[&[0], &[1], &[2], &[3]]), ReuseScope::Value);
        let (first, second) = (join(&mut manager), join(&mut manager));
        manager.pause_grants();
        if by_lease {
            manager.handle_adopt(first, STUDY, LeaseId(3), &ids([1]));
        } else {
            assert_eq!(manager.handle_holds(first, STUDY, &[output_key(1, 0)]), []);
        }
        manager.resume_grants();
        assert_eq!(ask(&mut manager, second)[0], "w0 shares", "by lease: {by_lease}");
    }
}

/// Instances 3 to 5 read the outputs of 0 to 2.
#[test]
fn busy_worker_takes_no_later_stage_from_the_tile_of_another() {
    let instances = [(0, None), (0, None), (0, None), (1, Some(0)), (1, Some(1)), (1, Some(2))];
    let mut manager = manager(chain(&instances, &[&[0], &[1], &[2], &[3], &[4], &[5]]), ReuseScope::Value);
    let owner = join(&mut manager);
    let other = manager.handle_join(WorkerInfo { slots: 1, ..WorkerInfo::ANY });
    for number in 0..2 {
        assert_eq!(ask(&mut manager, owner), [format!("w0 <- {number}*")]);
    }
    assert_eq!(ask(&mut manager, other)[1], "w1 <- 2");
    // The other one is busy, and waits for a bucket of the later stage.
    manager.handle_request(other, 1, Some(0));
    assert_eq!(done(&mut manager, owner, 0, 0), ["finished 0"]);
    assert_eq!(ask(&mut manager, owner), ["w0 <- 3"]);
    // Its own result is its own, whoever began the tile.
    assert_eq!(done(&mut manager, other, 2, 2), ["finished 2", "w1 <- 5 under 4"]);
    assert_eq!(done(&mut manager, owner, 1, 1)[0], "finished 1");
    // Idle, it takes what is there.
    assert_eq!(done(&mut manager, other, 4, 5)[0], "finished 5");
    assert_eq!(ask(&mut manager, other), ["w1 <- 4"]);
}
