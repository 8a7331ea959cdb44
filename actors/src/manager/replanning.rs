//! Replans: rebuilds buckets from unstarted instances when workers join or leave, and when measured task costs, or the measured
//! overhead of a bucket, differ from those that the buckets were cut with.
//!
//! A replan of many instances takes seconds, so it runs on a thread of its own with a snapshot of the study, and the
//! manager continues to grant. The study merges the new buckets with its state by then, in parts, and the manager handles
//! other messages between them.
//!
//! Invariants:
//! - Studies wait for a replan only while a timer is set, which replans all of them.
//! - At most one timer is set.
//! - A study has at most one replan at a time, which has its replanner. A study that is scheduled meanwhile is
//!   replanned again after it.

use super::ManagerActor;
use actix::fut::wrap_future;
use actix::prelude::*;
use pleach_dispatch::PlanId;
use pleach_dispatch::message::{TaskOutcome, TaskReport};
use pleach_dispatch::study::{MAX_MERGED_INSTANCES, Merged, NewBuckets, Replanner, Study, StudySnapshot};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::thread;
use std::time::{Duration, Instant};
use tokio::sync::oneshot;
use tracing::{error, info};

/// Delay before a replan, which collects worker changes: nodes join and leave several at a time.
const REPLAN_AFTER: Duration = Duration::from_millis(100);

/// Executed tasks of a study until its measured costs are first compared with those of its buckets. The number doubles with
/// each comparison: a study of a million tasks has 15.
const FIRST_COST_CHECK: u64 = 32;

/// Name of the threads that replan.
const REPLAN_THREAD: &str = "pleach-replan";

/// Name of the threads that drop the memory of ended studies and replaced buckets.
const DROP_THREAD: &str = "pleach-drop";

/// Scheduled and running replans of a manager, and totals of the past ones.
#[derive(Default)]
pub(super) struct Replanning {
    /// Studies with a scheduled replan.
    scheduled: BTreeSet<PlanId>,
    is_timer_set: bool,
    /// Number of the running replan of each study.
    running: BTreeMap<PlanId, u64>,
    /// Studies to replan again after their running replan.
    again: BTreeSet<PlanId>,
    /// Studies whose next replan is for other workers, and not for measured costs alone.
    for_workers: BTreeSet<PlanId>,
    /// Study whose measured costs are to be compared, after a report.
    cost_check: Option<PlanId>,
    started: u64,
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

    fn is_running(&self, study: PlanId) -> bool {
        self.running.contains_key(&study)
    }

    /// Returns whether a replan counts: the study has not ended and got no other plan meanwhile.
    fn is_current(&self, study: PlanId, number: u64) -> bool {
        self.running.get(&study) == Some(&number)
    }

    /// Starts a replan. Returns its number.
    fn start(&mut self, study: PlanId) -> u64 {
        self.started += 1;
        let before = self.running.insert(study, self.started);
        assert!(before.is_none(), "{study} is replanned twice at a time");
        self.started
    }

    /// Ends a replan that counts.
    fn end(&mut self, study: PlanId, number: u64) {
        let ended = self.running.remove(&study);
        assert!(ended == Some(number), "replan {number} of {study} ends, and {ended:?} is running");
    }

    /// Makes a running replan of a study outdated, because the study has ended or got another plan.
    pub(super) fn discard(&mut self, study: PlanId) {
        self.running.remove(&study);
        self.again.remove(&study);
        self.for_workers.remove(&study);
    }

    fn count(&mut self, moved_instances: usize) {
        self.replans += 1;
        self.moved_instances += moved_instances as u64;
    }

