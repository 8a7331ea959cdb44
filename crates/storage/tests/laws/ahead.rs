//! Prefetched regions, and regions pinned to a level.

use crate::recorder::{check, steps};
use crate::regions::{AMPLE_BYTES, key, noise};
use pleach_regions::{DataRegion, MemoryCounter, RegionKey};
use pleach_storage::{
    BoundedRam, Durability, EvictionPolicy, Inserted, LevelId, PlacementHints, Prefetcher, RetentionValue,
    Tier, TierError, TierLevel, TierStack, WriteMode,
};
use proptest::prelude::*;
use std::sync::Arc;

const WORTH: RetentionValue = RetentionValue { seconds: 1.0, durable: false };

fn level(name: &str, bytes: u64) -> TierLevel {
    let tier = Arc::new(BoundedRam::new(Arc::new(MemoryCounter::default()), bytes));
    TierLevel { name: name.into(), tier, policy: EvictionPolicy::Lru, write: WriteMode::Back, shared: false }
}

/// Creates a stack of a fast level and a slow one with ample space, with 5 regions of 1,000 bytes in the slow level.
fn stack(fast_bytes: u64) -> TierStack {
    let stack = TierStack::new(vec![level("fast", fast_bytes), level("slow", AMPLE_BYTES)]);
    for number in 0..5 {
        stack.store_from(LevelId(1), key(number), &noise(number, 1000), WORTH).unwrap();
    }
    stack
}

fn in_fast(stack: &TierStack) -> Vec<RegionKey> {
    stack.levels()[0].tier.list().unwrap()
}

#[test]
fn promoted_region_is_found_in_both_levels() {
    let stack = stack(AMPLE_BYTES);
    assert!(stack.promote(key(1), 1.0, AMPLE_BYTES).unwrap());
    assert_eq!((in_fast(&stack), stack.prefetched_bytes()), (vec![key(1)], 1000));
    assert!(stack.levels()[1].tier.contains(key(1)).unwrap());
    assert!(!stack.promote(key(1), 1.0, AMPLE_BYTES).unwrap(), "it is there");
    assert!(!stack.promote(key(9), 1.0, AMPLE_BYTES).unwrap(), "it is nowhere");
    assert_eq!(stack.get(key(1)).unwrap(), Some((noise(1, 1000), LevelId(0))));
    assert_eq!((stack.prefetched_bytes(), stack.counts()[0].prefetched), (0, 1));
    assert!(stack.remove(key(1)).unwrap() && !stack.contains(key(1)));
}

/// The limit allows 2 unread prefetched regions. Reading or removing one of them allows another.
#[test]
fn unread_prefetched_bytes_are_limited() {
    let stack = stack(AMPLE_BYTES);
    let brought = |number| stack.promote(key(number), 1.0, 2000).unwrap();
    assert_eq!([0, 1, 2].map(brought), [true, true, false]);
    stack.get(key(0)).unwrap();
    assert_eq!([2, 3].map(brought), [true, false]);
    assert!(stack.remove(key(1)).unwrap());
    assert_eq!([3, 4].map(brought), [true, false]);
    assert_eq!(stack.prefetched_bytes(), 2000);
}

#[test]
fn promotion_evicts_promoted_regions_without_writes() {
    // Space for 2 regions with their overhead.
    let stack = stack(2600);
    for number in 0..5 {
        assert!(stack.promote(key(number), 1.0, AMPLE_BYTES).unwrap());
    }
    assert_eq!(in_fast(&stack), [key(4), key(3)], "keys are of two leaves");
    let (fast, slow) = (&stack.counts()[0], &stack.counts()[1]);
    assert_eq!((fast.prefetched, fast.spilled, slow.inserted, stack.prefetched_bytes()), (5, 3, 5, 2000));
}

