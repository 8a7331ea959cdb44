//! Tier stacks: placement of regions, eviction and demotion, and regions that must not be dropped.

use crate::regions::{AMPLE_BYTES, key, noise, open};
use pleach_regions::{DataRegion, MemoryCounter, RegionKey};
use pleach_storage::{
    BoundedRam, Durability, EvictionPolicy, FolderKind, Inserted, LevelId, LevelStats, PlacementHints,
    RetentionValue, Tier, TierError, TierLevel, TierStack, WriteMode,
};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::fs;
use std::sync::Arc;

/// Returns the overhead of a region in RAM, in bytes.
fn entry_bytes() -> u64 {
    let ram = BoundedRam::new(Arc::new(MemoryCounter::default()), AMPLE_BYTES);
    ram.insert(key(0), &noise(0, 1)).unwrap();
    ram.held_bytes() - 1
}

/// Creates a RAM level with space for `regions` regions of 1,000 bytes.
fn ram(name: &str, regions: u64, policy: EvictionPolicy) -> TierLevel {
    let tier = BoundedRam::new(Arc::new(MemoryCounter::default()), regions * (1000 + entry_bytes()));
    TierLevel { name: name.into(), tier: Arc::new(tier), policy, write: WriteMode::Back, shared: false }
}

fn folder(name: &str, place: &tempfile::TempDir, kind: FolderKind) -> TierLevel {
    let path = place.path().join(name);
    fs::create_dir(&path).unwrap();
    TierLevel {
        name: name.into(),
        tier: Arc::new(open(&path, kind)),
        policy: EvictionPolicy::Lru,
        write: WriteMode::Back,
        shared: kind.is_shared(),
    }
}

fn small(number: u32) -> Arc<DataRegion> {
    noise(number, 1000)
}

fn worth(seconds: f64) -> RetentionValue {
    RetentionValue { seconds, durable: false }
}

fn store(stack: &TierStack, number: u32, seconds: f64) -> Result<usize, TierError> {
    stack.store(key(number), &small(number), worth(seconds)).map(|placed| placed.level.0)
}

/// Returns for each region the names of the levels that have it.
fn places(stack: &TierStack, numbers: std::ops::Range<u32>) -> Vec<String> {
    let place = |number| {
        let held = |level: &&TierLevel| level.tier.contains(key(number)).unwrap();
        let names: Vec<&str> = stack.levels().iter().filter(held).map(|level| level.name.as_str()).collect();
        names.join("+")
    };
    numbers.map(place).collect()
}

fn counted(stack: &TierStack, name: &str) -> LevelStats {
    stack.counts().into_iter().find(|level| level.name == name).unwrap()
}

#[test]
fn evicted_region_is_demoted_or_dropped() {
    let stack =
        TierStack::new(vec![ram("fast", 2, EvictionPolicy::Lru), ram("slow", 2, EvictionPolicy::Lru)]);
    for number in 0..5 {
        assert_eq!(store(&stack, number, 1.0).unwrap(), 0);
    }
    assert_eq!(places(&stack, 0..5), ["", "slow", "slow", "fast", "fast"]);
    assert_eq!(stack.get(key(1)).unwrap(), Some((small(1), LevelId(1))));
    assert_eq!(stack.get(key(0)).unwrap(), None);
    // The slow level drops the least recently used region.
    store(&stack, 5, 1.0).unwrap();
    assert_eq!(places(&stack, 0..6), ["", "slow", "", "slow", "fast", "fast"]);
    let (fast, slow) = (counted(&stack, "fast"), counted(&stack, "slow"));
    assert_eq!((fast.inserted, fast.spilled, fast.evicted, fast.hits, fast.misses), (6, 4, 0, 0, 2));
    assert_eq!((slow.inserted, slow.spilled, slow.evicted, slow.hits, slow.misses), (4, 0, 2, 1, 1));
    assert_eq!((slow.regions, slow.held_bytes, slow.errors), (2, slow.capacity_bytes, 0));
    assert_eq!(stack.free_bytes(), 0);
}

#[test]
fn level_without_policy_passes_new_regions_on() {
    let stack =
        TierStack::new(vec![ram("fast", 1, EvictionPolicy::None), ram("slow", 1, EvictionPolicy::None)]);
    assert_eq!(store(&stack, 0, 1.0).unwrap(), 0);
    assert_eq!(store(&stack, 1, 1.0).unwrap(), 1);
    let error = store(&stack, 2, 1.0).unwrap_err();
    assert!(error.is_lack_of_room(), "{error}");
    assert!(stack.remove(key(0)).unwrap() && !stack.remove(key(0)).unwrap());
    assert_eq!(store(&stack, 2, 1.0).unwrap(), 0);
}

