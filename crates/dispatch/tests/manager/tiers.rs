//! Placement by the tiers of regions: a bucket goes to the worker that reads its inputs in the least time.

use crate::elastic::effects;
use crate::plans::{chain, ids, output_key};
use crate::solo::{STUDY, manager_of};
use pleach_dispatch::WorkerId;
use pleach_dispatch::manager::{Effect, Manager, WorkerInfo};
use pleach_dispatch::message::RegionTiers;
use pleach_dispatch::plan::{ExecutionPlan, GrantOrder};
use pleach_dispatch::storage::TransferCost;
use pleach_regions::RegionKey;
use pleach_workflow::TierKind;
use std::collections::BTreeSet;

/// Reports the tier of a worker's copies of outputs, `None` for memory.
fn moves(manager: &mut Manager, worker: WorkerId, outputs: &[u32], tier: Option<TierKind>) {
    let regions: Vec<(RegionKey, _)> = outputs.iter().map(|id| (output_key(*id, 0), tier)).collect();
    manager.handle_region_tiers(worker, &RegionTiers { regions, rates: Vec::new() });
}

/// Creates a manager of instances 0 and 1 and their readers 2 and 3, with two workers that both hold both outputs.
fn replicated(order: GrantOrder) -> (Manager, [WorkerId; 2]) {
    let instances = [(0, None), (0, None), (1, Some(0)), (1, Some(1))];
    let plan = ExecutionPlan { order, ..chain(&instances, &[&[0], &[1], &[2], &[3]]) };
    let mut manager = manager_of(plan, &BTreeSet::from_iter(ids([]))).expect("a plan that keeps the rules");
    let workers = [0, 1].map(|_| manager.handle_join(WorkerInfo::ANY));
    manager.pause_grants();
    // One after the other, since a bucket is released with the output that it reads.
    for output in [0, 1] {
        workers.iter().for_each(|worker| _ = manager.handle_holds(*worker, STUDY, &[output_key(output, 0)]));
    }
    effects(&mut manager);
    (manager, workers)
}

/// Lets the workers wait in this order, and returns the grants.
fn granted(manager: &mut Manager, waiting: &[WorkerId]) -> Vec<String> {
    waiting.iter().for_each(|worker| manager.handle_request(*worker, 1, None));
    manager.resume_grants();
    effects(manager)
}

#[test]
fn bucket_goes_to_the_worker_with_its_input_in_memory() {
    for order in [GrantOrder::default(), GrantOrder::Release] {
        let (mut manager, [first, second]) = replicated(order);
        assert_eq!(
            granted(&mut manager, &[first, second]),
            ["w0 <- 2 under 0", "w1 <- 3 under 1"],
            "{order:?}"
        );
        // The first worker has waited longer, and would read the input of the first bucket from its disk.
        let (mut manager, [first, second]) = replicated(order);
        moves(&mut manager, first, &[0, 1], Some(TierKind::Ssd));
        assert_eq!(
            granted(&mut manager, &[first, second]),
            ["w1 <- 2 under 0", "w0 <- 3 under 1"],
            "{order:?}"
        );
        // Both would read from their disks, or the region is back in memory.
        for (worker, tier) in [(1, Some(TierKind::Ssd)), (0, None)] {
            let (mut manager, [first, second]) = replicated(order);
            moves(&mut manager, first, &[0, 1], Some(TierKind::Ssd));
            moves(&mut manager, [first, second][worker], &[0, 1], tier);
            let expected = ["w0 <- 2 under 0", "w1 <- 3 under 1"];
            assert_eq!(granted(&mut manager, &[first, second]), expected, "{order:?}, {tier:?}");
        }
        // A disk is faster than a shared file system.
        let (mut manager, [first, second]) = replicated(order);
        moves(&mut manager, first, &[0, 1], Some(TierKind::Lustre));
        moves(&mut manager, second, &[0, 1], Some(TierKind::Ssd));
        assert_eq!(granted(&mut manager, &[first, second])[0], "w1 <- 2 under 0", "{order:?}");
    }
}

