//! Remaining work of the running studies by number of slots: more slots need more buckets, which reuse less.
//!
//! The thread of each study writes its forecast, and the scaling decision reads all of them in microseconds.

use super::StudyNeed;
use parking_lot::Mutex;
use pleach_dispatch::scaling::{PartitionForecast, WorkByPartition, sum_cuts};
use std::collections::{BTreeMap, BTreeSet};

/// Forecasts of the running studies.
#[derive(Debug, Default)]
pub(crate) struct Partitions {
    /// By study. A study without an entry takes the same work on any number of slots.
    forecasts: Mutex<BTreeMap<u32, PartitionForecast>>,
    /// Studies whose first forecast is being made.
    expected: Mutex<BTreeSet<u32>>,
    /// Numbers of slots to plan for. Empty if no decision depends on them.
    slots: Mutex<Vec<u32>>,
}

impl Partitions {
    /// Announces the first forecast of a study.
    pub(crate) fn expect(&self, study: u32) {
        self.expected.lock().insert(study);
    }

    /// Sets the forecast of a study. `None`: more slots cost no reuse.
    pub(crate) fn set(&self, study: u32, forecast: Option<PartitionForecast>) {
        let mut forecasts = self.forecasts.lock();
        match forecast {
            Some(forecast) => _ = forecasts.insert(study, forecast),
            None => _ = forecasts.remove(&study),
        }
        drop(forecasts);
        self.expected.lock().remove(&study);
    }

    /// Returns whether no first forecast of a study is expected that a decision depends on.
    pub(super) fn is_known(&self, study: u32) -> bool {
        self.slots.lock().is_empty() || !self.expected.lock().contains(&study)
    }

    /// Returns the numbers of slots to plan for: empty without pools, or if no study has a deadline or a budget.
    pub(crate) fn slots(&self) -> Vec<u32> {
        self.slots.lock().clone()
    }

    /// Sets the numbers of slots to plan for: from `least`, those of workers outside the pools, to those of all pools.
    pub(super) fn cover(&self, studies: &[StudyNeed], least: u32, more: u32) {
        let has_goal = studies.iter().any(|study| study.deadline.is_some() || study.budget.is_some());
        *self.slots.lock() = if has_goal { PartitionForecast::slots(least, more) } else { Vec::new() };
    }

    /// Returns the work of all studies together, for ascending numbers of slots.
    pub(super) fn cuts(&self, studies: &[StudyNeed]) -> Vec<WorkByPartition> {
        let forecasts = self.forecasts.lock();
        let of = |study: &StudyNeed| {
            let (work_seconds, longest_seconds) = (study.work_seconds, study.run_seconds);
            let cuts = forecasts.get(&study.id).map(|forecast| forecast.cuts(work_seconds, longest_seconds));
            let same = || vec![WorkByPartition { slots: u32::MAX, work_seconds, longest_seconds }];
            cuts.filter(|cuts| !cuts.is_empty()).unwrap_or_else(same)
        };
        sum_cuts(&studies.iter().map(of).collect::<Vec<_>>())
    }
}
