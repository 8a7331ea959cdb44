//! Replans on paper: the work of a running study for other numbers of slots.

use super::stage::ReplannedStage;
use parking_lot::RwLock;
use pleach_dispatch::scaling::PartitionForecast;
use pleach_dispatch::study::StudySnapshot;
use std::num::NonZeroUsize;
use std::sync::Arc;

/// Merge problems of a running study, with the limits of its present buckets.
#[derive(Debug)]
pub(super) struct ReplanTables {
    pub(super) stages: Vec<ReplannedStage>,
    /// Number of buckets for each stage.
    pub(super) max_buckets: NonZeroUsize,
    /// Buckets for each slot: MaxBuckets of thesis section 4.5 and paper 001 section 4.2.4, or fewer if each has an
    /// overhead.
    pub(super) buckets_per_slot: NonZeroUsize,
}

/// Forecasts of the work of a running study for other numbers of slots. Reads the tables of its replanner, and moves no
/// instance.
#[derive(Clone, Debug)]
pub struct ReplanForecaster {
    pub(super) tables: Arc<RwLock<ReplanTables>>,
    pub(super) min_buckets: NonZeroUsize,
    /// Slots that the study was first planned for: its remaining tasks are counted in those buckets.
    pub(super) planned_slots: NonZeroUsize,
}

impl ReplanForecaster {
    /// Returns the seconds of the unstarted instances if they were rebuilt into buckets for each number of slots. `None` if no
    /// instance waits, or if tasks of different buckets share their results, so that more slots cost none.
    ///
    /// Takes about as long as a replan for each number: call it on a thread that may block.
    #[must_use]
    pub fn unstarted_seconds(&self, snapshot: &StudySnapshot, slots: &[u32]) -> Option<Vec<f64>> {
        let tables = self.tables.read();
        let each = tables.buckets_per_slot;
        let limit = |slots: &u32| {
            let slots = NonZeroUsize::new(*slots as usize).unwrap_or(NonZeroUsize::MIN);
            (slots.saturating_mul(each).max(self.min_buckets), slots)
        };
        let limits: Vec<_> = slots.iter().map(limit).collect();
        let of = |stage: &ReplannedStage| stage.unstarted_seconds(snapshot, tables.max_buckets, &limits);
        let stages = tables.stages.iter().filter_map(of);
        stages.reduce(|all, stage| all.iter().zip(stage).map(|(all, stage)| all + stage).collect())
    }

    /// Forecasts the remaining work for ascending numbers of slots, given the measured seconds that are left. `None` as for
    /// [`unstarted_seconds`](Self::unstarted_seconds).
    #[must_use]
    pub fn forecast(&self, snapshot: &StudySnapshot, slots: &[u32], left: f64) -> Option<PartitionForecast> {
        let first = u32::try_from(self.planned_slots.get()).unwrap_or(u32::MAX);
        let all: Vec<u32> = slots.iter().copied().chain([first]).collect();
        let seconds = self.unstarted_seconds(snapshot, &all)?;
        let present = seconds.last().copied().unwrap_or(0.0);
        // Started instances stay where they are, whatever the number of slots.
        let started = (left - present).max(0.0);
        let planned = slots.iter().copied().zip(seconds.iter().map(|seconds| started + seconds));
        Some(PartitionForecast::new(planned, started + present, left))
    }
}