#[test]
fn region_with_higher_cost_per_byte_stays() {
    let stack = TierStack::new(vec![ram("only", 3, EvictionPolicy::CostBenefit)]);
    [(0, 9.0), (1, 1.0), (2, 5.0), (3, 7.0), (4, 0.5)].iter().for_each(|(number, seconds)| {
        store(&stack, *number, *seconds).unwrap();
    });
    // Evicts region 1, then region 2. A new region is always accepted.
    assert_eq!(places(&stack, 0..5), ["only", "", "", "only", "only"]);
}

#[test]
fn irreplaceable_region_is_demoted_and_never_dropped() {
    let stack =
        TierStack::new(vec![ram("fast", 1, EvictionPolicy::Lru), ram("slow", 2, EvictionPolicy::Lru)]);
    assert_eq!(store(&stack, 0, f64::INFINITY).unwrap(), 0);
    assert_eq!(store(&stack, 1, f64::INFINITY).unwrap(), 0);
    assert_eq!(store(&stack, 2, 1.0).unwrap(), 0);
    assert_eq!(places(&stack, 0..3), ["slow", "slow", "fast"]);
    // The region that can be recomputed is dropped, although it is the newest one.
    assert_eq!(store(&stack, 3, f64::INFINITY).unwrap(), 0);
    assert_eq!(places(&stack, 0..4), ["slow", "slow", "", "fast"]);
    let error = store(&stack, 4, f64::INFINITY).unwrap_err();
    assert!(error.is_lack_of_room(), "{error}");
    assert_eq!(places(&stack, 0..5), ["slow", "slow", "", "fast", ""]);
    // A region larger than a level evicts nothing from it.
    let large = noise(9, 100_000);
    assert!(stack.store(key(9), &large, worth(1.0)).is_err());
    assert_eq!(places(&stack, 0..4), ["slow", "slow", "", "fast"]);
}

#[test]
fn storing_again_raises_the_retention_value() {
    let stack = TierStack::new(vec![ram("only", 1, EvictionPolicy::Lru)]);
    store(&stack, 0, 1.0).unwrap();
    let again = stack.store(key(0), &small(0), worth(f64::INFINITY)).unwrap();
    assert_eq!((again.level, again.inserted), (LevelId(0), Inserted::AlreadyPresent));
    assert!(store(&stack, 1, 1.0).is_err());
    assert!(stack.contains(key(0)) && !stack.contains(key(1)));
    // Removing the region also resets its value.
    stack.remove(key(0)).unwrap();
    store(&stack, 0, 1.0).unwrap();
    store(&stack, 1, 1.0).unwrap();
    assert_eq!(places(&stack, 0..2), ["", "only"]);
}

#[test]
fn durable_regions_go_to_durable_levels_and_stay() {
    let place = tempfile::tempdir().unwrap();
    let durable = RetentionValue { seconds: 1.0, durable: true };
    let private =
        TierStack::new(vec![ram("ram", 1, EvictionPolicy::Lru), folder("ssd", &place, FolderKind::Ssd)]);
    assert_eq!(private.store(key(0), &small(0), durable).unwrap().level, LevelId(1));
    let error = private.share(key(0), &small(0)).unwrap_err();
    assert_eq!(error.to_string(), format!("store region {}: no tier is shared", key(0)));
    let volatile = TierStack::new(vec![ram("ram", 1, EvictionPolicy::Lru)]);
    let error = volatile.store(key(0), &small(0), durable).unwrap_err();
    assert_eq!(error.to_string(), format!("store region {}: no tier is durable", key(0)));

    let levels = vec![
        ram("ram", 1, EvictionPolicy::Lru),
        folder("scratch", &place, FolderKind::Ssd),
        folder("lustre", &place, FolderKind::Lustre),
    ];
    let stack = TierStack::new(levels);
    assert_eq!(stack.store(key(0), &small(0), durable).unwrap().level, LevelId(2));
    store(&stack, 1, 1.0).unwrap();
    let shared = stack.share(key(1), &small(1)).unwrap();
    assert_eq!((shared.level, shared.inserted), (LevelId(2), Inserted::New));
    assert_eq!(places(&stack, 0..2), ["lustre", "ram+lustre"]);
    assert_eq!(stack.share(key(1), &small(1)).unwrap().inserted, Inserted::AlreadyPresent);
    // The copy in RAM is evicted without another write.
    store(&stack, 2, 1.0).unwrap();
    assert_eq!(places(&stack, 0..3), ["lustre", "lustre", "ram"]);
    assert_eq!(counted(&stack, "lustre").inserted, 2);
    assert!(stack.remove(key(1)).unwrap());
    assert_eq!(places(&stack, 1..2), [""]);
    assert_eq!(stack.level("scratch"), Some(LevelId(1)));
    let below = stack.store_from(LevelId(1), key(3), &small(3), worth(1.0)).unwrap();
    assert_eq!(below.level, LevelId(1));
}

