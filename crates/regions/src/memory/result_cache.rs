//! In-memory cache of task results, keyed by task, with GreedyDual-Size eviction.
//!
//! A region is *in use* while a holder references it, and *idle* otherwise. Idle regions stay while they fit.
//! The first evicted ones save the least time for their bytes and have not been requested for long
//! (GreedyDual-Size, Cao and Irani 1997). Equal regions under several keys are stored once. A region computed
//! from another has that one as its *source*, and is dropped with it.
//!
//! The caller sets the capacity and derives the keys. No result depends on a region being cached.

use crate::{DataRegion, RegionKey};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

/// 256 bits that identify a task with everything its outputs depend on: equal keys mean equal outputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct TaskKey(pub [u8; 32]);

/// 256 bits that identify a region: a digest of its content or of its provenance. Equal identities mean equal bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct RegionIdentity(pub [u8; 32]);

/// A held region with its identity.
#[derive(Clone, Debug)]
pub struct CachedRegion {
    /// Its identity.
    pub identity: RegionIdentity,
    /// The region.
    pub region: Arc<DataRegion>,
}

/// Whether a region already had or still has other holders. Memory accounting counts a region once, for any
/// number of holders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefState {
    /// No other holder.
    First,
    /// At least one other holder.
    Further,
}

#[derive(Debug)]
struct Entry {
    region: Arc<DataRegion>,
    holders: usize,
    /// Tasks that have it among their outputs.
    keys: Vec<TaskKey>,
    /// Seconds of the most expensive of those tasks.
    seconds: f64,
    /// Its value, set when it becomes idle.
    worth: Worth,
    source: Option<RegionKey>,
    /// Whether its source is gone. The region is then dropped at its last release.
    is_last: bool,
}

/// Value of an idle region. Ordered as numbers, never NaN.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Worth(f64);

impl Eq for Worth {}

impl Ord for Worth {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0)
    }
}

impl PartialOrd for Worth {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

/// Outputs of a task.
#[derive(Debug)]
struct Outputs {
    /// Identity of each output. `None` if the output was not wanted when the task ran, or has been dropped.
    identities: Vec<Option<RegionIdentity>>,
    /// Origin as passed to [`ResultCache::insert`].
    origin: TaskKey,
}

/// An evicted region that may still be wanted.
#[derive(Clone, Debug)]
pub struct EvictedResult {
    /// Its identity.
    pub identity: RegionIdentity,
    /// The region.
    pub region: Arc<DataRegion>,
    /// Seconds of the most expensive task that has it among its outputs.
    pub seconds: f64,
    /// Its source, if it has one.
    pub source: Option<RegionKey>,
    /// Those tasks: key, origin, and cached outputs.
    pub tasks: Vec<(TaskKey, TaskKey, Vec<Option<RegionIdentity>>)>,
}

/// Outputs found in the cache or inserted, each with its [`RefState`].
pub type AcquiredOutputs = Vec<Option<(CachedRegion, RefState)>>;

/// In-memory cache of task results.
#[derive(Debug, Default)]
pub struct ResultCache {
    regions: HashMap<RegionIdentity, Entry>,
    /// Outputs by task.
    tasks: HashMap<TaskKey, Outputs>,
    /// Idle regions in eviction order.
    idle: BTreeSet<(Worth, RegionIdentity)>,
    idle_bytes: u64,
    /// The value of the last evicted region, added to later values (L of GreedyDual-Size).
    inflation: f64,
    by_source: HashMap<RegionKey, Vec<RegionIdentity>>,
}

impl ResultCache {
    /// Returns the outputs of a task, if all wanted ones are cached, and the origin they were inserted with.
    /// The caller holds them until [`release`](Self::release).
    pub fn acquire(&mut self, key: &TaskKey, wanted: &[bool]) -> Option<(AcquiredOutputs, TaskKey)> {
        let Outputs { identities: outputs, origin } = self.tasks.get(key)?;
        // Copied, since `hold` borrows the whole cache.
        let origin = *origin;
        let is_here = |(wanted, output): (&bool, &Option<RegionIdentity>)| !wanted || output.is_some();
        if outputs.len() != wanted.len() || !wanted.iter().zip(outputs).all(is_here) {
            return None;
        }
        let outputs: Vec<Option<RegionIdentity>> =
            wanted.iter().zip(outputs).map(|(wanted, output)| output.filter(|_| *wanted)).collect();
        Some((outputs.into_iter().map(|output| self.hold(output?)).collect(), origin))
    }