    /// Requests the comparison of a study's measured costs.
    pub(super) fn request_cost_check(&mut self, study: PlanId) {
        self.cost_check = Some(study);
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

/// Number of tasks of a study that have been executed, and the next number that brings a comparison of its costs.
#[derive(Clone, Copy, Debug)]
pub(super) struct CostChecks {
    executed: u64,
    next: u64,
}

impl Default for CostChecks {
    fn default() -> Self {
        Self { executed: 0, next: FIRST_COST_CHECK }
    }
}

impl CostChecks {
    /// Counts executed tasks. Returns whether the costs are to be compared.
    pub(super) fn count<'a>(&mut self, tasks: impl Iterator<Item = &'a TaskReport>) -> bool {
        let executed = tasks.filter(|task| matches!(task.done, TaskOutcome::Ran { .. })).count();
        self.executed += executed as u64;
        let is_due = self.executed >= self.next;
        while self.executed >= self.next {
            self.next *= 2;
        }
        is_due
    }
}

/// Result of a replan on its thread.
struct Replan {
    replanner: Box<dyn Replanner>,
    slots: u32,
    /// Workers have joined or left.
    for_workers: bool,
    /// The new buckets have measured costs.
    has_new_costs: bool,
    /// Parts to merge. Empty if all instances stay in their bucket.
    parts: VecDeque<NewBuckets>,
    /// Result of the merged parts. `None` before the first.
    merged: Option<Merged>,
    /// Time that the replan took on its thread.
    took: Duration,
}

impl Replan {
    /// Replans for a number of slots. Takes seconds for a million instances.
    fn run(
        mut replanner: Box<dyn Replanner>,
        snapshot: &StudySnapshot,
        slots: u32,
        for_workers: bool,
    ) -> Self {
        let start = Instant::now();
        let buckets = replanner.replan(snapshot, slots);
        let ranks = replanner.take_ranks();
        let has_new_costs = ranks.is_some();
        let new = buckets.and_then(|buckets| {
            let new = NewBuckets::new(buckets).map(|new| new.with_ranks(ranks));
            new.inspect_err(|defect| error!("failed to replan: {defect}")).ok()
        });
        let parts = new.map(|new| new.into_parts(snapshot, MAX_MERGED_INSTANCES)).unwrap_or_default().into();
        let took = start.elapsed();
        Self { replanner, slots, for_workers, has_new_costs, parts, merged: None, took }
    }
}

/// Message of the manager to itself: merge a part of a replan.
#[derive(Message)]
#[rtype(result = "()")]
struct MergePart {
    study: PlanId,
    number: u64,
    replan: Replan,
}

impl Handler<MergePart> for ManagerActor {
    type Result = ();

    fn handle(&mut self, MergePart { study, number, replan }: MergePart, ctx: &mut Context<Self>) {
        self.merge_part(study, number, replan, ctx);
    }
}

impl ManagerActor {
    /// Schedules the replan of a study for other workers.
    pub(super) fn schedule_replan(&mut self, study: PlanId, ctx: &mut Context<Self>) {
        let has_replanner = self.studies.get(&study).is_some_and(|running| running.replanner.is_some());
        // During a replan its thread has the replanner, so the study has none.
        if has_replanner || self.replanning.is_running(study) {
            self.replanning.for_workers.insert(study);
            self.set_replan(study, ctx);
        }
    }