#[test]
fn worker_reads_the_input_in_memory_before_the_one_on_disk() {
    let (mut manager, [first, _]) = replicated(GrantOrder::default());
    moves(&mut manager, first, &[0], Some(TierKind::Ssd));
    assert_eq!(granted(&mut manager, &[first]), ["w0 <- 3 under 0"]);
}

#[test]
fn worker_without_a_copy_reads_what_another_has_in_memory() {
    for tiers in
        [[Some(TierKind::Ssd), None], [None, Some(TierKind::Ssd)], [Some(TierKind::S3), Some(TierKind::Ssd)]]
    {
        let instances = [(0, None), (0, None), (1, Some(0)), (1, Some(1))];
        let plan = chain(&instances, &[&[0], &[1], &[2], &[3]]);
        let mut manager = manager_of(plan, &BTreeSet::new()).expect("a plan that keeps the rules");
        let [reader, holder] = [0, 1].map(|_| manager.handle_join(WorkerInfo::ANY));
        manager.pause_grants();
        manager.handle_holds(holder, STUDY, &[output_key(0, 0), output_key(1, 0)]);
        effects(&mut manager);
        moves(&mut manager, holder, &[0], tiers[0]);
        moves(&mut manager, holder, &[1], tiers[1]);
        let bucket = if tiers[0] < tiers[1] { 2 } else { 3 };
        assert_eq!(granted(&mut manager, &[reader]), [format!("w0 <- {bucket} under 0")], "{tiers:?}");
    }
}

#[test]
fn measured_rates_decide_between_the_own_disk_and_another_worker() {
    // The first worker has the input of the first bucket on its disk, and fetches that of the second.
    let instances = [(0, None), (0, None), (1, Some(0)), (1, Some(1))];
    let begin = || {
        let plan = chain(&instances, &[&[0], &[1], &[2], &[3]]);
        let mut manager = manager_of(plan, &BTreeSet::new()).expect("a plan that keeps the rules");
        let [first, second] = [0, 1].map(|_| manager.handle_join(WorkerInfo::ANY));
        manager.pause_grants();
        manager.handle_holds(first, STUDY, &[output_key(1, 0)]);
        manager.handle_holds(second, STUDY, &[output_key(0, 0)]);
        effects(&mut manager);
        moves(&mut manager, first, &[1], Some(TierKind::Hdd));
        (manager, first)
    };
    let (mut manager, first) = begin();
    assert_eq!(granted(&mut manager, &[first]), ["w0 <- 3 under 0"]);
    let (mut manager, first) = begin();
    manager.handle_measured_link(first, TransferCost { bytes_per_second: 5e9, latency_seconds: 0.0 });
    assert_eq!(granted(&mut manager, &[first]), ["w0 <- 2 under 0"]);
    let (mut manager, first) = begin();
    manager.handle_measured_link(first, TransferCost { bytes_per_second: 5e9, latency_seconds: 0.0 });
    let rates = vec![(TierKind::Hdd, TransferCost { bytes_per_second: 9e9, latency_seconds: 0.0 })];
    manager.handle_region_tiers(first, &RegionTiers { regions: Vec::new(), rates });
    assert_eq!(granted(&mut manager, &[first]), ["w0 <- 3 under 0"]);
}

#[test]
fn tiers_of_unknown_copies_are_ignored() {
    let (mut manager, [first, second]) = replicated(GrantOrder::default());
    moves(&mut manager, WorkerId(7), &[0, 1], Some(TierKind::Ssd));
    moves(&mut manager, first, &[50], Some(TierKind::Ssd));
    // A worker that has left has no tiers, and the next one is another.
    moves(&mut manager, second, &[0], Some(TierKind::Hdd));
    manager.handle_leave(second, true);
    assert_eq!(granted(&mut manager, &[first]), ["w0 <- 2 under 0"]);
}

