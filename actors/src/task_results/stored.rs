//! Outputs of a finished task that are not all decoded in memory: their locations.

use super::{TaskResults, spilled};
use pleach_regions::{CachedForm, RegionIdentity, RegionKey, TaskKey};

/// Location of an output.
#[derive(Clone, Debug)]
pub(crate) enum OutputLocation {
    /// In the result cache.
    Here(CachedForm),
    /// In a spill tier.
    Below(RegionKey),
}

/// Outputs of a task.
#[derive(Clone, Debug)]
pub(crate) struct StoredTask {
    /// Wanted outputs.
    pub(crate) outputs: Vec<Option<(RegionIdentity, OutputLocation)>>,
    /// Key by provenance of the task that ran.
    pub(crate) origin: TaskKey,
}

impl TaskResults {
    /// Returns the locations of a task's wanted outputs. `None` if any is missing. If all are decoded in the result cache,
    /// [`acquire`](pleach_regions::ResultCache::acquire) finds them without a task.
    pub(crate) fn find_stored(&self, key: &TaskKey, wanted: &[bool]) -> Option<StoredTask> {
        let (cached, spilled) = (self.shelf.outputs_of(key), self.fallen.outputs_of(key));
        let (origin, _) = cached.or(spilled)?;
        // An output of a task leaves the cache on its own, so each index may have another part of them.
        let known = |output: usize| {
            let of = |found: Option<(TaskKey, &[Option<RegionIdentity>])>| *found?.1.get(output)?;
            of(cached).or_else(|| of(spilled))
        };
        let mut outputs = Vec::with_capacity(wanted.len());
        for (output, wanted) in wanted.iter().enumerate() {
            let found = if *wanted { Some(self.locate(known(output)?)?) } else { None };
            outputs.push(found);
        }
        Some(StoredTask { outputs, origin })
    }

    fn locate(&self, identity: RegionIdentity) -> Option<(RegionIdentity, OutputLocation)> {
        let location = match self.shelf.form(&identity) {
            Some(form) => OutputLocation::Here(form),
            None if self.fallen.contains(&identity) => OutputLocation::Below(spilled::key(&identity)),
            None => return None,
        };
        Some((identity, location))
    }
}