    /// Inserts the outputs of a task with its run time. The caller holds the returned regions: an equal
    /// region already cached replaces the given one. `origin` is returned by [`acquire`](Self::acquire).
    pub fn insert(
        &mut self,
        key: TaskKey,
        origin: TaskKey,
        source: Option<RegionKey>,
        outputs: Vec<Option<CachedRegion>>,
        seconds: f64,
    ) -> AcquiredOutputs {
        let identities: Vec<Option<RegionIdentity>> =
            outputs.iter().map(|output| output.as_ref().map(|output| output.identity)).collect();
        let known = self
            .tasks
            .entry(key)
            .or_insert_with(|| Outputs { identities: vec![None; identities.len()], origin });
        // Outputs fetched from another worker arrive one by one.
        known.origin = origin;
        known.identities.resize(identities.len(), None);
        known.identities.iter_mut().zip(identities).for_each(|(known, new)| *known = new.or(*known));
        let put = outputs.into_iter().map(|output| {
            let CachedRegion { identity, region } = output?;
            let entry = self.regions.entry(identity).or_insert_with(|| Entry {
                region,
                holders: 0,
                keys: Vec::new(),
                seconds: 0.0,
                worth: Worth(f64::NEG_INFINITY),
                source,
                is_last: false,
            });
            // Only with the first key: each further task with this output would list the region again.
            if entry.keys.is_empty()
                && let Some(source) = source
            {
                self.by_source.entry(source).or_default().push(identity);
            }
            if !entry.keys.contains(&key) {
                entry.keys.push(key);
            }
            entry.seconds = entry.seconds.max(seconds);
            self.hold(identity)
        });
        put.collect()
    }

    /// Adds a holder to a cached region.
    fn hold(&mut self, identity: RegionIdentity) -> Option<(CachedRegion, RefState)> {
        let entry = self.regions.get_mut(&identity)?;
        entry.holders += 1;
        let bytes = entry.region.bytes();
        if self.idle.remove(&(entry.worth, identity)) {
            assert!(entry.holders == 1, "an idle result had {} holders", entry.holders - 1);
            self.subtract_idle(bytes);
        }
        let entry = self.regions.get(&identity)?;
        let holders = if entry.holders == 1 { RefState::First } else { RefState::Further };
        Some((CachedRegion { identity, region: Arc::clone(&entry.region) }, holders))
    }

    /// Removes a holder. Returns whether the region has others. A region without holders is idle.
    pub fn release(&mut self, identity: &RegionIdentity) -> RefState {
        let entry = self.regions.get_mut(identity);
        assert!(entry.is_some(), "a result is released that is not in the cache: {identity:?}");
        let Some(entry) = entry else { return RefState::First };
        assert!(entry.holders > 0, "a result without a holder is released: {identity:?}");
        entry.holders -= 1;
        if entry.holders > 0 {
            return RefState::Further;
        }
        if entry.is_last {
            self.remove(identity);
            return RefState::First;
        }
        let bytes = entry.region.bytes();
        #[expect(clippy::cast_precision_loss, reason = "a ratio")]
        let density = entry.seconds / bytes.max(1) as f64;
        entry.worth = Worth(self.inflation + density);
        let is_new = self.idle.insert((entry.worth, *identity));
        assert!(is_new, "a result becomes idle twice: {identity:?}");
        self.idle_bytes += bytes;
        RefState::First
    }

    /// Returns the bytes of idle regions.
    #[must_use]
    pub fn idle_bytes(&self) -> u64 {
        self.idle_bytes
    }

    /// Evicts idle regions until at most `bytes` of them are left. Returns the evicted regions.
    pub fn shrink_to(&mut self, bytes: u64) -> Vec<EvictedResult> {
        let mut all = Vec::new();
        while self.idle_bytes > bytes {
            let Some((worth, identity)) = self.idle.pop_first() else { break };
            self.inflation = worth.0;
            let entry = self.regions.get(&identity);
            assert!(entry.is_some(), "an idle result is not in the cache: {identity:?}");
            let Some(entry) = entry else { continue };
            assert!(entry.holders == 0, "a result with {} holders is evicted: {identity:?}", entry.holders);
            // Collected before the removal, which forgets these tasks.
            let task = |key: &TaskKey| {
                let Outputs { identities, origin } = self.tasks.get(key)?;
                Some((*key, *origin, identities.clone()))
            };
            let tasks = entry.keys.iter().filter_map(task).collect();
            let (region, seconds, source) = (Arc::clone(&entry.region), entry.seconds, entry.source);
            all.push(EvictedResult { identity, region, seconds, source, tasks });
            if let Some(bytes) = self.remove(&identity) {
                self.subtract_idle(bytes);
            }
        }
        assert!(
            !self.idle.is_empty() || self.idle_bytes == 0,
            "no result is idle, {} bytes are",
            self.idle_bytes
        );
        all
    }