/// Regions of a worker with memory for a few of them. Others are on its disk.
#[derive(Default)]
struct Node {
    /// The least recently read one comes first.
    in_memory: Vec<RegionKey>,
    on_disk: BTreeSet<RegionKey>,
}

/// Regions that fit into the memory of a worker.
const IN_MEMORY: usize = 4;

impl Node {
    /// Reads a region into memory, which evicts the least recently read one. Returns whether it was in memory, and the moves.
    fn read(&mut self, key: RegionKey) -> (bool, Vec<(RegionKey, Option<TierKind>)>) {
        let was_there = self.in_memory.contains(&key);
        self.in_memory.retain(|known| *known != key);
        self.in_memory.push(key);
        self.on_disk.remove(&key);
        let mut moved = vec![(key, None)];
        if self.in_memory.len() > IN_MEMORY {
            let evicted = self.in_memory.remove(0);
            self.on_disk.insert(evicted);
            moved.push((evicted, Some(TierKind::Ssd)));
        }
        (was_there, moved)
    }
}

/// Runs 3 readers of each of 24 regions on two workers that hold half of them each. Returns the reads from memory, from the
/// disks and from the other worker.
fn reads_of_a_study(reports: bool) -> [u32; 3] {
    const TILES: u32 = 24;
    let producers = (0..TILES).map(|_| (0, None));
    let readers = (0..3 * TILES).map(|reader| (1, Some(reader % TILES)));
    let instances: Vec<(usize, Option<u32>)> = producers.chain(readers).collect();
    let buckets: Vec<Vec<u32>> = (0..4 * TILES).map(|instance| vec![instance]).collect();
    let buckets: Vec<&[u32]> = buckets.iter().map(Vec::as_slice).collect();
    let mut manager =
        manager_of(chain(&instances, &buckets), &BTreeSet::new()).expect("a plan that keeps the rules");
    let workers = [0, 1].map(|_| manager.handle_join(WorkerInfo::ANY));
    let mut nodes = [Node::default(), Node::default()];
    manager.pause_grants();
    for tile in 0..TILES {
        let key = output_key(tile, 0);
        let holder = tile as usize % 2;
        manager.handle_holds(workers[holder], STUDY, &[key]);
        let (_, regions) = nodes[holder].read(key);
        if reports {
            manager.handle_region_tiers(workers[holder], &RegionTiers { regions, rates: Vec::new() });
        }
    }
    manager.resume_grants();
    let mut reads = [0; 3];
    for turn in 0..3 * TILES as usize {
        let (worker, node) = (workers[turn % 2], &mut nodes[turn % 2]);
        manager.handle_request(worker, 1, None);
        let mut granted = None;
        while let Some(effect) = manager.poll_effect() {
            if let Effect::Assign { lease, work, .. } = effect {
                granted = Some((lease, work.instances[0].clone()));
            }
        }
        let (lease, instance) = granted.expect("a reader is ready");
        let key = instance.inputs[0];
        if node.in_memory.contains(&key) || node.on_disk.contains(&key) {
            let (was_in_memory, regions) = node.read(key);
            reads[usize::from(!was_in_memory)] += 1;
            if reports {
                manager.handle_region_tiers(worker, &RegionTiers { regions, rates: Vec::new() });
            }
        } else {
            reads[2] += 1;
        }
        assert!(manager.handle_done(worker, STUDY, lease, instance.id));
    }
    assert!(manager.study(STUDY).is_none(), "the study is complete");
    reads
}

#[test]
fn study_reads_less_from_disks_if_workers_report_tiers() {
    let (before, after) = (reads_of_a_study(false), reads_of_a_study(true));
    eprintln!(
        "reads from memory, disks and the other worker: {before:?} without reports, {after:?} with them"
    );
    assert_eq!([before, after].map(|reads| reads.iter().sum::<u32>()), [72, 72]);
    assert_eq!([before[2], after[2]], [0, 0], "both keep to their own regions");
    // Each worker reads 8 of its 12 regions from its disk at least once.
    assert!(before[1] > 60 && after[1] <= 20, "{before:?}, {after:?}");
}
