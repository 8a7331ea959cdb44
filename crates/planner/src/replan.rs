//! Replans a running study, for more or fewer slots and for measured costs: unstarted instances are rebuilt into a suitable
//! number of buckets, and as few as possible change their bucket (`pleach_reuse::replan`). Ranges are cut again from the
//! unstarted instances, in the same order, so that ranges stay contiguous. The number follows the measured overhead of a bucket.

mod forecast;
mod stage;

use crate::builder::StageProblem;
pub use forecast::ReplanForecaster;
use forecast::ReplanTables;
use parking_lot::{Mutex, RwLock, RwLockWriteGuard};
use pleach_dispatch::cost_model::CostModel;
use pleach_dispatch::plan::BucketPlan;
use pleach_dispatch::study::{Replanner, StudySnapshot};
use pleach_reuse::{BUCKETS_PER_CORE, CompactGraph, InstanceId, StageLoad, upward_ranks, weigh_overhead};
pub use stage::{RangeTables, ReplannedStage, replanned_seconds};
use std::num::NonZeroUsize;
use std::sync::Arc;

/// Replanner of a running study.
#[derive(Debug)]
pub struct StudyReplanner {
    /// Shared with forecasts, which only read. A replan writes, and no thread holds the lock while the shell has the
    /// replanner but a reader, so that [`has_new_costs`](Replanner::has_new_costs) never waits.
    tables: Arc<RwLock<ReplanTables>>,
    /// With fewer buckets, the workers that the plan was made for would lack the memory.
    min_buckets: NonZeroUsize,
    /// Slots that the present buckets were made for. `None` if they are unknown.
    slots: Option<NonZeroUsize>,
    /// Overhead of a bucket in seconds. `None`: the measured one.
    overhead_seconds: Option<f64>,
    /// Costs that the study measures. `None` if its buckets keep the costs that they were planned with.
    costs: Option<Arc<Mutex<CostModel>>>,
    /// Tables for the ranks of a new plan.
    ranks: Option<RankTables>,
    /// Ranks by the costs of the last replan, if it changed them.
    new_ranks: Option<Vec<f32>>,
}

/// Stage instances of a study, for their upward ranks.
#[derive(Debug)]
pub(crate) struct RankTables {
    /// The compact graph.
    pub(crate) graph: Arc<CompactGraph>,
    /// Seconds of the instances that only the reference needs.
    pub(crate) reference: Vec<(InstanceId, f64)>,
}

impl StudyReplanner {
    /// Creates the replanner of a plan that has `max_buckets` for each stage now. It never goes below `min_buckets`.
    pub fn new(stages: Vec<ReplannedStage>, max_buckets: NonZeroUsize, min_buckets: NonZeroUsize) -> Self {
        let tables = ReplanTables { stages, max_buckets, buckets_per_slot: BUCKETS_PER_CORE };
        Self {
            tables: Arc::new(RwLock::new(tables)),
            min_buckets,
            slots: None,
            overhead_seconds: None,
            costs: None,
            ranks: None,
            new_ranks: None,
        }
    }

    /// Sets the slots that the present buckets were made for, and the number of buckets for each.
    #[must_use]
    pub fn made_for(self, slots: NonZeroUsize, buckets_per_slot: NonZeroUsize) -> Self {
        self.tables.write().buckets_per_slot = buckets_per_slot;
        Self { slots: Some(slots), ..self }
    }

    /// Sets the overhead of a bucket in seconds, a valid one, instead of the measured one.
    #[must_use]
    pub fn with_overhead(self, seconds: Option<f64>) -> Self {
        Self { overhead_seconds: seconds, ..self }
    }

    /// Lets each replan rank the instances by its costs.
    pub(crate) fn with_ranks(self, tables: RankTables) -> Self {
        Self { ranks: Some(tables), ..self }
    }

    /// Lets each replan use the costs that the study has measured by then.
    #[must_use]
    pub fn with_costs(self, costs: Arc<Mutex<CostModel>>) -> Self {
        Self { costs: Some(costs), ..self }
    }

    /// Returns the number of buckets for each stage after the last replan.
    pub fn max_buckets(&self) -> NonZeroUsize {
        self.tables.read().max_buckets
    }

    /// Returns the number of buckets for each slot after the last replan.
    pub fn buckets_per_slot(&self) -> NonZeroUsize {
        self.tables.read().buckets_per_slot
    }