    /// Returns the tasks with a cached output that was computed from this region.
    pub fn tasks_of(&self, source: &RegionKey) -> impl Iterator<Item = &TaskKey> {
        let made = self.by_source.get(source).into_iter().flatten();
        made.filter_map(|identity| self.regions.get(identity)).flat_map(|entry| &entry.keys)
    }

    /// Returns a cached region, idle or in use.
    #[must_use]
    pub fn region(&self, identity: &RegionIdentity) -> Option<&Arc<DataRegion>> {
        self.regions.get(identity).map(|entry| &entry.region)
    }

    /// Marks a source as gone: regions computed from it are dropped once they have no holder.
    pub fn invalidate(&mut self, source: &RegionKey) {
        for identity in self.by_source.remove(source).unwrap_or_default() {
            // An evicted region stays in the list of its source.
            let Some(entry) = self.regions.get_mut(&identity) else { continue };
            if self.idle.remove(&(entry.worth, identity)) {
                let bytes = entry.region.bytes();
                self.subtract_idle(bytes);
                self.remove(&identity);
            } else {
                assert!(entry.holders > 0, "a result is neither idle nor in use: {identity:?}");
                entry.is_last = true;
            }
        }
    }

    fn subtract_idle(&mut self, bytes: u64) {
        let idle_bytes = self.idle_bytes;
        assert!(idle_bytes >= bytes, "a result of {bytes} bytes leaves the idle ones, of {idle_bytes}");
        self.idle_bytes -= bytes;
    }

    /// Removes a region that is not in the idle set. Returns its bytes.
    fn remove(&mut self, identity: &RegionIdentity) -> Option<u64> {
        let entry = self.regions.remove(identity)?;
        assert!(entry.holders == 0, "a result with {} holders is removed: {identity:?}", entry.holders);
        for key in entry.keys {
            self.forget(&key, identity);
        }
        Some(entry.region.bytes())
    }

    /// Forgets an output of a task. A task stays known while any output is cached.
    fn forget(&mut self, key: &TaskKey, identity: &RegionIdentity) {
        let Some(Outputs { identities, .. }) = self.tasks.get_mut(key) else { return };
        for output in identities.iter_mut() {
            *output = output.filter(|output| output != identity);
        }
        if identities.iter().all(Option::is_none) {
            self.tasks.remove(key);
        }
    }

    /// Returns the number of regions, in use or idle.
    #[must_use]
    pub fn len(&self) -> usize {
        self.regions.len()
    }

    /// Returns whether the cache is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.regions.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Raster;
    use proptest::prelude::*;

    fn region(value: u8, bytes: u32) -> CachedRegion {
        let mut identity = [value; 32];
        identity[1] = 0;
        let region = Arc::new(DataRegion::Mask(Raster::filled(bytes, 1, 1, value).unwrap()));
        CachedRegion { identity: RegionIdentity(identity), region }
    }

    fn key(value: u8) -> TaskKey {
        TaskKey([value; 32])
    }

    #[test]
    fn equal_regions_of_two_tasks_are_one() {
        let mut shelf = ResultCache::default();
        let first = shelf.insert(key(1), key(0), None, vec![Some(region(7, 10))], 1.0);
        let second = shelf.insert(key(2), key(0), None, vec![Some(region(7, 10))], 1.0);
        let (first, second) = (first[0].clone().unwrap(), second[0].clone().unwrap());
        assert!(Arc::ptr_eq(&first.0.region, &second.0.region));
        assert_eq!((first.1, second.1), (RefState::First, RefState::Further));
        assert_eq!(shelf.release(&first.0.identity), RefState::Further);
        assert_eq!(shelf.idle_bytes(), 0);
        assert_eq!(shelf.release(&first.0.identity), RefState::First);
        assert_eq!((shelf.idle_bytes(), shelf.len()), (10, 1));
    }

