//! Eviction order of the regions of a level.
//!
//! The policy itself moves and removes nothing.

use pleach_regions::RegionKey;
use std::collections::{BTreeMap, HashMap};

/// Choice of the regions that a level evicts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EvictionPolicy {
    /// Evicts nothing: new regions go to the next level.
    None,
    /// Evicts the least recently stored or read region.
    Lru,
    /// Evicts the region that saves the least time for its bytes and has not been read lately: GreedyDual-Size (Cao and
    /// Irani, Cost-Aware WWW Proxy Caching Algorithms, USENIX 1997). Its cost is the seconds to compute or fetch it or, if it
    /// must not be dropped, to read it from the level below.
    CostBenefit,
}

impl EvictionPolicy {
    /// Returns the name in files and statistics.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Lru => "lru",
            Self::CostBenefit => "cost-benefit",
        }
    }
}

/// Rank of a region. The lowest is evicted first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Rank {
    /// The region must not be dropped. It moves only if no other region can.
    is_pinned: bool,
    /// Bits of a non-negative float, which sort like the float.
    value: u64,
    /// Time of the last use, counted in uses of the level.
    used: u64,
}

/// The regions of one level in eviction order.
#[derive(Debug)]
pub struct EvictionQueue {
    policy: EvictionPolicy,
    ranks: HashMap<RegionKey, Rank>,
    order: BTreeMap<Rank, RegionKey>,
    uses: u64,
    /// Value of the last evicted region (L of GreedyDual-Size), added to the value of a region at each use. A region unused
    /// for long is thus overtaken regardless of its cost.
    inflation: f64,
}

impl EvictionQueue {
    /// Creates an empty queue.
    #[must_use]
    pub fn new(policy: EvictionPolicy) -> Self {
        Self { policy, ranks: HashMap::new(), order: BTreeMap::new(), uses: 0, inflation: 0.0 }
    }

    /// Records that a region is stored or read now. It occupies `bytes`, and costs `seconds` once it is evicted. Regions with
    /// `is_pinned`, which must not be dropped, are evicted last.
    pub fn touch(&mut self, key: RegionKey, bytes: u64, seconds: f64, is_pinned: bool) {
        self.uses += 1;
        let value = match self.policy {
            // An infinite value would make all later values infinite.
            EvictionPolicy::CostBenefit if seconds.is_finite() => {
                // Regions found at the start count 0 bytes, and 0/0 would be NaN.
                self.inflation + seconds.max(0.0) / bytes.max(1) as f64
            }
            _ => 0.0,
        };
        let rank = Rank { is_pinned, value: value.to_bits(), used: self.uses };
        if let Some(before) = self.ranks.insert(key, rank) {
            let ranked = self.order.remove(&before);
            assert!(ranked == Some(key), "{key} had the rank of {ranked:?}");
        }
        let before = self.order.insert(rank, key);
        assert!(before.is_none(), "{key} gets the rank of {before:?}");
        self.assert_counts(key);
    }

    /// Asserts that the order has each region once, after `last` has changed.
    fn assert_counts(&self, last: RegionKey) {
        let (ranks, order) = (self.ranks.len(), self.order.len());
        assert!(ranks == order, "{ranks} regions have a rank and {order} are in order after {last}");
    }

    /// Removes a deleted region. Returns whether it was present.
    pub fn forget(&mut self, key: RegionKey) -> bool {
        let Some(rank) = self.ranks.remove(&key) else { return false };
        let ranked = self.order.remove(&rank);
        assert!(ranked == Some(key), "{key} is forgotten with the rank of {ranked:?}");
        self.assert_counts(key);
        true
    }

    /// Removes an evicted region, and raises the inflation to its value.
    pub fn evict(&mut self, key: RegionKey) {
        if let Some(rank) = self.ranks.get(&key) {
            self.inflation = self.inflation.max(f64::from_bits(rank.value));
        }
        self.forget(key);
    }

    /// Returns the first region to evict that `may` accepts. With `is_pinned`, pinned regions follow all others. `None` if
    /// no region qualifies or the policy evicts nothing.
    pub fn victim(&self, is_pinned: bool, may: impl Fn(RegionKey) -> bool) -> Option<RegionKey> {
        if self.policy == EvictionPolicy::None {
            return None;
        }
        // Pinned regions sort behind all others, so the first one ends the search.
        let ranked = self.order.iter().take_while(|(rank, _)| is_pinned || !rank.is_pinned);
        ranked.map(|(_, key)| *key).find(|key| may(*key))
    }

    /// Returns whether a region is present.
    #[must_use]
    pub fn contains(&self, key: RegionKey) -> bool {
        self.ranks.contains_key(&key)
    }