/// RAM that reports itself as durable, for a durable level with space for an exact number of regions.
#[derive(Debug)]
struct Safe(BoundedRam);

impl Tier for Safe {
    fn insert(&self, key: RegionKey, region: &Arc<DataRegion>) -> Result<Inserted, TierError> {
        self.0.insert(key, region)
    }

    fn get(&self, key: RegionKey) -> Result<Option<Arc<DataRegion>>, TierError> {
        self.0.get(key)
    }

    fn remove(&self, key: RegionKey) -> Result<bool, TierError> {
        self.0.remove(key)
    }

    fn contains(&self, key: RegionKey) -> Result<bool, TierError> {
        self.0.contains(key)
    }

    fn list(&self) -> Result<Vec<RegionKey>, TierError> {
        self.0.list()
    }

    fn held_bytes(&self) -> u64 {
        self.0.held_bytes()
    }

    fn capacity_bytes(&self) -> u64 {
        self.0.capacity_bytes()
    }

    fn free_bytes(&self) -> u64 {
        self.0.free_bytes()
    }

    fn durability(&self) -> Durability {
        Durability::PowerLoss
    }
}

/// A read below costs a latency, so two small regions cost more than a large one of their bytes.
#[test]
fn regions_that_must_stay_are_demoted_by_the_cost_of_their_reads() {
    for (policy, expected) in [
        (EvictionPolicy::CostBenefit, ["fast", "slow", "fast", "fast"]),
        (EvictionPolicy::Lru, ["slow", "fast", "fast", "fast"]),
    ] {
        let stack = TierStack::new(vec![ram("fast", 4, policy), ram("slow", 9, policy)]);
        for (number, bytes) in [(0, 1000), (1, 2000), (2, 1000), (3, 1000)] {
            let placed = stack.store(key(number), &noise(number, bytes), worth(f64::INFINITY)).unwrap();
            assert_eq!(placed.level, LevelId(0), "{policy:?}");
        }
        assert_eq!(places(&stack, 0..4), expected, "{policy:?}");
    }
}

#[test]
fn durable_regions_that_make_room_skip_levels_that_are_not_durable() {
    let safe = |name: &str| {
        let tier = Safe(BoundedRam::new(Arc::new(MemoryCounter::default()), 1000 + entry_bytes()));
        TierLevel { tier: Arc::new(tier), ..ram(name, 1, EvictionPolicy::Lru) }
    };
    let stack = TierStack::new(vec![safe("safe"), ram("volatile", 5, EvictionPolicy::Lru), safe("below")]);
    let store = |number| {
        stack.store(key(number), &small(number), RetentionValue { seconds: f64::INFINITY, durable: true })
    };
    assert_eq!(store(0).unwrap().level, LevelId(0));
    assert_eq!(store(1).unwrap().level, LevelId(0));
    assert_eq!(places(&stack, 0..2), ["below", "safe"]);
    // Without durable space nothing is evicted, although the volatile level is empty.
    assert!(store(2).unwrap_err().is_lack_of_room());
    assert_eq!(places(&stack, 0..3), ["below", "safe", ""]);
}

#[test]
fn write_through_stores_in_the_next_level_at_once() {
    let through = TierLevel { write: WriteMode::Through, ..ram("fast", 1, EvictionPolicy::Lru) };
    let stack = TierStack::new(vec![through, ram("slow", 3, EvictionPolicy::Lru)]);
    store(&stack, 0, 1.0).unwrap();
    assert_eq!(places(&stack, 0..1), ["fast+slow"]);
    store(&stack, 1, 1.0).unwrap();
    assert_eq!(places(&stack, 0..2), ["slow", "fast+slow"]);
    assert_eq!(counted(&stack, "slow").inserted, 2);
}

