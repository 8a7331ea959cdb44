//! Spilled task results: the task and the root input of each.
//!
//! The tiers hold the regions. The loss of a region is detected when it is read. Then its task runs again.

use super::result_key;
use pleach_regions::{self as regions, RegionIdentity, RegionKey, TaskKey};
use std::collections::{HashMap, HashSet};

/// Index of spilled task results.
#[derive(Debug, Default)]
pub(super) struct SpilledResults {
    regions: HashSet<RegionIdentity>,
    /// Origin of each task, and the identities of its outputs if known.
    tasks: HashMap<TaskKey, (TaskKey, Vec<Option<RegionIdentity>>)>,
    by_source: HashMap<RegionKey, Vec<(RegionIdentity, Vec<TaskKey>)>>,
}

/// Returns the key for storing a spilled result.
pub(super) fn key(identity: &RegionIdentity) -> RegionKey {
    result_key(identity)
}

impl SpilledResults {
    pub(super) fn add(&mut self, fallen: regions::EvictedResult) {
        let regions::EvictedResult { identity, source, tasks, .. } = fallen;
        let keys = tasks.iter().map(|(key, _, _)| *key).collect();
        for (key, origin, outputs) in tasks {
            let (_, known) = self.tasks.entry(key).or_insert_with(|| (origin, vec![None; outputs.len()]));
            for (known, output) in known.iter_mut().zip(outputs) {
                // Each output of a task is evicted separately, and an earlier eviction may have had fewer identities.
                *known = known.or(output);
            }
        }
        if self.regions.insert(identity)
            && let Some(source) = source
        {
            self.by_source.entry(source).or_default().push((identity, keys));
        }
    }

    /// Returns the origin of a task with spilled outputs, and the identities of its outputs as far as they are known.
    pub(super) fn outputs_of(&self, key: &TaskKey) -> Option<(TaskKey, &[Option<RegionIdentity>])> {
        self.tasks.get(key).map(|(origin, outputs)| (*origin, outputs.as_slice()))
    }

    /// Returns whether a region was spilled.
    pub(super) fn contains(&self, identity: &RegionIdentity) -> bool {
        self.regions.contains(identity)
    }

    /// Returns the tasks with spilled outputs derived from a root input.
    pub(super) fn tasks_of(&self, source: &RegionKey) -> impl Iterator<Item = &TaskKey> {
        self.by_source.get(source).into_iter().flatten().flat_map(|(_, tasks)| tasks)
    }

    /// Removes the results of a root input without further use. Returns the spilled regions to remove.
    pub(super) fn discard(&mut self, source: &RegionKey) -> Vec<RegionKey> {
        let mut keys = Vec::new();
        for (identity, tasks) in self.by_source.remove(source).unwrap_or_default() {
            if self.regions.remove(&identity) {
                keys.push(key(&identity));
            }
            tasks.iter().for_each(|task| _ = self.tasks.remove(task));
        }
        keys
    }
}