    fn set_replan(&mut self, study: PlanId, ctx: &mut Context<Self>) {
        if self.replanning.schedule(study) {
            ctx.run_later(REPLAN_AFTER, |actor, ctx| actor.replan_scheduled(ctx));
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

    /// Schedules the replan of the study whose costs a report made due, if its buckets are out of balance by them.
    pub(super) fn check_costs(&mut self, ctx: &mut Context<Self>) {
        let Some(study) = self.replanning.cost_check.take() else { return };
        let replanner = self.studies.get(&study).and_then(|running| running.replanner.as_ref());
        if replanner.is_some_and(|replanner| replanner.has_new_costs()) {
            self.set_replan(study, ctx);
        }
    }

    fn replan_scheduled(&mut self, ctx: &mut Context<Self>) {
        for id in self.replanning.take_scheduled() {
            self.start_replan(id, ctx);
        }
    }

    /// Starts a replan for the present number of slots, on a thread of its own.
    fn start_replan(&mut self, id: PlanId, ctx: &mut Context<Self>) {
        if self.replanning.is_running(id) {
            self.replanning.again.insert(id);
            return;
        }
        let slots = self.core.slots_by_speed();
        let Some(study) = self.core.study(id).filter(|_| slots > 0) else { return };
        let Some(running) = self.studies.get_mut(&id) else { return };
        let Some(replanner) = running.replanner.take() else { return };
        let snapshot = study.snapshot();
        let number = self.replanning.start(id);
        let for_workers = self.replanning.for_workers.remove(&id);
        let (done, result) = oneshot::channel();
        let work = move || {
            // The manager may have ended meanwhile.
            let _ = done.send(Replan::run(replanner, &snapshot, slots, for_workers));
        };
        if let Err(cause) = thread::Builder::new().name(REPLAN_THREAD.to_owned()).spawn(work) {
            error!(study = id.study, "{id} is not replanned any more: {cause}");
            self.replanning.end(id, number);
            return;
        }
        ctx.spawn(wrap_future(result).map(move |result, actor: &mut Self, ctx: &mut Context<Self>| {
            // Without a result, the thread has ended the process.
            if let Ok(replan) = result {
                actor.merge_part(id, number, replan, ctx);
            }
        }));
    }

    /// Merges the next part of a replan with the state of its study. Ends the replan after the last one.
    fn merge_part(&mut self, id: PlanId, number: u64, mut replan: Replan, ctx: &mut Context<Self>) {
        // The study has ended or has another plan, which came with its own replanner.
        if !self.replanning.is_current(id, number) {
            drop_elsewhere(replan);
            return;
        }
        if let Some(part) = replan.parts.pop_front() {
            match self.core.handle_replanned(id, part) {
                Ok(merged) => replan.merged.get_or_insert_default().add(merged),
                Err(defect) => {
                    error!(study = id.study, "failed to replan {id}: {defect}");
                    replan.parts.clear();
                }
            }
            self.apply_effects(ctx);
        }
        if replan.parts.is_empty() {
            self.end_replan(id, number, replan, ctx);
        } else {
            ctx.notify(MergePart { study: id, number, replan });
        }
    }

    fn end_replan(&mut self, id: PlanId, number: u64, replan: Replan, ctx: &mut Context<Self>) {
        // The effects of the last part may have ended the study.
        if !self.replanning.is_current(id, number) {
            drop_elsewhere(replan);
            return;
        }
        let Replan { replanner, slots, for_workers, has_new_costs, merged, took, .. } = replan;
        self.replanning.end(id, number);
        if let Some(running) = self.studies.get_mut(&id) {
            running.replanner = Some(replanner);
        }
        if let Some(merged) = merged {
            // Other costs may leave all instances in their buckets, or arrive after the last grant.
            if merged.moved > 0 || !has_new_costs {
                self.counters.count_replan(for_workers);
                self.record_replan(id, &merged, (slots, has_new_costs), took);
            }
            drop_elsewhere(merged.former);
        }
        // The number of slots has changed during the replan.
        if self.replanning.again.remove(&id) {
            self.schedule_replan(id, ctx);
        }
    }

    fn record_replan(
        &mut self,
        id: PlanId,
        merged: &Merged,
        (slots, has_new_costs): (u32, bool),
        took: Duration,
    ) {
        let (moved, outdated) = (merged.moved, merged.outdated);
        self.replanning.count(moved);
        self.counters.replanned.increment(moved as u64);
        let costs = if has_new_costs { " and measured costs" } else { "" };
        info!(
            study = id.study,
            instances = moved,
            outdated,
            slots,
            milliseconds = took.as_millis() as u64,
            "{id}: replanned for {slots} slots{costs}, {moved} instances moved to other buckets"
        );
    }
}

/// Drops a large value on another thread: it may have millions of parts, and the actor serves all workers meanwhile.
pub(super) fn drop_elsewhere<T: Send + 'static>(value: T) {
    // A failed start drops the value here.
    let _ = thread::Builder::new().name(DROP_THREAD.to_owned()).spawn(move || drop(value));
}