#[test]
fn corrupt_copy_is_quarantined_and_next_level_is_read() {
    let place = tempfile::tempdir().unwrap();
    let (ssd, hdd) = (folder("ssd", &place, FolderKind::Ssd), folder("hdd", &place, FolderKind::Hdd));
    let stack = TierStack::new(vec![TierLevel { write: WriteMode::Through, ..ssd }, hdd]);
    store(&stack, 0, 1.0).unwrap();
    let damage = |name: &str| {
        let path = place.path().join(name);
        let file = path.join(format!("a/7/{}.region", key(0)));
        let mut bytes = fs::read(&file).unwrap();
        bytes[60] ^= 1;
        fs::write(file, bytes).unwrap();
        move || fs::read_dir(path.join("quarantine")).unwrap().count()
    };
    let in_quarantine = damage("ssd");
    assert_eq!(stack.get(key(0)).unwrap(), Some((small(0), LevelId(1))));
    assert_eq!((in_quarantine(), counted(&stack, "ssd").lost), (1, 1));
    let in_quarantine = damage("hdd");
    assert!(matches!(stack.get(key(0)), Err(TierError::Lost { .. })));
    assert_eq!((in_quarantine(), counted(&stack, "hdd").lost), (1, 1));
    assert!(stack.get(key(0)).unwrap().is_none() && !stack.contains(key(0)));
    assert_eq!(store(&stack, 0, 1.0).unwrap(), 0);
}

#[test]
fn regions_from_before_the_stack_are_evicted_first() {
    let fast = ram("fast", 2, EvictionPolicy::CostBenefit);
    fast.tier.insert(key(0), &small(0)).unwrap();
    let stack = TierStack::new(vec![fast]);
    assert!(stack.contains(key(0)));
    (1..3).for_each(|number| assert_eq!(store(&stack, number, 0.1).unwrap(), 0));
    assert_eq!(places(&stack, 0..3), ["", "fast", "fast"]);
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Store { number: u32, seconds: Option<f64>, wishes: PlacementHints },
    Promote(u32),
    Get(u32),
    Remove(u32),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let wishes = (0..3_usize, prop::bool::weighted(0.2));
    let wishes = wishes.prop_map(|(first, pin)| PlacementHints { first: LevelId(first), pin });
    let store = (0..12_u32, prop::option::weighted(0.7, 0.0..9.0_f64), wishes);
    let step = prop_oneof![
        4 => store.prop_map(|(number, seconds, wishes)| Step::Store { number, seconds, wishes }),
        2 => (0..12_u32).prop_map(Step::Promote),
        2 => (0..12_u32).prop_map(Step::Get),
        1 => (0..12_u32).prop_map(Step::Remove),
    ];
    prop::collection::vec(step, 1..80)
}

fn any_policy() -> impl Strategy<Value = EvictionPolicy> {
    prop::sample::select(vec![EvictionPolicy::None, EvictionPolicy::Lru, EvictionPolicy::CostBenefit])
}

