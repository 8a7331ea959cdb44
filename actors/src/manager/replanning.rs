//! Replans: rebuilds buckets from unstarted instances when workers join or leave.
//!
//! Invariants:
//! - Studies wait for a replan only while a timer is set, which replans all of them.
//! - At most one timer is set.

use super::ManagerActor;
use actix::prelude::*;
use pleach_dispatch::PlanId;
use pleach_dispatch::study::Study;
use std::collections::BTreeSet;
use std::time::Duration;
use tracing::info;

/// Delay before a replan, which collects worker changes: nodes join and leave several at a time.
const REPLAN_AFTER: Duration = Duration::from_millis(100);

/// Scheduled replans of a manager, and totals of the past ones.
#[derive(Default)]
pub(super) struct Replanning {
    /// Studies with a scheduled replan.
    scheduled: BTreeSet<PlanId>,
    is_timer_set: bool,
    replans: u64,
    moved_instances: u64,
}

impl Replanning {
    /// Schedules the replan of a study. Returns whether the caller must set the timer.
    fn schedule(&mut self, study: PlanId) -> bool {
        assert!(self.is_timer_set || self.scheduled.is_empty(), "a scheduled replan has a timer");
        self.scheduled.insert(study);
        !std::mem::replace(&mut self.is_timer_set, true)
    }

    /// Takes the studies to replan, when the timer fires.
    fn take_scheduled(&mut self) -> BTreeSet<PlanId> {
        assert!(self.is_timer_set, "a replan follows its timer");
        self.is_timer_set = false;
        std::mem::take(&mut self.scheduled)
    }

    fn count(&mut self, moved_instances: usize) {
        self.replans += 1;
        self.moved_instances += moved_instances as u64;
    }

    /// Returns the number of replans so far.
    pub(super) fn replans(&self) -> u64 {
        self.replans
    }

    /// Returns the number of instances that changed their bucket in those replans.
    pub(super) fn moved_instances(&self) -> u64 {
        self.moved_instances
    }
}

impl ManagerActor {
    pub(super) fn schedule_replan(&mut self, study: PlanId, ctx: &mut Context<Self>) {
        if self.studies.get(&study).is_none_or(|running| running.replanner.is_none()) {
            return;
        }
        if self.replanning.schedule(study) {
            ctx.run_later(REPLAN_AFTER, |actor, ctx| {
                actor.replan();
                actor.apply_effects(ctx);
            });
        }
    }

    /// Schedules replans of all studies without leases, because the planner built their buckets for an assumed number
    /// of slots.
    pub(super) fn schedule_replans(&mut self, ctx: &mut Context<Self>) {
        let ids: Vec<PlanId> = self.studies.keys().copied().collect();
        for id in ids {
            if self.core.study(id).is_some_and(|study: &Study| study.leases() == 0) {
                self.schedule_replan(id, ctx);
            }
        }
    }

    /// Rebuilds buckets from unstarted instances for the present number of slots.
    fn replan(&mut self) {
        let slots = self.core.slots_by_speed();
        for id in self.replanning.take_scheduled() {
            let Some(replanner) = self.studies.get_mut(&id).and_then(|study| study.replanner.as_mut()) else {
                continue;
            };
            let Some(study) = self.core.study(id).filter(|_| slots > 0) else { continue };
            let Some(buckets) = replanner.replan(study, slots) else { continue };
            let moved: usize = buckets.iter().map(|bucket| bucket.instances.len()).sum();
            // A rejected plan refers to an outdated state. The next change triggers another replan.
            if self.core.handle_replanned(id, buckets).is_ok() {
                self.replanning.count(moved);
                self.counters.replans.increment(1);
                self.counters.replanned.increment(moved as u64);
                info!(
                    study = id.study,
                    instances = moved,
                    slots,
                    "{id}: replanned for {slots} slots, {moved} instances moved to other buckets"
                );
            }
        }
    }
}
