//! In-memory cache of task results, keyed by task, with GreedyDual-Size eviction.
//!
//! A region is *in use* while a holder references it, and *idle* otherwise. Idle regions stay while they fit.
//! The first evicted ones save the least time for their bytes and have not been requested for long
//! (GreedyDual-Size, Cao and Irani 1997). Equal regions under several keys are stored once. A region computed
//! from another has that one as its *source*, and is dropped with it.
//!
//! Idle regions beyond a limit are encoded, the longest idle first (`encoding`). An encoded region counts with its encoded
//! bytes, and the task that needs it decodes it. It keeps its encoded form while it is in use.
//!
//! The caller sets the capacity, derives the keys, and encodes on threads of its own. No result depends on a region being
//! cached.

mod encoding;
mod entry;
mod idle;

pub use encoding::RegionToEncode;
pub use entry::CachedForm;

use crate::{DataRegion, RegionIdentity, RegionKey, TaskKey};
use entry::Entry;
use idle::IdleRegions;
use std::collections::HashMap;
use std::sync::Arc;

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
    /// The region, in the form that it had.
    pub form: CachedForm,
    /// Seconds of the most expensive task that has it among its outputs.
    pub seconds: f64,
    /// Those tasks.
    pub tasks: Vec<EvictedTask>,
}

/// A task with an evicted region among its outputs.
#[derive(Clone, Debug)]
pub struct EvictedTask {
    /// Its key.
    pub key: TaskKey,
    /// Its source, if it has one.
    pub source: Option<RegionKey>,
    /// Origin as passed to [`ResultCache::insert`].
    pub origin: TaskKey,
    /// Its outputs that were cached.
    pub outputs: Vec<Option<RegionIdentity>>,
}

/// Outputs found in the cache or inserted, each with its [`RefState`].
pub type AcquiredOutputs = Vec<Option<(CachedRegion, RefState)>>;

/// In-memory cache of task results.
#[derive(Debug, Default)]
pub struct ResultCache {
    regions: HashMap<RegionIdentity, Entry>,
    /// Outputs by task.
    tasks: HashMap<TaskKey, Outputs>,
    idle: IdleRegions,
    /// Number of releases.
    releases: u64,
    /// Bytes of regions that other threads encode.
    encoding_bytes: u64,
    by_source: HashMap<RegionKey, Vec<RegionIdentity>>,
}