    #[test]
    fn task_is_acquired_only_with_all_requested_outputs() {
        let mut shelf = ResultCache::default();
        assert!(shelf.acquire(&key(1), &[true]).is_none());
        shelf.insert(key(1), key(0), None, vec![Some(region(1, 5)), None], 1.0);
        assert!(shelf.acquire(&key(1), &[true, true]).is_none());
        let (found, origin) = shelf.acquire(&key(1), &[true, false]).unwrap();
        assert_eq!(origin, key(0));
        assert!(found[0].is_some() && found[1].is_none());
        shelf.release(&region(1, 5).identity);
        shelf.release(&region(1, 5).identity);
        shelf.shrink_to(4);
        assert!(shelf.is_empty());
        assert!(shelf.acquire(&key(1), &[true, false]).is_none());
    }

    #[test]
    fn cheapest_result_is_evicted_first_and_values_age() {
        let mut shelf = ResultCache::default();
        for (value, seconds) in [(1, 9.0), (2, 1.0), (3, 5.0)] {
            shelf.insert(key(value), key(0), None, vec![Some(region(value, 10))], seconds);
            shelf.release(&region(value, 10).identity);
        }
        shelf.shrink_to(20);
        assert!(shelf.acquire(&key(2), &[true]).is_none());
        // A region inserted after evictions is worth its saved time plus the value of the last evicted one.
        for value in 4..20 {
            shelf.insert(key(value), key(0), None, vec![Some(region(value, 10))], 2.0);
            shelf.release(&region(value, 10).identity);
            shelf.shrink_to(20);
        }
        assert!(shelf.acquire(&key(1), &[true]).is_none());
    }

    #[test]
    fn invalidated_region_drops_its_derived_results() {
        let mut shelf = ResultCache::default();
        let source = RegionKey([1; 16]);
        for value in [1, 2] {
            shelf.insert(key(value), key(0), Some(source), vec![Some(region(value, 10))], 1.0);
        }
        shelf.insert(key(3), key(0), None, vec![Some(region(3, 10))], 1.0);
        shelf.release(&region(1, 10).identity);
        shelf.release(&region(3, 10).identity);
        shelf.invalidate(&source);
        assert_eq!((shelf.idle_bytes(), shelf.len()), (10, 2));
        shelf.release(&region(2, 10).identity);
        assert_eq!((shelf.idle_bytes(), shelf.len()), (10, 1));
    }

    proptest! {
        /// Byte counts equal a recount, held regions are never evicted, and keys lead to their regions.
        #[test]
        fn byte_counts_equal_a_recount(steps in prop::collection::vec((0u8..6, 0u8..8, 0u8..6, 0u64..60), 1..200)) {
            let mut shelf = ResultCache::default();
            let mut held: Vec<RegionIdentity> = Vec::new();
            for (step, task, value, bytes) in steps {
                match step {
                    0 => {
                        let size = u32::from(value) + 1;
                        let put = shelf.insert(key(task), key(0), Some(RegionKey([task % 3; 16])), vec![Some(region(value, size)), None], f64::from(task));
                        held.push(put[0].as_ref().unwrap().0.identity);
                    }
                    1 => {
                        if let Some((found, _)) = shelf.acquire(&key(task), &[true, false]) {
                            let (shelved, _) = found[0].clone().unwrap();
                            prop_assert_eq!(shelved.region.bytes(), u64::from(shelved.identity.0[0]) + 1);
                            held.push(shelved.identity);
                        }
                    }
                    2 => {
                        if let Some(identity) = held.pop() {
                            let others = held.contains(&identity);
                            prop_assert_eq!(shelf.release(&identity) == RefState::Further, others);
                        }
                    }
                    3 => {
                        let source = RegionKey([task % 3; 16]);
                        shelf.invalidate(&source);
                        prop_assert!(!shelf.by_source.contains_key(&source));
                    }
                    _ => drop(shelf.shrink_to(bytes)),
                }
                let idle = shelf.regions.values().filter(|entry| entry.holders == 0);
                let idle_bytes: u64 = idle.map(|entry| entry.region.bytes()).sum();
                prop_assert_eq!(shelf.idle_bytes(), idle_bytes);
                if step > 3 {
                    prop_assert!(idle_bytes <= bytes);
                }
                prop_assert!(held.iter().all(|identity| shelf.regions.contains_key(identity)));
                for Outputs { identities, .. } in shelf.tasks.values() {
                    prop_assert!(identities.iter().any(Option::is_some));
                    prop_assert!(identities.iter().flatten().all(|identity| shelf.regions.contains_key(identity)));
                }
            }
        }
    }
}