proptest! {
    /// A stored region that cannot be recreated is found until it is removed, with its content. Pinned regions stay in their
    /// level. Unread prefetched bytes stay within the limit. The index and the counters agree with the tiers.
    #[test]
    fn no_stored_region_is_lost(
        levels in prop::collection::vec((1..5_u64, any_policy(), any::<bool>()), 3),
        steps in steps(),
    ) {
        let level = |(place, (regions, policy, through)): (usize, &(u64, EvictionPolicy, bool))| {
            let write = if *through { WriteMode::Through } else { WriteMode::Back };
            TierLevel { write, ..ram(&place.to_string(), *regions, *policy) }
        };
        let stack = TierStack::new(levels.iter().enumerate().map(level).collect());
        const MAX_AHEAD_BYTES: u64 = 2500;
        let mut stored: BTreeMap<u32, bool> = BTreeMap::new();
        let mut kept: BTreeMap<u32, LevelId> = BTreeMap::new();
        for step in steps {
            match step {
                Step::Store { number, seconds, wishes } => {
                    let said = worth(seconds.unwrap_or(f64::INFINITY));
                    if let Ok(placed) = stack.store_with(key(number), &small(number), said, wishes) {
                        prop_assert!(placed.level >= wishes.first);
                        if wishes.pin {
                            kept.insert(number, placed.level);
                        }
                        prop_assert!(stack.levels()[placed.level.0].tier.contains(key(number)).unwrap());
                        *stored.entry(number).or_default() |= seconds.is_none();
                    }
                }
                Step::Promote(number) => {
                    let fastest = &stack.levels()[0].tier;
                    let (held, before) = (stack.contains(key(number)), fastest.contains(key(number)).unwrap());
                    match stack.promote(key(number), 3.0, MAX_AHEAD_BYTES) {
                        Ok(brought) => {
                            prop_assert!(!brought || held && !before);
                            prop_assert_eq!(fastest.contains(key(number)).unwrap(), before || brought);
                        }
                        Err(error) => prop_assert!(error.is_lack_of_room(), "{}", error),
                    }
                }
                Step::Get(number) => {
                    let found = stack.get(key(number)).unwrap();
                    prop_assert_eq!(found.is_some(), stack.contains(key(number)));
                    prop_assert!(found.is_none_or(|(region, _)| region == small(number)));
                }
                Step::Remove(number) => {
                    let held = stack.contains(key(number));
                    prop_assert_eq!(stack.remove(key(number)).unwrap(), held);
                    stored.remove(&number);
                    kept.remove(&number);
                }
            }
            for (number, level) in &kept {
                prop_assert!(stack.levels()[level.0].tier.contains(key(*number)).unwrap(), "{} moved", number);
            }
            prop_assert!(stack.prefetched_bytes() <= MAX_AHEAD_BYTES);
            for number in 0..12 {
                let held = stack.levels().iter().any(|level| level.tier.contains(key(number)).unwrap());
                prop_assert_eq!(stack.contains(key(number)), held);
                prop_assert!(held || stored.get(&number) != Some(&true), "{} is gone", number);
                prop_assert!(!held || stored.contains_key(&number), "{} was never stored", number);
            }
            for (level, counts) in stack.levels().iter().zip(stack.counts()) {
                prop_assert_eq!(counts.regions as usize, level.tier.list().unwrap().len());
                prop_assert!(counts.held_bytes <= counts.capacity_bytes);
                prop_assert_eq!((counts.lost, counts.errors), (0, 0));
            }
        }
    }
}

/// Threads store, promote, read and remove the same regions in levels that are too small for all of them. No region is read
/// with wrong content, and no claim is left behind.
#[test]
fn concurrent_use_of_a_stack_keeps_contents_and_counts() {
    const THREADS: u32 = 6;
    let levels = [2, 3, 8].map(|regions| ram(&regions.to_string(), regions, EvictionPolicy::CostBenefit));
    let stack = TierStack::new(levels.into());
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let stack = &stack;
            scope.spawn(move || {
                for step in 0..3000 {
                    let number = (step * 7 + thread * 5) % 20;
                    match (step + thread) % 5 {
                        // A store fails while other threads move every region that could be evicted.
                        0..3 => {
                            let stored = store(stack, number, f64::from(number));
                            assert!(stored.is_ok() || stored.is_err_and(|error| error.is_lack_of_room()));
                        }
                        3 => drop(stack.remove(key(number)).unwrap()),
                        _ => {
                            let brought = stack.promote(key(number), 1.0, 1500);
                            assert!(brought.is_ok() || brought.is_err_and(|error| error.is_lack_of_room()));
                            let found = stack.get(key(number)).unwrap();
                            assert!(found.is_none_or(|(region, _)| region == small(number)));
                        }
                    }
                }
            });
        }
    });
    // No region is claimed any more, so each of these evicts another region and stays.
    let keys: Vec<RegionKey> = (100..112).map(key).collect();
    (100..112).for_each(|number| assert!(store(&stack, number, f64::INFINITY).is_ok()));
    assert!(keys.iter().all(|key| stack.get(*key).unwrap().is_some()));
    for (level, counts) in stack.levels().iter().zip(stack.counts()) {
        assert_eq!(counts.regions as usize, level.tier.list().unwrap().len());
    }
    for key in Tier::list(&stack).unwrap() {
        assert!(stack.remove(key).unwrap());
    }
    assert_eq!((Tier::held_bytes(&stack), stack.prefetched_bytes()), (0, 0));
    assert_eq!(stack.durability(), Durability::Process);
}
