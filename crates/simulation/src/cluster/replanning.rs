//! Replanning with the manager's own planner: rebuilds unstarted buckets after a change of the number of slots.
//!
//! A replan takes time on a thread of its own, and grants continue meanwhile, as in the manager actor. A study has at most
//! one replan at a time, and is replanned again if workers have joined or left meanwhile.

use super::{Cluster, DueEvent};
use crate::audit::Violation;
use crate::event::Event;
use pleach_dispatch::plan::BucketPlan;
use pleach_dispatch::study::Replanner;
use pleach_dispatch::{InstanceId, PlanId};
use pleach_planner::{ReplanForecaster, ReplannedStage, StudyReplanner};
use pleach_reuse::BUCKETS_PER_CORE;
use std::num::NonZeroUsize;
use std::sync::Arc;

/// Time of a replan for each instance of the study, as measured with 160,000 evaluations.
const REPLAN_US_PER_INSTANCE: u64 = 5;

/// Replans of one study.
#[derive(Debug, Default)]
pub(super) struct StudyReplans {
    /// Created at the first replan. A restarted manager has a new one.
    replanner: Option<StudyReplanner>,
    /// Whether the timer of a replan is set.
    is_scheduled: bool,
    is_running: bool,
    /// Whether to replan again after the running replan.
    again: bool,
}

impl Cluster {
    /// Schedules the replan of a study.
    pub(super) fn schedule_replan(&mut self, study: PlanId) {
        if self.schedule.replan && !std::mem::replace(&mut self.replans[study.index()].is_scheduled, true) {
            self.at(self.now_us + self.replan_after_us, DueEvent::Replan(study));
        }
    }

    /// Starts a replan with the present state of a study.
    pub(super) fn replan(&mut self, study: PlanId) {
        let replans = &mut self.replans[study.index()];
        replans.is_scheduled = false;
        if replans.is_running {
            // One replan at a time: the running one has an outdated number of slots, so another follows it.
            replans.again = true;
            return;
        }
        let slots = self.observed.manager().slots_by_speed();
        let Some(state) = self.observed.manager().study(study).filter(|_| self.is_up && slots > 0) else {
            return;
        };
        let (snapshot, instances) = (state.snapshot(), state.plan().instances.len() as u64);
        if self.replans[study.index()].replanner.is_none() {
            self.replans[study.index()].replanner = self.replanner(study);
        }
        let replans = &mut self.replans[study.index()];
        let Some(buckets) = replans.replanner.as_mut().and_then(|of| of.replan(&snapshot, slots)) else {
            return;
        };
        replans.is_running = true;
        let due = self.now_us + REPLAN_US_PER_INSTANCE * instances;
        self.at(due, DueEvent::Replanned(study, self.epoch, buckets));
    }

    /// Merges the result of a replan with the state of its study.
    pub(super) fn replanned(
        &mut self,
        study: PlanId,
        epoch: u32,
        buckets: Vec<BucketPlan>,
    ) -> Result<(), Violation> {
        // The manager that started the replan is gone, and its buckets refer to its state.
        if epoch != self.epoch || !self.is_up {
            return Ok(());
        }
        let replans = &mut self.replans[study.index()];
        replans.is_running = false;
        if std::mem::take(&mut replans.again) {
            self.schedule_replan(study);
        }
        self.figures.replans += 1;
        let state = self.observed.manager().study(study);
        let moves = |id: &&InstanceId| state.is_some_and(|state| state.is_unstarted(**id));
        let moved = buckets.iter().flat_map(|bucket| &bucket.instances).filter(moves).count();
        self.figures.instances_moved += moved as u64;
        self.apply(Event::Replanned { study, buckets })
    }

    /// Learns the overheads of buckets that a report has measured, and schedules a replan if they need other buckets. Work stealing
    /// follows them at once.
    pub(super) fn learn_bucket_overheads(&mut self, study: PlanId) -> Result<(), Violation> {
        let overheads = self.observed.take_bucket_overheads(study);
        // Without an overhead, measured times are those of ticks.
        if self.bucket_overhead_us == 0 || overheads.is_empty() {
            return Ok(());
        }
        overheads.iter().for_each(|seconds| self.costs.lock().observe_bucket_overhead(*seconds));
        if self.replans[study.index()].replanner.is_none() {
            self.replans[study.index()].replanner = self.replanner(study);
        }
        let replanner = self.replans[study.index()].replanner.as_ref();
        let overhead = replanner.and_then(Replanner::bucket_overhead_seconds);
        if replanner.is_some_and(Replanner::has_new_costs) {
            self.schedule_replan(study);
        }
        match overhead {
            Some(seconds) => self.apply(Event::BucketOverhead { study, overhead_us: (seconds * 1e6) as u64 }),
            None => Ok(()),
        }
    }

    /// Returns the number of buckets for each slot of a study's last plan.
    pub(super) fn buckets_per_slot(&self, study: PlanId) -> usize {
        let replanner = self.replans[study.index()].replanner.as_ref();
        replanner.map_or(BUCKETS_PER_CORE, StudyReplanner::buckets_per_slot).get()
    }

    /// Ends all replans with their manager.
    pub(super) fn end_replans(&mut self) {
        self.replans.iter_mut().for_each(|replans| *replans = StudyReplans::default());
    }

    /// Returns the number of buckets of a study's last plan.
    pub(super) fn planned_buckets(&self, study: PlanId) -> usize {
        let replanner = self.replans[study.index()].replanner.as_ref();
        replanner.map_or(self.initial_buckets, |replanner| replanner.max_buckets().get())
    }

    /// Returns the manager's forecasts of the second stage of a study for other numbers of slots, from the buckets of its first
    /// plan. `None` if the planner refuses it.
    #[must_use]
    pub fn forecaster(&self, study: PlanId) -> Option<ReplanForecaster> {
        self.replanner(study)?.forecaster()
    }

    /// Creates the replanner of the second stage of a study. `None` if the planner refuses it.
    fn replanner(&self, study: PlanId) -> Option<StudyReplanner> {
        let workload = &self.workloads[study.index()];
        let all = self.observed.manager().study(study)?.plan().instances.len() as u32;
        let members: Vec<InstanceId> =
            (0..all).map(InstanceId).filter(|instance| workload.is_second(*instance)).collect();
        let problem = workload.problem(&members).ok()?;
        let pixels = vec![workload.pixels(); members.len()];
        let ranges = workload.ranges(&problem);
        let stage = ReplannedStage::new(members, pixels, problem, ranges);
        let planned = NonZeroUsize::new(self.initial_buckets)?;
        let replanner = StudyReplanner::new(vec![stage], planned, NonZeroUsize::MIN);
        let slots = self.schedule.nodes.iter().map(|node| node.slots as usize).sum();
        let Some(slots) = NonZeroUsize::new(slots) else { return Some(replanner) };
        let each = NonZeroUsize::new(planned.get() / slots).unwrap_or(NonZeroUsize::MIN);
        Some(replanner.made_for(slots, each.min(BUCKETS_PER_CORE)).with_costs(Arc::clone(&self.costs)))
    }
}
