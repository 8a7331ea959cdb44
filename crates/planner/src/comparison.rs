//! Many plans of one study: `pleach plan`.
//!
//! Steps that plans have in common run once. Each plan's seconds include them, as if it had been made alone.

use crate::memory::memory_fit::{FittedPlan, fit};
use crate::planned::makespan;
use crate::planned::summary;
use crate::{
    BucketLimitOptions, BucketLimits, MakespanForecast, PlanBuilder, PlanOptions, PlanRecord, PlanRequest,
    PlanningError, PlanningInput, ReuseMode, WorkerMemory,
};
use pleach_reuse::{Buckets, Merging};
use std::num::NonZeroU32;
use std::time::Instant;

/// Plans of one study.
#[derive(Debug)]
pub struct PlanComparison<'a> {
    study: PlanningInput<'a>,
    buckets: BucketLimitOptions,
    memory_bytes: Option<u64>,
    /// Builders without and with merged stage instances, each with the seconds of its setup.
    builders: [Option<(PlanBuilder<'a>, f64)>; 2],
    /// Buckets of the last mode, and the seconds to build them. Reuse scopes of most strategies have the same buckets.
    solved: Option<(ReuseMode, Vec<Buckets>, f64)>,
}

/// Buckets of a study.
struct Solution<'a> {
    builder: &'a PlanBuilder<'a>,
    mode: ReuseMode,
    limits: BucketLimits,
    buckets: &'a [Buckets],
    /// Seconds, as if the plan had been made alone.
    seconds: f64,
}

impl<'a> PlanComparison<'a> {
    /// Creates a comparison. With `memory_bytes`, plans are cut to fit a worker of this memory.
    #[must_use]
    pub fn new(study: PlanningInput<'a>, buckets: BucketLimitOptions, memory_bytes: Option<u64>) -> Self {
        Self { study, buckets, memory_bytes, builders: [None, None], solved: None }
    }

    /// Plans the study once for each of `options`. Fastest if options of one strategy follow each other.
    ///
    /// # Errors
    /// [`PlanningError`] as of [`plan`](crate::plan()).
    pub fn plans(
        &mut self,
        options: &[PlanOptions],
        slots: NonZeroU32,
    ) -> Result<Vec<PlanRecord>, PlanningError> {
        let plan = |options: &PlanOptions| {
            if let Some(memory_bytes) = self.memory_bytes {
                return self.fitted(*options, slots, memory_bytes);
            }
            let Solution { builder, mode, limits, buckets, seconds } = self.solve(*options, slots)?;
            let start = Instant::now();
            let summary = summary::summarize(builder, buckets, mode, slots.get())?;
            let seconds = seconds + start.elapsed().as_secs_f64();
            Ok(PlanRecord::new(*options, limits, summary, seconds, slots))
        };
        options.iter().map(plan).collect()
    }

    /// Predicts the makespan for each of `options` on each number of slots: one row for each option.
    ///
    /// # Errors
    /// [`PlanningError`] as of [`plan`](crate::plan()).
    pub fn forecasts(
        &mut self,
        options: &[PlanOptions],
        slots: &[NonZeroU32],
    ) -> Result<Vec<Vec<MakespanForecast>>, PlanningError> {
        let mut rows: Vec<Vec<MakespanForecast>> = options.iter().map(|_| Vec::new()).collect();
        for &slots in slots {
            for (row, options) in rows.iter_mut().zip(options) {
                let Solution { builder, mode, buckets, .. } = self.solve(*options, slots)?;
                row.push(makespan::forecast(builder, buckets, mode, slots.get())?);
            }
        }
        Ok(rows)
    }

    fn builder<'b>(
        builders: &'b mut [Option<(PlanBuilder<'a>, f64)>; 2],
        study: PlanningInput<'a>,
        options: PlanOptions,
    ) -> Result<(&'b PlanBuilder<'a>, f64), PlanningError> {
        let entry = &mut builders[usize::from(options.merging() == Merging::Merged)];
        let known = match entry.take() {
            Some(known) => known,
            None => {
                let start = Instant::now();
                (PlanBuilder::set_up(study, options.merging())?, start.elapsed().as_secs_f64())
            }
        };
        let (builder, seconds) = entry.insert(known);
        Ok((builder, *seconds))
    }

    fn solve(&mut self, options: PlanOptions, slots: NonZeroU32) -> Result<Solution<'_>, PlanningError> {
        let (builder, setup_seconds) = Self::builder(&mut self.builders, self.study, options)?;
        let start = Instant::now();
        let memory_bytes = self.memory_bytes.unwrap_or(u64::MAX);
        let limits = BucketLimits::choose(self.buckets, builder, slots, memory_bytes)?;
        let mode = options.mode(limits);
        let known = self.solved.take().filter(|(known, ..)| known.same_buckets(mode));
        let solved = match known {
            Some(solved) => solved,
            None => (mode, builder.solve(mode)?, start.elapsed().as_secs_f64()),
        };
        let (_, buckets, seconds) = self.solved.insert(solved);
        Ok(Solution { builder, mode, limits, buckets, seconds: setup_seconds + *seconds })
    }

    /// Plans for a worker of a given memory, as [`plan`](crate::plan()) does.
    fn fitted(
        &mut self,
        options: PlanOptions,
        slots: NonZeroU32,
        memory_bytes: u64,
    ) -> Result<PlanRecord, PlanningError> {
        let (builder, setup_seconds) = Self::builder(&mut self.builders, self.study, options)?;
        let start = Instant::now();
        let workers = &[WorkerMemory { memory_bytes, spill_bytes: 0 }];
        let request = PlanRequest { options, buckets: self.buckets, slots, workers, tree_fallback: false };
        let FittedPlan { options, limits, draft, .. } = fit(builder, &request)?;
        let summary = summary::summarize(builder, draft.solutions(), options.mode(limits), slots.get())?;
        let seconds = setup_seconds + start.elapsed().as_secs_f64();
        let record = PlanRecord::new(options, limits, summary, seconds, slots);
        Ok(PlanRecord { min_bytes: Some(draft.needs().min_bytes), ..record })
    }
}
