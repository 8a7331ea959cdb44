//! Regions of a study: the instances that use each, the one that stores it, and the workers that hold copies.
//!
//! Invariants: a region is in `users` exactly while an open instance has yet to read or store it, counted once for
//! each such instance. Only such regions have holders, and none has an empty set of them. `producers` never changes.

use crate::message::RemoteRegion;
use crate::plan::{ExecutionPlan, PlannedInstance};
use crate::storage::{ReadSource, RemoteCopy};
use crate::{InstanceId, WorkerId};
use pleach_regions::RegionKey;
use pleach_workflow::TierKind;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Workers that hold a region, and the kind of the spill tier of each copy that is not in memory.
pub(crate) type Holders = BTreeMap<WorkerId, Option<TierKind>>;

/// Maximum of copies on other workers whose tiers are compared: a region that more workers hold is in the memory of one of them,
/// and each grant compares.
const MAX_COMPARED_COPIES: usize = 16;

/// Readers, producers and holders of all regions with readers.
#[derive(Debug)]
pub(crate) struct Regions {
    /// Instances that have yet to read or store each region. A region whose readers have all failed
    /// with another parent is released once it is stored, not before.
    users: HashMap<RegionKey, usize>,
    /// The instance that stores each region with readers.
    producers: HashMap<RegionKey, InstanceId>,
    /// Workers that hold each stored region, while it is referenced.
    holders: HashMap<RegionKey, Holders>,
}

impl Regions {
    /// Counts the users of a valid plan: those of its instances that are `open`.
    pub(crate) fn of(plan: &ExecutionPlan, open: &[bool]) -> Self {
        let mut users: HashMap<RegionKey, usize> = HashMap::new();
        for (instance, _) in plan.instances.iter().zip(open).filter(|(_, open)| **open) {
            instance.used().into_iter().for_each(|key| *users.entry(key).or_default() += 1);
        }
        let stored = |(id, plan): (InstanceId, PlannedInstance<'_>)| {
            let stored = plan.outputs.iter().filter(|output| output.stored);
            stored.map(|output| (output.key, id)).collect::<Vec<_>>()
        };
        let producers = plan.instances.enumerate().flat_map(stored).collect();
        Self { users, producers, holders: HashMap::new() }
    }

    /// Returns whether an open instance has yet to read or store a region.
    pub(crate) fn is_used(&self, key: RegionKey) -> bool {
        self.users.contains_key(&key)
    }

    /// Returns whether no region is used any more.
    pub(crate) fn is_empty(&self) -> bool {
        self.users.is_empty() && self.holders.is_empty()
    }

    pub(crate) fn producer(&self, key: RegionKey) -> Option<InstanceId> {
        self.producers.get(&key).copied()
    }

    /// Returns the holders of a region. At least one.
    pub(crate) fn holders(&self, key: RegionKey) -> Option<&Holders> {
        self.holders.get(&key)
    }

    pub(crate) fn is_stored(&self, key: RegionKey) -> bool {
        self.holders.contains_key(&key)
    }

    /// Returns the workers that hold regions, once for each region.
    pub(crate) fn holding_workers(&self) -> impl Iterator<Item = WorkerId> {
        self.holders.values().flat_map(BTreeMap::keys).copied().filter(|holder| *holder != WorkerId::SHARED)
    }

    /// Returns the copy of a stored region that a worker would read. `None` if no copy is known, as of regions from files.
    pub(crate) fn source(&self, key: RegionKey, worker: WorkerId) -> Option<ReadSource> {
        let holders = self.holders.get(&key)?;
        Some(match holders.get(&worker) {
            Some(tier) => ReadSource::Local(*tier),
            None => {
                let shared = holders.contains_key(&WorkerId::SHARED);
                let others = holders.iter().filter(|(holder, _)| **holder != WorkerId::SHARED);
                // Kinds are in order of speed, after memory.
                let fastest = others.take(MAX_COMPARED_COPIES).map(|(_, tier)| *tier).min();
                ReadSource::Remote { worker: fastest.map(|tier| RemoteCopy { tier }), shared }
            }
        })
    }

    /// Records the tier of a holder's copy, or `None` for memory. Ignores workers that do not hold the region.
    pub(crate) fn set_tier(&mut self, worker: WorkerId, key: RegionKey, tier: Option<TierKind>) {
        if let Some(known) = self.holders.get_mut(&key).and_then(|holders| holders.get_mut(&worker)) {
            *known = tier;
        }
    }

    /// Returns the locations of those regions that a worker must transfer to read them.
    pub(crate) fn locate(&self, keys: &BTreeSet<RegionKey>, worker: WorkerId) -> Vec<RemoteRegion> {
        let remote = keys.iter().filter_map(|&key| {
            let holders = self.holders.get(&key).filter(|holders| !holders.contains_key(&worker))?;
            let workers = holders.keys().copied().filter(|holder| *holder != WorkerId::SHARED).collect();
            Some(RemoteRegion { key, workers, shared: holders.contains_key(&WorkerId::SHARED) })
        });
        remote.collect()
    }

    /// Adds the uses of a reopened instance.
    pub(crate) fn add_user(&mut self, keys: &[RegionKey]) {
        keys.iter().for_each(|key| *self.users.entry(*key).or_default() += 1);
    }