    /// Returns forecasts of the work for other numbers of slots than the present ones. `None` if those are unknown.
    pub fn forecaster(&self) -> Option<ReplanForecaster> {
        let planned_slots = self.slots?;
        let (tables, min_buckets) = (Arc::clone(&self.tables), self.min_buckets);
        Some(ReplanForecaster { tables, min_buckets, planned_slots })
    }

    /// Takes over the measured costs of the stages that need other buckets for them. Returns whether any does.
    fn update_costs(&self, tables: &mut ReplanTables) -> bool {
        let Some(costs) = &self.costs else { return false };
        // A copy, because workers' reports update the model meanwhile.
        let costs = costs.lock().clone();
        let updated = tables.stages.iter_mut().map(|stage| stage.update_costs(&costs));
        updated.fold(false, |any, updated| any | updated)
    }

    /// Returns the number of buckets for each slot, by the overhead of a bucket.
    fn weigh_overhead(&self, tables: &ReplanTables, slots: NonZeroUsize) -> NonZeroUsize {
        let overhead = self.bucket_overhead_seconds().unwrap_or(0.0);
        let loads: Vec<StageLoad> = tables.stages.iter().map(ReplannedStage::load).collect();
        weigh_overhead(&loads, slots, overhead).buckets_per_core
    }

    /// Returns the upward rank of each instance by the present costs.
    fn rank(&self, stages: &[ReplannedStage]) -> Option<Vec<f32>> {
        let tables = self.ranks.as_ref()?;
        let mut seconds = vec![0.0; tables.graph.instances().len()];
        let own = stages.iter().flat_map(ReplannedStage::seconds);
        for (instance, of_instance) in tables.reference.iter().copied().chain(own) {
            seconds[instance.0 as usize] = of_instance;
        }
        let ranks = upward_ranks(&tables.graph, &seconds);
        Some(ranks.into_iter().map(|seconds| seconds as f32).collect())
    }
}

impl Replanner for StudyReplanner {
    fn has_new_costs(&self) -> bool {
        let Some(costs) = &self.costs else { return false };
        let tables = self.tables.read();
        let has_new_overhead = |slots| self.weigh_overhead(&tables, slots) != tables.buckets_per_slot;
        if self.slots.is_some_and(has_new_overhead) {
            return true;
        }
        let costs = costs.lock();
        tables.stages.iter().any(|stage| stage.has_new_costs(&costs))
    }

    fn bucket_overhead_seconds(&self) -> Option<f64> {
        let measured = || {
            let costs = self.costs.as_ref()?.lock();
            costs.measured_bucket_overhead().map(|_| costs.bucket_overhead_seconds())
        };
        self.overhead_seconds.or_else(measured)
    }

    fn replan(&mut self, snapshot: &StudySnapshot, slots: u32) -> Option<Vec<BucketPlan>> {
        // Without slots no worker would run new buckets, so the present ones stay.
        let slots = NonZeroUsize::new(slots as usize)?;
        let mut tables = self.tables.write();
        let has_new_costs = self.update_costs(&mut tables);
        let buckets_per_slot = self.weigh_overhead(&tables, slots);
        let has_new_overhead =
            std::mem::replace(&mut tables.buckets_per_slot, buckets_per_slot) != buckets_per_slot;
        self.slots = Some(slots);
        let wanted = slots.saturating_mul(buckets_per_slot).max(self.min_buckets);
        let before = std::mem::replace(&mut tables.max_buckets, wanted);
        // With an unchanged number and unchanged costs `pleach_reuse::replan` moves no instance.
        if before == wanted && !has_new_costs {
            return None;
        }
        // Forecasts may read while this thread searches.
        let tables = RwLockWriteGuard::downgrade(tables);
        // An overhead changes no rank. They tell the shell that measurements, not workers, cause the replan.
        let new_ranks = if has_new_costs || has_new_overhead { self.rank(&tables.stages) } else { None };
        let replan = |stage: &ReplannedStage| {
            stage.replan(snapshot, (before, wanted), slots, has_new_costs).unwrap_or_default()
        };
        let buckets: Vec<BucketPlan> = tables.stages.iter().flat_map(replan).collect();
        drop(tables);
        self.new_ranks = new_ranks;
        (!buckets.is_empty() || has_new_costs).then_some(buckets)
    }

    fn take_ranks(&mut self) -> Option<Vec<f32>> {
        self.new_ranks.take()
    }
}

impl RankTables {
    /// Creates the tables of a plan.
    pub(crate) fn new(graph: Arc<CompactGraph>, stages: &[StageProblem], is_dataflow: bool) -> Self {
        let reference = stages.iter().flat_map(|stage| stage.reference_seconds(is_dataflow)).collect();
        Self { graph, reference }
    }
}