#[test]
fn pinned_region_stays_in_its_level() {
    let stack = TierStack::new(vec![level("fast", 2600), level("slow", AMPLE_BYTES)]);
    let keep = |level| PlacementHints { first: LevelId(level), pin: true };
    let store = |number, wishes| stack.store_with(key(number), &noise(number, 1000), WORTH, wishes);
    assert_eq!(store(0, keep(0)).unwrap().level, LevelId(0));
    assert_eq!(store(1, keep(1)).unwrap().level, LevelId(1), "no faster level is tried");
    for number in 2..6 {
        assert_eq!(store(number, PlacementHints::default()).unwrap().level, LevelId(0));
        assert!(in_fast(&stack).contains(&key(0)));
    }
    // Pins a stored region in its level. Then the level has nothing to evict.
    assert_eq!(store(5, keep(0)).unwrap().inserted, Inserted::AlreadyPresent);
    assert_eq!(store(6, PlacementHints::default()).unwrap().level, LevelId(1));
    let error = stack.promote(key(2), 1.0, AMPLE_BYTES).unwrap_err();
    assert!(error.is_lack_of_room() && stack.prefetched_bytes() == 0, "{error}");
    // Removing the region also unpins it.
    stack.remove(key(0)).unwrap();
    assert_eq!(store(0, PlacementHints::default()).unwrap().level, LevelId(0));
    assert_eq!(store(7, PlacementHints::default()).unwrap().level, LevelId(0));
    assert!(!in_fast(&stack).contains(&key(0)));
}

/// Stack with a prefetcher that promotes every region after each insertion.
#[derive(Debug)]
struct Prefetched {
    prefetcher: Prefetcher,
    stack: Arc<TierStack>,
}

impl Tier for Prefetched {
    fn insert(&self, key: RegionKey, region: &Arc<DataRegion>) -> Result<Inserted, TierError> {
        let inserted = Tier::insert(&*self.stack, key, region);
        let all = Tier::list(&*self.stack)?;
        let count = all.len();
        assert_eq!(self.prefetcher.prefetch(all.into_iter().map(|key| (key, WORTH))), count);
        inserted
    }

    fn get(&self, key: RegionKey) -> Result<Option<Arc<DataRegion>>, TierError> {
        Tier::get(&*self.stack, key)
    }

    fn remove(&self, key: RegionKey) -> Result<bool, TierError> {
        Tier::remove(&*self.stack, key)
    }

    fn contains(&self, key: RegionKey) -> Result<bool, TierError> {
        Tier::contains(&*self.stack, key)
    }

    fn list(&self) -> Result<Vec<RegionKey>, TierError> {
        Tier::list(&*self.stack)
    }

    /// Waits for the prefetcher first, since its copies change the bytes in use.
    fn held_bytes(&self) -> u64 {
        self.prefetcher.settle();
        Tier::held_bytes(&*self.stack)
    }

    fn capacity_bytes(&self) -> u64 {
        Tier::capacity_bytes(&*self.stack)
    }

    fn durability(&self) -> Durability {
        self.stack.durability()
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// The contract of tiers holds while regions are prefetched in the background.
    #[test]
    fn prefetching_stack_keeps_the_tier_contract(steps in steps(), fast_bytes in 0..20_000_u64, ahead_bytes in 0..20_000_u64) {
        check(&|| {
            let stack = Arc::new(TierStack::new(vec![level("fast", fast_bytes), level("slow", AMPLE_BYTES)]));
            let prefetcher = Prefetcher::new(Arc::clone(&stack), ahead_bytes).unwrap();
            Box::new(Prefetched { prefetcher, stack })
        }, &steps);
    }
}

#[test]
fn prefetch_promotes_in_the_background() {
    let stack = Arc::new(stack(AMPLE_BYTES));
    let prefetcher = Prefetcher::new(Arc::clone(&stack), AMPLE_BYTES).unwrap();
    assert_eq!(prefetcher.prefetch((0..5).map(|number| (key(number), WORTH))), 5);
    prefetcher.settle();
    assert_eq!((in_fast(&stack).len(), stack.prefetched_bytes()), (5, 5000));
    // The queue refuses regions beyond its limit.
    assert!(prefetcher.prefetch((0..5000).map(|number| (key(number), WORTH))) <= 1024);
    drop(prefetcher);
    assert_eq!(Arc::strong_count(&stack), 1);
}
