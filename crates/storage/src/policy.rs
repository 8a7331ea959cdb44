//! Which region of a level goes first when it needs room.
//!
//! Nothing here moves or removes anything.

use pleach_regions::RegionKey;
use std::collections::{BTreeMap, HashMap};

/// By what a level chooses the regions that make room for others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EvictionPolicy {
    /// None makes room: what is new goes to the next level.
    None,
    /// The one that was stored or read least recently.
    Lru,
    /// The one that saves the least time for the bytes it takes, and has not been read lately: GreedyDual-Size (Cao and
    /// Irani, Cost-Aware WWW Proxy Caching Algorithms, USENIX 1997), with the seconds to compute or fetch it as its cost.
    CostBenefit,
}

impl EvictionPolicy {
    /// What it is called in files and figures.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Lru => "lru",
            Self::CostBenefit => "cost-benefit",
        }
    }
}

/// Where a region stands: the lowest goes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Rank {
    /// It may not be given up: it moves only when nothing else can.
    is_pinned: bool,
    /// The bits of a number that is not negative; they are ordered as numbers are.
    value: u64,
    /// When it was used last, in uses of the level.
    used: u64,
}

/// The regions of one level in the order in which they go.
#[derive(Debug)]
pub struct EvictionQueue {
    policy: EvictionPolicy,
    ranks: HashMap<RegionKey, Rank>,
    order: BTreeMap<Rank, RegionKey>,
    uses: u64,
    /// The value of what went last (L of GreedyDual-Size): what is used now is worth that much more, so that what has not
    /// been used for long is overtaken, whatever it cost.
    inflation: f64,
}

impl EvictionQueue {
    /// Without any region.
    #[must_use]
    pub fn new(policy: EvictionPolicy) -> Self {
        Self { policy, ranks: HashMap::new(), order: BTreeMap::new(), uses: 0, inflation: 0.0 }
    }

    /// Enters a region that is stored or read now. It takes `bytes`, and `seconds` to have again; what cannot be had again
    /// takes [`f64::INFINITY`], and goes last.
    pub fn touch(&mut self, key: RegionKey, bytes: u64, seconds: f64) {
        self.uses += 1;
        let value = match self.policy {
            // Infinite values would make all later ones infinite; these are pinned instead.
            EvictionPolicy::CostBenefit if seconds.is_finite() => {
                self.inflation + seconds.max(0.0) / bytes.max(1) as f64
            }
            _ => 0.0,
        };
        let rank = Rank { is_pinned: seconds == f64::INFINITY, value: value.to_bits(), used: self.uses };
        if let Some(before) = self.ranks.insert(key, rank) {
            self.order.remove(&before);
        }
        self.order.insert(rank, key);
    }

    /// Strikes a region out that is there no more, and says whether it was.
    pub fn forget(&mut self, key: RegionKey) -> bool {
        let Some(rank) = self.ranks.remove(&key) else { return false };
        self.order.remove(&rank);
        true
    }

    /// Strikes a region out that made room for others.
    pub fn evict(&mut self, key: RegionKey) {
        if let Some(rank) = self.ranks.get(&key) {
            self.inflation = self.inflation.max(f64::from_bits(rank.value));
        }
        self.forget(key);
    }

    /// The one to go first of those that `may` go; with `is_pinned`, pinned ones come after all others.
    pub fn victim(&self, is_pinned: bool, may: impl Fn(RegionKey) -> bool) -> Option<RegionKey> {
        if self.policy == EvictionPolicy::None {
            return None;
        }
        let ranked = self.order.iter().take_while(|(rank, _)| is_pinned || !rank.is_pinned);
        ranked.map(|(_, key)| *key).find(|key| may(*key))
    }

    /// Whether a region is there.
    #[must_use]
    pub fn contains(&self, key: RegionKey) -> bool {
        self.ranks.contains_key(&key)
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ranks.len()
    }

    /// Whether there is none.
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

    fn ranking(policy: EvictionPolicy, uses: &[(u8, u64, f64)]) -> EvictionQueue {
        let mut ranking = EvictionQueue::new(policy);
        uses.iter().for_each(|(name, bytes, seconds)| ranking.touch(key(*name), *bytes, *seconds));
        ranking
    }

    #[test]
    fn each_policy_has_its_order() {
        let uses = [(1, 100, 5.0), (2, 10, 0.1), (3, 1000, 1.0), (1, 100, 5.0), (4, 10, f64::INFINITY)];
        assert_eq!(order(ranking(EvictionPolicy::Lru, &uses)), [2, 3, 1, 4]);
        // Seconds a byte: 0.05, 0.01 and 0.001.
        assert_eq!(order(ranking(EvictionPolicy::CostBenefit, &uses)), [3, 2, 1, 4]);
        assert_eq!(order(ranking(EvictionPolicy::None, &uses)), []);
    }

    #[test]
    fn what_cost_much_goes_when_it_is_not_used_for_long() {
        let mut held = ranking(EvictionPolicy::CostBenefit, &[(1, 1, 2.5), (2, 1, 1.0)]);
        for name in 3..10 {
            let gone = held.victim(true, |_| true).unwrap();
            held.evict(gone);
            held.touch(key(name), 1, 1.0);
            if gone == key(1) {
                // Others were worth 1 and 2 by then; when one of 3 was there, it was the least.
                assert_eq!(name, 5);
                return;
            }
        }
        panic!("it stayed");
    }

    proptest! {
        /// Against a list that is searched anew each time.
        #[test]
        fn as_a_list_that_is_searched(
            policy in prop::sample::select(vec![EvictionPolicy::Lru, EvictionPolicy::CostBenefit]),
            steps in prop::collection::vec((0..4_u8, 0..8_u8, 1..100_u64, prop::option::weighted(0.8, 0.0..10.0_f64)), 1..80),
        ) {
            let mut ranking = EvictionQueue::new(policy);
            let mut list: Vec<(u8, bool, f64)> = Vec::new(); // the one used last comes last
            let mut inflation = 0.0_f64;
            for (step, name, bytes, seconds) in steps {
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
                        ranking.touch(key(name), bytes, seconds.unwrap_or(f64::INFINITY));
                        list.retain(|one| one.0 != name);
                        let value = match (policy, seconds) {
                            (EvictionPolicy::CostBenefit, Some(seconds)) => inflation + seconds / bytes as f64,
                            _ => 0.0,
                        };
                        list.push((name, seconds.is_none(), value));
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