    /// Returns the number of regions.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ranks.len()
    }

    /// Returns whether the queue is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ranks.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn key(name: u8) -> RegionKey {
        RegionKey([name; 16])
    }

    fn order(mut ranking: EvictionQueue) -> Vec<u8> {
        std::iter::from_fn(|| {
            let next = ranking.victim(true, |_| true)?;
            ranking.evict(next);
            Some(next.0[0])
        })
        .collect()
    }

    /// A queue after these uses: name, bytes and seconds, which are negative for a pinned region.
    fn ranking(policy: EvictionPolicy, uses: &[(u8, u64, f64)]) -> EvictionQueue {
        let mut ranking = EvictionQueue::new(policy);
        uses.iter().for_each(|(name, bytes, seconds)| {
            ranking.touch(key(*name), *bytes, seconds.abs(), seconds.is_sign_negative());
        });
        ranking
    }

    #[test]
    fn each_policy_has_its_order() {
        let uses = [
            (1, 100, 5.0),
            (2, 10, 0.1),
            (3, 1000, 1.0),
            (1, 100, 5.0),
            (4, 10, -0.1),
            (5, 1000, -1.0),
            (6, 10, -0.2),
        ];
        assert_eq!(order(ranking(EvictionPolicy::Lru, &uses)), [2, 3, 1, 4, 5, 6]);
        // Seconds per byte: 0.05, 0.01 and 0.001, and of the pinned ones 0.01, 0.001 and 0.02.
        assert_eq!(order(ranking(EvictionPolicy::CostBenefit, &uses)), [3, 2, 1, 5, 4, 6]);
        assert_eq!(order(ranking(EvictionPolicy::None, &uses)), []);
    }

    #[test]
    fn expensive_region_is_evicted_when_long_unused() {
        let mut held = ranking(EvictionPolicy::CostBenefit, &[(1, 1, 2.5), (2, 1, 1.0)]);
        for name in 3..10 {
            let gone = held.victim(true, |_| true).unwrap();
            held.evict(gone);
            held.touch(key(name), 1, 1.0, false);
            if gone == key(1) {
                // Regions 2 and 3 went first, with values of 1 and 2. Region 4 has a value of 3, above 2.5 of region 1.
                assert_eq!(name, 5);
                return;
            }
        }
        panic!("it stayed");
    }

    proptest! {
        /// Compares against a list that is searched in full each time.
        #[test]
        fn eviction_queue_equals_a_searched_list(
            policy in prop::sample::select(vec![EvictionPolicy::Lru, EvictionPolicy::CostBenefit]),
            steps in prop::collection::vec(
                (0..4_u8, 0..8_u8, 1..100_u64, 0.0..10.0_f64, prop::bool::weighted(0.2)),
                1..80,
            ),
        ) {
            let mut ranking = EvictionQueue::new(policy);
            let mut list: Vec<(u8, bool, f64)> = Vec::new(); // the one used last comes last
            let mut inflation = 0.0_f64;
            for (step, name, bytes, seconds, is_pinned) in steps {
                let least = |list: &[(u8, bool, f64)], pinned: bool| {
                    let mut best: Option<(u8, bool, f64)> = None;
                    for one in list.iter().filter(|one| (pinned || !one.1) && one.0 != name) {
                        if best.is_none_or(|best| (one.1, one.2) < (best.1, best.2)) {
                            best = Some(*one);
                        }
                    }
                    best
                };
                match step {
                    0 | 1 => {
                        ranking.touch(key(name), bytes, seconds, is_pinned);
                        list.retain(|one| one.0 != name);
                        let value = match policy {
                            EvictionPolicy::CostBenefit => inflation + seconds / bytes as f64,
                            _ => 0.0,
                        };
                        list.push((name, is_pinned, value));
                    }
                    2 => {
                        let victim = ranking.victim(bytes % 2 == 0, |key| key.0[0] != name);
                        let expected = least(&list, bytes % 2 == 0);
                        prop_assert_eq!(victim.map(|key| key.0[0]), expected.map(|one| one.0));
                        if let Some((gone, _, value)) = expected {
                            ranking.evict(key(gone));
                            inflation = inflation.max(value);
                            list.retain(|one| one.0 != gone);
                        }
                    }
                    _ => {
                        prop_assert_eq!(ranking.forget(key(name)), list.iter().any(|one| one.0 == name));
                        list.retain(|one| one.0 != name);
                    }
                }
                prop_assert_eq!(ranking.len(), list.len());
                prop_assert!(list.iter().all(|one| ranking.contains(key(one.0))));
            }
        }
    }
}
