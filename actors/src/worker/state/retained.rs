//! Regions that a worker retains for queries.
//!
//! A study names outputs. The worker that computes such an output keeps its region in storage after the last reader, until
//! memory is short or the study is removed.
//!
//! Invariant: a released region is a retained one, and no bucket of its study reads it any more.

use pleach_dispatch::PlanId;
use pleach_dispatch::message::BucketWork;
use pleach_regions::RegionKey;
use std::collections::{BTreeSet, HashMap};

/// Retained regions of a worker.
#[derive(Debug, Default)]
pub(crate) struct RetainedRegions {
    /// Outputs of running plans, as stage and output.
    outputs: HashMap<PlanId, Vec<(u32, u32)>>,
    study_of: HashMap<RegionKey, u32>,
    /// Regions without readers, which may leave memory.
    released: BTreeSet<RegionKey>,
}

impl RetainedRegions {
    /// Begins a plan with these outputs.
    pub(crate) fn begin(&mut self, plan: PlanId, outputs: Vec<(u32, u32)>) {
        if !outputs.is_empty() {
            self.outputs.insert(plan, outputs);
        }
    }

    /// Ends a plan. Its regions stay.
    pub(crate) fn end(&mut self, plan: PlanId) {
        self.outputs.remove(&plan);
    }

    /// Retains the outputs of a bucket that the plan names.
    pub(crate) fn retain(&mut self, plan: PlanId, work: &BucketWork) {
        let Some(outputs) = self.outputs.get(&plan) else { return };
        let own = outputs.iter().filter(|(stage, _)| *stage == work.stage);
        for (_, output) in own {
            let keys = work.instances.iter().filter_map(|instance| instance.outputs.get(*output as usize));
            for plan_of in keys {
                self.study_of.insert(plan_of.key, plan.study);
                // An instance that runs again has readers again.
                self.released.remove(&plan_of.key);
            }
        }
    }

    /// Records regions without readers. Returns those that are not retained.
    pub(crate) fn release(&mut self, keys: &[RegionKey]) -> Vec<RegionKey> {
        let (retained, others): (Vec<RegionKey>, Vec<RegionKey>) =
            keys.iter().partition(|key| self.study_of.contains_key(key));
        self.released.extend(retained);
        others
    }

    /// Iterates over the regions without readers.
    pub(crate) fn released(&self) -> impl Iterator<Item = RegionKey> {
        self.released.iter().copied()
    }

    /// Removes a region that has left memory.
    pub(crate) fn remove(&mut self, key: RegionKey) {
        // One with readers was no candidate.
        if self.released.remove(&key) {
            self.study_of.remove(&key);
        }
    }

    /// Ends the retention of a study. Returns its regions without readers. The others are released with their last reader.
    pub(crate) fn end_study(&mut self, study: u32) -> Vec<RegionKey> {
        let of_it: Vec<RegionKey> =
            self.study_of.iter().filter(|(_, of)| **of == study).map(|(key, _)| *key).collect();
        of_it.iter().for_each(|key| _ = self.study_of.remove(key));
        of_it.into_iter().filter(|key| self.released.remove(key)).collect()
    }

    /// Returns the studies with retained regions, ascending.
    pub(crate) fn studies(&self) -> BTreeSet<u32> {
        self.study_of.values().copied().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pleach_dispatch::message::InstanceWork;
    use pleach_dispatch::plan::{OutputPlan, ReuseScope};
    use pleach_dispatch::{BucketId, InstanceId};

    fn key(number: u8) -> RegionKey {
        RegionKey([number; 16])
    }

    /// A bucket of stage 1 with two outputs.
    fn bucket(keys: [u8; 2]) -> BucketWork {
        let output = |number: u8| OutputPlan { key: key(number), stored: true, reported: false };
        BucketWork {
            bucket: BucketId(0),
            stage: 1,
            pixels: 1,
            drain: Default::default(),
            sharing: ReuseScope::Tree,
            own_tile: None,
            instances: vec![InstanceWork {
                id: InstanceId(0),
                parameters: Vec::new(),
                inputs: Vec::new(),
                outputs: keys.map(output).to_vec(),
                stays: false,
            }],
            elsewhere: Vec::new(),
        }
    }

    #[test]
    fn region_stays_after_its_last_reader_until_memory_is_short_or_its_study_is_removed() {
        let (plan, other) = (PlanId::first_round(7), PlanId::first_round(8));
        let mut retained = RetainedRegions::default();
        retained.begin(plan, vec![(1, 1), (2, 0)]);
        retained.retain(plan, &bucket([1, 2]));
        retained.retain(plan, &bucket([3, 4]));
        retained.retain(other, &bucket([5, 6]));
        retained.end(plan);
        assert_eq!(retained.studies(), BTreeSet::from([7]));
        assert_eq!(retained.release(&[key(1), key(2), key(6)]), [key(1), key(6)]);
        assert_eq!(retained.released().collect::<Vec<_>>(), [key(2)]);
        // A region with readers never leaves memory.
        retained.remove(key(4));
        assert_eq!(retained.release(&[key(4)]), []);
        retained.remove(key(2));
        assert_eq!(retained.release(&[key(2)]), [key(2)]);
        assert_eq!((retained.end_study(8), retained.end_study(7)), (vec![], vec![key(4)]));
        assert_eq!(retained.studies(), BTreeSet::new());
    }
}