    /// Removes the uses of an instance that is done or failed. Returns the regions without a further user, in the
    /// order of `keys`. They have no holders from now on.
    pub(crate) fn release(&mut self, instance: InstanceId, keys: &[RegionKey]) -> Vec<RegionKey> {
        let mut released = Vec::new();
        for key in keys {
            let users = self.users.get_mut(key);
            assert!(users.is_some(), "{instance} releases {key}, which has no user");
            let Some(users) = users else { continue };
            assert!(*users > 0, "{instance} releases {key}, which is counted without a user");
            *users -= 1;
            if *users == 0 {
                self.users.remove(key);
                self.holders.remove(key);
                released.push(*key);
            }
        }
        released
    }

    /// Records that a worker stores a region. Regions without a further user or without a producer get no holder.
    /// Returns whether it counts.
    pub(crate) fn add_holder(&mut self, worker: WorkerId, key: RegionKey) -> bool {
        let counts = self.is_used(key) && self.producers.contains_key(&key);
        if counts {
            self.holders.entry(key).or_default().insert(worker, None);
        }
        counts
    }

    /// Records that a worker has fetched a region from a peer. Regions that no peer holds by now get no holder.
    pub(crate) fn add_copy(&mut self, worker: WorkerId, key: RegionKey) {
        if let Some(holders) = self.holders.get_mut(&key) {
            assert!(!holders.is_empty(), "{worker} has copied {key}, which has an empty set of holders");
            assert!(self.users.contains_key(&key), "{worker} has copied {key}, which is held without a user");
            holders.insert(worker, None);
        }
    }

    /// Returns whether a used region is an output of this instance.
    pub(crate) fn is_output(&self, key: RegionKey, instance: InstanceId) -> bool {
        self.is_used(key) && self.producer(key) == Some(instance)
    }

    /// Returns whether another worker holds a region.
    pub(crate) fn is_stored_elsewhere(&self, key: RegionKey, worker: WorkerId) -> bool {
        self.holders.get(&key).is_some_and(|holders| holders.keys().any(|holder| *holder != worker))
    }

    /// Returns the regions whose sole copy is on a worker, ascending.
    pub(crate) fn sole_copies(&self, worker: WorkerId) -> Vec<RegionKey> {
        let sole =
            self.holders.iter().filter(|(_, holders)| holders.len() == 1 && holders.contains_key(&worker));
        let mut keys: Vec<RegionKey> = sole.map(|(key, _)| *key).collect();
        // The order of a hash map differs between runs, and a replay must repeat each message.
        keys.sort_unstable();
        keys
    }

    /// Removes a worker from the holders of a region. Returns whether it was one.
    pub(crate) fn remove_holder(&mut self, worker: WorkerId, key: RegionKey) -> bool {
        let Some(holders) = self.holders.get_mut(&key) else { return false };
        let was_holder = holders.remove(&worker).is_some();
        if holders.is_empty() {
            self.holders.remove(&key);
        }
        was_holder
    }

    /// Removes the holders of a region that were sent to a worker, which could not fetch it from them. Without a sent
    /// location, the worker held it itself, or the locations are unknown after a reattach: all holders are removed
    /// then. Returns whether the region is lost.
    pub(crate) fn remove_sent_holders(&mut self, key: RegionKey, sent: Option<&RemoteRegion>) -> bool {
        let Some(holders) = self.holders.get_mut(&key) else { return false };
        match sent {
            Some(sent) => holders.retain(|holder, _| match *holder {
                WorkerId::SHARED => !sent.shared,
                holder => !sent.workers.contains(&holder),
            }),
            None => holders.clear(),
        }
        let is_lost = holders.is_empty();
        if is_lost {
            self.holders.remove(&key);
        }
        is_lost
    }

    /// Removes a worker from all holders. Returns the regions whose sole copy it had.
    pub(crate) fn remove_worker(&mut self, worker: WorkerId) -> Vec<RegionKey> {
        let mut lost = Vec::new();
        self.holders.retain(|key, holders| {
            if holders.remove(&worker).is_some() && holders.is_empty() {
                lost.push(*key);
            }
            !holders.is_empty()
        });
        lost
    }

    /// Removes all holders. Returns the regions that had some, ascending.
    pub(crate) fn remove_holders(&mut self) -> Vec<RegionKey> {
        debug_assert!(
            self.holders.iter().all(|(key, holders)| !holders.is_empty() && self.is_used(*key)),
            "a region without a user or with an empty set of holders is held: {:?}",
            self.holders
        );
        let mut keys: Vec<RegionKey> = std::mem::take(&mut self.holders).into_keys().collect();
        keys.sort_unstable();
        keys
    }

    /// Compares users with those of the open instances, holders with users, and holders with done producers.
    pub(crate) fn check<'a>(
        &self,
        open: impl Iterator<Item = PlannedInstance<'a>>,
        is_done: impl Fn(InstanceId) -> bool,
    ) -> Result<(), String> {
        let mut users = HashMap::new();
        for key in open.flat_map(|instance| instance.used()) {
            *users.entry(key).or_insert(0) += 1;
        }
        for (key, holders) in &self.holders {
            if holders.is_empty() || !users.contains_key(key) {
                return Err(format!("{key} is held by {holders:?}, users of regions are {users:?}"));
            }
        }
        for (key, producer) in &self.producers {
            if is_done(*producer) && users.contains_key(key) && !self.holders.contains_key(key) {
                return Err(format!("{key} will be read and has no holder, but {producer} is done"));
            }
        }
        if users != self.users {
            return Err(format!("users of regions are {users:?}, counted are {:?}", self.users));
        }
        Ok(())
    }
}
