//! The planning sequence.

use crate::memory::memory_fit::{FittedPlan, fit};
use crate::{
    BucketLimitOptions, PeakLocation, PlanBuilder, PlanOptions, PlanRecord, PlannedStudy, PlanningError,
    PlanningInput, WorkerMemory,
};
use pleach_dispatch::memory_model::MinimumMemory;
use std::num::NonZeroU32;
use std::time::Instant;

/// Request for a plan: how to reuse, and the workers to plan for.
#[derive(Clone, Copy, Debug)]
pub struct PlanRequest<'a> {
    /// Strategy and reuse scope.
    pub options: PlanOptions,
    /// Limits that the user sets. The planner keeps them.
    pub buckets: BucketLimitOptions,
    /// Tasks that all workers together run at once.
    pub slots: NonZeroU32,
    /// Memory of each worker. Empty: every plan fits.
    pub workers: &'a [WorkerMemory],
    /// Allows the tree scope where no plan of the requested scope fits.
    pub tree_fallback: bool,
}

/// Plan of a study, and its document.
#[derive(Debug)]
pub struct Plan {
    /// The planned study.
    pub study: PlannedStudy,
    /// Document of the plan.
    pub record: PlanRecord,
    /// Options of the plan. The scope differs from the requested one after a fallback.
    pub options: PlanOptions,
    /// Minimum memory of the plan with the requested options, before buckets were cut.
    pub requested_needs: MinimumMemory,
    /// Location of the peak memory.
    pub peak: PeakLocation,
}

impl Plan {
    /// Returns whether at least one of `workers` has the memory for the plan.
    #[must_use]
    pub fn fits_any(&self, workers: &[WorkerMemory]) -> bool {
        workers.iter().any(|worker| worker.fits(&self.study.plan.needs))
    }
}

/// Plans a study. The plan fits as many of the workers as any candidate does, and possibly none.
///
/// # Errors
/// [`PlanningError`] if the study is too large for the strategy, for ids or for this machine's memory.
pub fn plan(study: PlanningInput<'_>, request: &PlanRequest<'_>) -> Result<Plan, PlanningError> {
    let start = Instant::now();
    let builder = PlanBuilder::set_up(study, request.options.merging())?;
    let FittedPlan { options, limits, draft, requested_needs } = fit(&builder, request)?;
    let peak = draft.peak(&builder);
    let study = draft.finish(builder, request.slots.get())?;
    let seconds = start.elapsed().as_secs_f64();
    let record = PlanRecord::new(options, limits, study.summary.clone(), seconds, request.slots);
    Ok(Plan { study, record, options, requested_needs, peak })
}
