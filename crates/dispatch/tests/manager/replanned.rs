//! Replans merged with a study whose instances are granted meanwhile.

use crate::elastic::{NOTHING, alike, ask, effects, manager};
use crate::plans::ids;
use crate::solo::STUDY;
use pleach_dispatch::InstanceId;
use pleach_dispatch::manager::{Manager, WorkerInfo};
use pleach_dispatch::memory_model::MinimumMemory;
use pleach_dispatch::plan::{BucketPlan, PlanError, ReuseScope};
use pleach_dispatch::study::{NewBuckets, ReplacementPlan, StudySnapshot};
use proptest::prelude::*;
use std::collections::BTreeSet;

/// Returns new buckets of these instances.
fn anew(buckets: &[Vec<u32>]) -> NewBuckets {
    let bucket = |bucket: &Vec<u32>| BucketPlan { instances: ids(bucket.iter().copied()), pixels: 64 };
    NewBuckets::new(buckets.iter().map(bucket).collect()).expect("each instance once")
}

/// Divides the instances from 0 on into buckets of these sizes. All others are in a last one.
fn buckets(sizes: &[u32], instances: u32) -> Vec<Vec<u32>> {
    let mut next = 0;
    let sizes = sizes.iter().copied().chain([instances]);
    let buckets = sizes.map(|size| {
        let end = (next + size).min(instances);
        (std::mem::replace(&mut next, end)..end).collect::<Vec<u32>>()
    });
    buckets.filter(|bucket| !bucket.is_empty()).collect()
}

/// Returns the open instances of the buckets without a lease.
fn unstarted(manager: &Manager) -> BTreeSet<Vec<InstanceId>> {
    let study = manager.study(STUDY).expect("a study");
    study.unstarted().map(|(_, open)| open.iter().copied().collect()).collect()
}

#[test]
fn replan_rebuilds_ungranted_buckets() {
    let (mut manager, workers) = manager(alike(&[&[0, 1], &[2, 3]]), 2);
    assert_eq!(ask(&mut manager, workers[0]), ["w0 <- 0 1 under 0"]);
    let anew = |buckets: &[&[u32]]| anew(&buckets.iter().map(|bucket| bucket.to_vec()).collect::<Vec<_>>());
    let outdated = manager.handle_replanned(STUDY, anew(&[&[0], &[1]])).expect("a merge");
    assert_eq!((outdated.moved, outdated.outdated), (0, 2), "the bucket is granted by now");
    // Instances granted since the snapshot drop out of the new buckets.
    let merged = manager.handle_replanned(STUDY, anew(&[&[1, 3], &[0], &[2]])).expect("a merge");
    assert_eq!((merged.moved, merged.outdated), (2, 2));
    assert_eq!(effects(&mut manager), NOTHING);
    assert_eq!(ask(&mut manager, workers[1]), ["w1 <- 3 under 1"]);
    assert_eq!(ask(&mut manager, workers[1]), ["w1 <- 2 under 2"]);
}

#[test]
fn replan_lets_workers_with_less_memory_take_instances() {
    let mut plan = alike(&[&[0, 1], &[2, 3, 4]]);
    plan.needs.min_bytes = 100;
    let (mut manager, _) = manager(plan, 0);
    let join = |manager: &mut Manager, memory_bytes| {
        manager.handle_join(WorkerInfo { memory_bytes, ..WorkerInfo::ANY })
    };
    let (large, small) = (join(&mut manager, 100), join(&mut manager, 40));
    assert_eq!(ask(&mut manager, large), ["w0 <- 0 1 under 0"]);
    assert_eq!(ask(&mut manager, small), NOTHING);
    assert_eq!(manager.able_workers(STUDY), 1);
    let cut = |snapshot: &StudySnapshot, buckets: &[&[u32]], min_bytes| {
        let bucket = |bucket: &&[u32]| BucketPlan { instances: ids(bucket.iter().copied()), pixels: 64 };
        let needs = MinimumMemory { min_bytes, ..MinimumMemory::default() };
        let buckets = buckets.iter().map(bucket).collect();
        ReplacementPlan::new(buckets, snapshot, needs, ReuseScope::default()).expect("each instance once")
    };
    let snapshot = manager.study(STUDY).expect("a study").snapshot();
    let incomplete = manager.handle_replacement(STUDY, cut(&snapshot, &[&[0], &[1], &[2], &[3]], 40));
    assert_eq!(incomplete.unwrap_err(), PlanError::NotInOneBucket(InstanceId(4)));
    assert_eq!(effects(&mut manager), NOTHING, "nothing has changed");
    // The argument is the whole plan. Leased buckets end unchanged.
    manager
        .handle_replacement(STUDY, cut(&snapshot, &[&[0], &[1], &[2, 3], &[4]], 40))
        .expect("a plan for all instances");
    assert_eq!(manager.able_workers(STUDY), 2);
    assert_eq!(effects(&mut manager), ["w1 <- 2 3 under 1"]);
    assert_eq!(ask(&mut manager, small), ["w1 <- 4 under 2"]);
    // Plans that need more than a worker has leave it without work again.
    let snapshot = manager.study(STUDY).expect("a study").snapshot();
    manager
        .handle_replacement(STUDY, cut(&snapshot, &[&[0], &[1], &[2], &[3], &[4]], 41))
        .expect("a plan for all instances");
    assert_eq!(manager.able_workers(STUDY), 1);
}

