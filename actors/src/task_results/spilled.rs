//! Spilled task results: the task and the root input of each.
//!
//! The tiers hold the regions. The loss of a region is detected when it is read. Then its task runs again.

use crate::directory::result_key;
use pleach_regions::{self as regions, DataRegion, RegionIdentity, RegionKey, ResultCache, TaskKey};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// Location of an output.
#[derive(Clone, Debug)]
pub(crate) enum OutputLocation {
    /// In the result cache.
    Here(Arc<DataRegion>),
    /// In a spill tier.
    Below(RegionKey),
}

/// Outputs of a task.
#[derive(Clone, Debug)]
pub(crate) struct SpilledTask {
    /// Wanted outputs.
    pub(crate) outputs: Vec<Option<(RegionIdentity, OutputLocation)>>,
    /// Key by provenance of the task that ran.
    pub(crate) origin: TaskKey,
}

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

    pub(super) fn find(&self, key: &TaskKey, wanted: &[bool], shelf: &ResultCache) -> Option<SpilledTask> {
        let (origin, outputs) = self.tasks.get(key)?;
        if outputs.len() != wanted.len() {
            return None;
        }
        let place = |identity: RegionIdentity| match shelf.region(&identity) {
            Some(region) => Some((identity, OutputLocation::Here(Arc::clone(region)))),
            None => self
                .regions
                .contains(&identity)
                .then(|| (identity, OutputLocation::Below(self::key(&identity)))),
        };
        let mut found = Vec::with_capacity(wanted.len());
        for (output, wanted) in outputs.iter().zip(wanted) {
            found.push(if *wanted { Some(place((*output)?)?) } else { None });
        }
        Some(SpilledTask { outputs: found, origin: *origin })
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