impl ResultCache {
    /// Returns the outputs of a task, if all wanted ones are cached and decoded, and the origin they were inserted with.
    /// The caller holds them until [`release`](Self::release).
    pub fn acquire(&mut self, key: &TaskKey, wanted: &[bool]) -> Option<(AcquiredOutputs, TaskKey)> {
        let Outputs { identities: outputs, origin } = self.tasks.get(key)?;
        // Copied, since `hold` borrows the whole cache.
        let origin = *origin;
        let is_decoded = |identity: &RegionIdentity| {
            self.regions.get(identity).is_some_and(|entry| entry.decoded.is_some())
        };
        let is_here = |(wanted, output): (&bool, &Option<RegionIdentity>)| {
            !wanted || output.as_ref().is_some_and(is_decoded)
        };
        if outputs.len() != wanted.len() || !wanted.iter().zip(outputs).all(is_here) {
            return None;
        }
        let outputs: Vec<Option<RegionIdentity>> =
            wanted.iter().zip(outputs).map(|(wanted, output)| output.filter(|_| *wanted)).collect();
        Some((outputs.into_iter().map(|output| self.hold(output?, None)).collect(), origin))
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
            let new = || {
                let mut entry = Entry::new(Arc::clone(&region));
                self.idle.add(identity, &mut entry);
                entry
            };
            let entry = self.regions.entry(identity).or_insert_with(new);
            if !entry.keys.iter().any(|(known, _)| *known == key) {
                // Only with the first task of a source: each further one with this output would list the region again.
                let is_new = entry.keys.iter().all(|(_, known)| *known != source);
                if let Some(source) = source.filter(|_| is_new) {
                    self.by_source.entry(source).or_default().push(identity);
                }
                entry.keys.push((key, source));
                entry.is_last = false;
            }
            entry.seconds = entry.seconds.max(seconds);
            self.hold(identity, Some(region))
        });
        put.collect()
    }

    /// Adds a holder to a cached region. `given` is the region, for one that is only encoded.
    fn hold(
        &mut self,
        identity: RegionIdentity,
        given: Option<Arc<DataRegion>>,
    ) -> Option<(CachedRegion, RefState)> {
        let entry = self.regions.get_mut(&identity)?;
        self.idle.remove(identity, entry);
        entry.decoded = entry.decoded.take().or(given);
        entry.holders += 1;
        self.idle.add(identity, entry);
        let region = entry.decoded.as_ref();
        assert!(region.is_some(), "an encoded result has a holder: {identity:?}");
        let holders = if entry.holders == 1 { RefState::First } else { RefState::Further };
        Some((CachedRegion { identity, region: Arc::clone(region?) }, holders))
    }

    /// Removes a holder. Returns whether the region has others. A region without holders is idle.
    pub fn release(&mut self, identity: &RegionIdentity) -> RefState {
        let entry = self.regions.get_mut(identity);
        assert!(entry.is_some(), "a result is released that is not in the cache: {identity:?}");
        let Some(entry) = entry else { return RefState::First };
        assert!(entry.holders > 0, "a result without a holder is released: {identity:?}");
        self.idle.remove(*identity, entry);
        entry.holders -= 1;
        self.releases += 1;
        entry.released = self.releases;
        self.idle.add(*identity, entry);
        if entry.holders > 0 {
            return RefState::Further;
        }
        if entry.is_last {
            self.remove(identity);
        }
        RefState::First
    }

    /// Returns the bytes that the cache holds besides the regions in use: idle regions, and the encoded forms of all.
    #[must_use]
    pub fn idle_bytes(&self) -> u64 {
        self.idle.bytes()
    }

    /// Evicts idle regions until at most `bytes` of [`idle_bytes`](Self::idle_bytes) are left. Decoded forms of encoded
    /// regions are dropped first. Returns the evicted regions.
    pub fn shrink_to(&mut self, bytes: u64) -> Vec<EvictedResult> {
        let mut all = Vec::new();
        while self.idle.bytes() > bytes {
            if let Some(identity) = self.idle.oldest_copy() {
                self.drop_decoded(identity);
                continue;
            }
            let Some(identity) = self.idle.next_evicted() else {
                let Some(identity) = self.idle.any_spare() else { break };
                self.drop_encoded(identity);
                continue;
            };
            all.extend(self.evicted(identity));
            self.remove(&identity);
        }
        assert!(self.idle.bytes() <= bytes, "no result is idle, {} bytes are", self.idle.bytes());
        all
    }

    fn evicted(&self, identity: RegionIdentity) -> Option<EvictedResult> {
        let entry = self.regions.get(&identity);
        assert!(entry.is_some(), "an idle result is not in the cache: {identity:?}");
        let entry = entry?;
        let task = |(key, source): &(TaskKey, Option<RegionKey>)| {
            let Outputs { identities, origin } = self.tasks.get(key)?;
            Some(EvictedTask { key: *key, source: *source, origin: *origin, outputs: identities.clone() })
        };
        let tasks = entry.keys.iter().filter_map(task).collect();
        let form = entry.form()?;
        Some(EvictedResult { identity, form, seconds: entry.seconds, tasks })
    }

    /// Returns the tasks with a cached output that was computed from this region.
    pub fn tasks_of(&self, source: &RegionKey) -> impl Iterator<Item = &TaskKey> {
        let made = self.by_source.get(source).into_iter().flatten();
        let tasks = made.filter_map(|identity| self.regions.get(identity)).flat_map(|entry| &entry.keys);
        tasks.filter(move |(_, of)| *of == Some(*source)).map(|(key, _)| key)
    }

    /// Returns whether a region is cached, in any form.
    #[must_use]
    pub fn contains(&self, identity: &RegionIdentity) -> bool {
        self.regions.contains_key(identity)
    }

    /// Returns the form of a cached region: decoded if it has both. `None` if it is not cached.
    #[must_use]
    pub fn form(&self, identity: &RegionIdentity) -> Option<CachedForm> {
        self.regions.get(identity).and_then(Entry::form)
    }

    /// Returns the origin of a task with a cached output, and the identities of its outputs as far as they are cached.
    #[must_use]
    pub fn outputs_of(&self, key: &TaskKey) -> Option<(TaskKey, &[Option<RegionIdentity>])> {
        self.tasks.get(key).map(|Outputs { identities, origin }| (*origin, identities.as_slice()))
    }

    /// Marks a source as gone: its tasks are forgotten, and regions without another task are dropped once they have no holder.
    pub fn invalidate(&mut self, source: &RegionKey) {
        for identity in self.by_source.remove(source).unwrap_or_default() {
            // An evicted region stays in the list of its source.
            let Some(entry) = self.regions.get_mut(&identity) else { continue };
            let gone: Vec<TaskKey> =
                entry.keys.extract_if(.., |(_, of)| *of == Some(*source)).map(|(key, _)| key).collect();
            gone.iter().for_each(|key| self.forget(key, &identity));
            let Some(entry) = self.regions.get_mut(&identity).filter(|entry| entry.keys.is_empty()) else {
                continue;
            };
            if entry.holders == 0 {
                self.remove(&identity);
            } else {
                entry.is_last = true;
            }
        }
    }

    /// Removes an idle region.
    fn remove(&mut self, identity: &RegionIdentity) {
        let Some(entry) = self.regions.remove(identity) else { return };
        assert!(entry.holders == 0, "a result with {} holders is removed: {identity:?}", entry.holders);
        self.idle.remove(*identity, &entry);
        for (key, _) in entry.keys {
            self.forget(&key, identity);
        }
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

    /// Counts the tasks with a cached output.
    #[must_use]
    pub fn task_count(&self) -> usize {
        self.tasks.len()
    }

    /// Returns whether the cache is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.regions.is_empty()
    }
}

#[cfg(test)]
mod tests;
