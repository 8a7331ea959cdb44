//! What has fallen off the shelf and lies below memory: which task wrote it, and what it was made from.
//!
//! The regions themselves are the tiers'. One that they have lost is found out when it is read; then its task is run again.

use pleach_regions::{self as regions, DataRegion, RegionIdentity, RegionKey, ResultCache, TaskKey};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// Where an output is.
#[derive(Clone, Debug)]
pub(crate) enum OutputLocation {
    /// On the shelf.
    Here(Arc<DataRegion>),
    /// Below memory.
    Below(RegionKey),
}

/// The outputs of a task.
#[derive(Clone, Debug)]
pub(crate) struct SpilledTask {
    /// Those that are wanted.
    pub(crate) outputs: Vec<Option<(RegionIdentity, OutputLocation)>>,
    /// How whoever ran the task came by it.
    pub(crate) origin: TaskKey,
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct SpilledResults {
    regions: HashSet<RegionIdentity>,
    /// By task: its origin, and what it wrote, as far as that is known.
    tasks: HashMap<TaskKey, (TaskKey, Vec<Option<RegionIdentity>>)>,
    by_source: HashMap<RegionKey, Vec<(RegionIdentity, Vec<TaskKey>)>>,
}

/// What a region that has fallen off the shelf is stored under. Regions of a study have keys of another making.
pub(super) fn key(identity: &RegionIdentity) -> RegionKey {
    let mut hash = blake3::Hasher::new();
    hash.update(b"pleach fallen 1").update(&identity.0);
    let mut key = [0; 16];
    key.copy_from_slice(&hash.finalize().as_bytes()[..16]);
    RegionKey(key)
}

impl SpilledResults {
    pub(super) fn add(&mut self, fallen: regions::EvictedResult) {
        let regions::EvictedResult { identity, source, tasks, .. } = fallen;
        let keys = tasks.iter().map(|(key, _, _)| *key).collect();
        for (key, origin, outputs) in tasks {
            let (_, known) = self.tasks.entry(key).or_insert_with(|| (origin, vec![None; outputs.len()]));
            for (known, output) in known.iter_mut().zip(outputs) {
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

    /// Tasks of which outputs have fallen that were made from a region.
    pub(super) fn tasks_of(&self, source: &RegionKey) -> impl Iterator<Item = &TaskKey> {
        self.by_source.get(source).into_iter().flatten().flat_map(|(_, tasks)| tasks)
    }

    /// Nothing more will be made from a region; gives what lies below of what was made.
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