#[test]
fn parts_have_whole_buckets() {
    let (manager, _) = manager(alike(&[&[0, 1], &[2, 3], &[4, 5], &[6, 7]]), 0);
    let snapshot = manager.study(STUDY).expect("a study").snapshot();
    let parts = |new: &[Vec<u32>], most: usize| {
        let parts = anew(new).into_parts(&snapshot, most);
        parts.iter().map(NewBuckets::instances).collect::<Vec<_>>()
    };
    let halves: Vec<Vec<u32>> = (0..8).map(|instance| vec![instance]).collect();
    assert_eq!(parts(&halves, 2), [2, 2, 2, 2], "both halves of a bucket are in one part");
    assert_eq!(parts(&halves, 5), [4, 4]);
    assert_eq!(parts(&halves, 100), [8]);
    // Each new bucket has instances of two present ones: all are connected.
    assert_eq!(parts(&[vec![0], vec![1, 2], vec![3, 4], vec![5, 6], vec![7]], 2), [8]);
    assert_eq!(parts(&[vec![0], vec![1, 2], vec![3], vec![4, 5, 6, 7]], 2), [4, 4]);
}

proptest! {
    /// A study merges parts as it merges the whole, if nothing is granted meanwhile. Otherwise each instance stays in one bucket,
    /// and only those of granted buckets are outdated.
    #[test]
    fn merged_parts_are_the_whole(
        before in prop::collection::vec(1u32..6, 1..12),
        after in prop::collection::vec(1u32..6, 0..16),
        most in 1usize..20,
        granted in 0usize..6,
    ) {
        let instances: u32 = before.iter().sum();
        let (present, new) = (buckets(&before, instances), buckets(&after, instances));
        let slices: Vec<&[u32]> = present.iter().map(Vec::as_slice).collect();
        let (mut whole, _) = manager(alike(&slices), 1);
        let (mut parted, _) = manager(alike(&slices), 1);
        let snapshot = parted.study(STUDY).expect("a study").snapshot();
        let all = whole.handle_replanned(STUDY, anew(&new)).expect("a merge");
        prop_assert_eq!((all.moved, all.outdated), (instances as usize, 0));

        let parts = anew(&new).into_parts(&snapshot, most);
        let mut moved = 0;
        for part in parts {
            moved += parted.handle_replanned(STUDY, part).expect("a merge").moved;
        }
        prop_assert_eq!(moved, instances as usize);
        prop_assert_eq!(unstarted(&parted), unstarted(&whole));

        let (mut busy, workers) = manager(alike(&slices), 1);
        let (mut moved, mut outdated, mut left) = (0, 0, granted);
        for part in anew(&new).into_parts(&snapshot, most) {
            if left > 0 {
                left -= 1;
                busy.handle_request(workers[0], 1, None);
            }
            let merged = busy.handle_replanned(STUDY, part).expect("a merge");
            (moved, outdated) = (moved + merged.moved, outdated + merged.outdated);
        }
        prop_assert_eq!(moved + outdated, instances as usize);
        let study = busy.study(STUDY).expect("a study");
        let leased: usize = study.unreported_of(workers[0]).map(|(_, open)| open.len()).sum();
        let open: usize = unstarted(&busy).iter().map(Vec::len).sum();
        prop_assert_eq!(open + leased, instances as usize);
        prop_assert!(granted > 0 || outdated == 0);
    }
}
