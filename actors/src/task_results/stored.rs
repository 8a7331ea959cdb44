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

#[cfg(test)]
mod tests {
    use super::super::spill_evicted;
    use super::*;
    use crate::spill::SpillStore;
    use parking_lot::Mutex;
    use pleach_regions::{CachedRegion, DataRegion, EncodedRegion, Raster};
    use pleach_storage::{BoundedRam, EvictionPolicy, TierLevel, TierStack, WriteMode};
    use std::sync::Arc;

    fn spill() -> Arc<SpillStore> {
        let tier = Arc::new(BoundedRam::new(Arc::default(), 1 << 20));
        let (name, policy, write) = ("below".to_owned(), EvictionPolicy::Lru, WriteMode::Back);
        let level = TierLevel { name, tier, policy, write, shared: false };
        Arc::new(SpillStore::new(TierStack::new(vec![level])).unwrap())
    }

    /// A result is found decoded, encoded and spilled, with the same content each time.
    #[test]
    fn result_is_found_in_every_form() {
        let (task, identity) = (TaskKey([1; 32]), RegionIdentity([2; 32]));
        let region = Arc::new(DataRegion::Mask(Raster::filled(100, 100, 1, 255).unwrap()));
        let given = CachedRegion { identity, region: Arc::clone(&region) };
        let results = Arc::new(Mutex::new(TaskResults::default()));
        let mut locked = results.lock();
        locked.shelf.insert(task, task, None, vec![Some(given), None], 1.0);
        locked.shelf.release(&identity);
        let location = |results: &TaskResults| {
            let found = results.find_stored(&task, &[true, false])?;
            assert_eq!((found.origin, found.outputs.len()), (task, 2));
            Some(found.outputs[0].clone()?.1)
        };
        assert!(matches!(location(&locked), Some(OutputLocation::Here(CachedForm::Decoded(_)))));
        assert!(locked.find_stored(&task, &[true, true]).is_none(), "the second output is missing");

        for done in locked.shelf.start_encoding(0, u64::MAX) {
            locked.shelf.finish_encoding(&done, EncodedRegion::new(&done.region));
        }
        let Some(OutputLocation::Here(form @ CachedForm::Encoded(_))) = location(&locked) else {
            panic!("not encoded")
        };
        assert_eq!(form.region().as_ref(), Some(&region));

        let evicted = locked.shelf.shrink_to(0);
        drop(locked);
        let spill = spill();
        spill_evicted(&results, &spill, evicted);
        spill.settle();
        let Some(OutputLocation::Below(key)) = location(&results.lock()) else { panic!("not spilled") };
        assert_eq!(spill.get(key), Some(region));
        spill.remove(key);
    }
}
