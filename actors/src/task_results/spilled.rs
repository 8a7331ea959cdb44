//! Spilled task results: the task and the root inputs of each.
//!
//! The tiers hold the regions. The loss of a region is detected when it is read. Then its task runs again.

use super::result_key;
use pleach_regions::{EvictedResult, EvictedTask, RegionIdentity, RegionKey, TaskKey};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Spilled regions of a root input, with the tasks of that input that have them among their outputs.
type RegionTasks = BTreeMap<RegionIdentity, BTreeSet<TaskKey>>;

/// Index of spilled task results.
#[derive(Debug, Default)]
pub(super) struct SpilledResults {
    /// Root inputs of each region. Tasks without one have `None`, and their regions stay.
    regions: HashMap<RegionIdentity, BTreeSet<Option<RegionKey>>>,
    /// Origin of each task, and the identities of its outputs if known.
    tasks: HashMap<TaskKey, (TaskKey, Vec<Option<RegionIdentity>>)>,
    by_source: HashMap<RegionKey, RegionTasks>,
}

/// Returns the key for storing a spilled result.
pub(super) fn key(identity: &RegionIdentity) -> RegionKey {
    result_key(identity)
}

impl SpilledResults {
    pub(super) fn add(&mut self, fallen: EvictedResult) {
        let EvictedResult { identity, tasks, .. } = fallen;
        for EvictedTask { key, source, origin, outputs } in tasks {
            let (_, known) = self.tasks.entry(key).or_insert_with(|| (origin, vec![None; outputs.len()]));
            for (known, output) in known.iter_mut().zip(outputs) {
                // Each output of a task is evicted separately, and an earlier eviction may have had fewer identities.
                *known = known.or(output);
            }
            self.regions.entry(identity).or_default().insert(source);
            if let Some(source) = source {
                self.by_source.entry(source).or_default().entry(identity).or_default().insert(key);
            }
        }
    }

    /// Returns the origin of a task with spilled outputs, and the identities of its outputs as far as they are known.
    pub(super) fn outputs_of(&self, key: &TaskKey) -> Option<(TaskKey, &[Option<RegionIdentity>])> {
        self.tasks.get(key).map(|(origin, outputs)| (*origin, outputs.as_slice()))
    }

    /// Counts the tasks with spilled outputs.
    pub(super) fn task_count(&self) -> usize {
        self.tasks.len()
    }

    /// Returns whether a region was spilled.
    pub(super) fn contains(&self, identity: &RegionIdentity) -> bool {
        self.regions.contains_key(identity)
    }

    /// Returns the tasks with spilled outputs derived from a root input.
    pub(super) fn tasks_of(&self, source: &RegionKey) -> impl Iterator<Item = &TaskKey> {
        self.by_source.get(source).into_iter().flat_map(BTreeMap::values).flatten()
    }

    /// Removes the results of a root input without further use. Returns the spilled regions to remove: those that no task of
    /// another input has.
    pub(super) fn discard(&mut self, source: &RegionKey) -> Vec<RegionKey> {
        let mut keys = Vec::new();
        for (identity, tasks) in self.by_source.remove(source).unwrap_or_default() {
            tasks.iter().for_each(|task| _ = self.tasks.remove(task));
            let Some(sources) = self.regions.get_mut(&identity) else { continue };
            sources.remove(&Some(*source));
            if sources.is_empty() {
                self.regions.remove(&identity);
                keys.push(key(&identity));
            }
        }
        keys
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pleach_regions::{CachedForm, DataRegion, Raster};
    use std::sync::Arc;

    fn task(number: u8, source: u8, output: RegionIdentity) -> EvictedTask {
        let key = TaskKey([number; 32]);
        EvictedTask { key, source: Some(RegionKey([source; 16])), origin: key, outputs: vec![Some(output)] }
    }

    fn evicted(identity: RegionIdentity, tasks: Vec<EvictedTask>) -> EvictedResult {
        let region = DataRegion::Mask(Raster::filled(1, 1, 1, 0).unwrap());
        EvictedResult { identity, form: CachedForm::Decoded(Arc::new(region)), seconds: 1.0, tasks }
    }

    #[test]
    fn equal_result_of_two_inputs_outlives_the_first() {
        let (one, other) = (RegionKey([1; 16]), RegionKey([2; 16]));
        let background = RegionIdentity([9; 32]);
        for together in [true, false] {
            let mut results = SpilledResults::default();
            let (first, second) = (task(1, 1, background), task(2, 2, background));
            if together {
                results.add(evicted(background, vec![first, second]));
            } else {
                results.add(evicted(background, vec![first]));
                results.add(evicted(background, vec![second]));
            }
            assert_eq!(results.discard(&one), [], "the task of the other input has it");
            assert!(results.outputs_of(&TaskKey([1; 32])).is_none());
            assert!(results.contains(&background));
            assert!(results.tasks_of(&other).eq([&TaskKey([2; 32])]));
            assert!(results.outputs_of(&TaskKey([2; 32])).is_some());
            assert_eq!(results.discard(&other), [key(&background)]);
            assert!(!results.contains(&background));
        }
    }
}
