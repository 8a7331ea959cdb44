//! Studies that the manager has sent to a worker.
//!
//! Invariant: `last_stage` is the maximum over the known studies.

use crate::PlanId;
use std::collections::BTreeMap;

/// Known studies.
#[derive(Debug)]
pub(crate) struct Studies {
    /// Number of stages and minimum memory of each study.
    studies: BTreeMap<PlanId, (u32, u64)>,
    last_stage: u32,
}

impl Default for Studies {
    fn default() -> Self {
        Self { studies: BTreeMap::new(), last_stage: u32::MAX }
    }
}

impl Studies {
    pub(crate) fn add(&mut self, study: PlanId, stages: u32, min_bytes: u64) {
        self.studies.insert(study, (stages, min_bytes));
        self.update();
    }

    pub(crate) fn remove(&mut self, study: PlanId) {
        self.studies.remove(&study);
        self.update();
    }

    /// Returns the last stage of any study. Without a study, any stage may follow.
    pub(crate) fn last_stage(&self) -> u32 {
        self.last_stage
    }

    /// Returns the bytes with which all studies together can be finished, one task of each at a time.
    pub(crate) fn min_bytes(&self) -> u64 {
        self.studies.values().fold(0, |sum, (_, min_bytes)| sum.saturating_add(*min_bytes))
    }

    fn update(&mut self) {
        let last = self.studies.values().map(|(stages, _)| stages.saturating_sub(1)).max();
        self.last_stage = last.unwrap_or(u32::MAX);
    }
}
