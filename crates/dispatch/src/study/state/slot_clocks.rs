//! Clocks of leases without a report: the time that each bucket takes on a slot of its worker before its first task.
//!
//! A clock starts with the grant to a worker with an idle slot. A bucket that is granted in advance is queued, and its clock
//! starts when another lease of the worker ends: later stages first, as the worker starts them. The first report stops the
//! clock. The tasks of that report and transfers of inputs do not count.
//!
//! Invariants: a worker has a clock for each of its leases that was granted here and has no report. A queued lease has a
//! clock that has not started.

use crate::message::{TaskOutcome, TaskReport};
use crate::{InstanceId, LeaseId, WorkerId};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Facts about a granted lease.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GrantedLease {
    pub(crate) worker: WorkerId,
    pub(crate) stage: usize,
    pub(crate) now: Duration,
    /// The worker has an idle slot.
    pub(crate) has_slot: bool,
    /// Predicted time to transfer its inputs. `None` if the lease cannot be measured.
    pub(crate) transfer: Option<Duration>,
}

#[derive(Debug)]
struct Clock {
    stage: usize,
    granted: Duration,
    /// `None` while the lease is queued.
    started: Option<Duration>,
    /// Time for the transfer of inputs, after the start. `None` if the lease is not measured.
    transfer: Option<Duration>,
}

#[derive(Debug, Default)]
struct WorkerClocks {
    by_lease: BTreeMap<LeaseId, Clock>,
    /// Leases without a slot, in the order of their starts by the worker.
    queued: BTreeSet<(Reverse<usize>, LeaseId)>,
}

/// All clocks of a study, and the overheads that they have measured.
#[derive(Debug, Default)]
pub(crate) struct SlotClocks {
    by_worker: BTreeMap<WorkerId, WorkerClocks>,
    /// Time of the last reported instance on its slot, until its tasks are known.
    stopped: Option<(InstanceId, Duration)>,
    /// Seconds of overhead of each measured lease.
    measured: Vec<f64>,
}

impl SlotClocks {
    /// Adds the clock of a granted lease.
    pub(crate) fn grant(&mut self, lease: LeaseId, granted: GrantedLease) {
        let GrantedLease { worker, stage, now, has_slot, transfer } = granted;
        let clocks = self.by_worker.entry(worker).or_default();
        let started = has_slot.then_some(now);
        clocks.by_lease.insert(lease, Clock { stage, granted: now, started, transfer });
        if !has_slot {
            clocks.queued.insert((Reverse(stage), lease));
        }
    }

    /// Stops the clock of a lease with its first report.
    pub(crate) fn report(&mut self, worker: WorkerId, lease: LeaseId, instance: InstanceId, now: Duration) {
        let Some(clocks) = self.by_worker.get_mut(&worker) else { return };
        let Some(clock) = clocks.by_lease.remove(&lease) else { return };
        match (clock.started, clock.transfer) {
            (Some(started), Some(transfer)) => {
                let on_slot = now.saturating_sub(started).saturating_sub(transfer);
                self.stopped = Some((instance, on_slot));
            }
            (Some(_), None) => {}
            // The worker has started it before others, which got its slot here.
            (None, _) => {
                clocks.queued.remove(&(Reverse(clock.stage), lease));
                let started = clocks.by_lease.values_mut().filter(|clock| clock.started.is_some());
                started.for_each(|clock| clock.transfer = None);
            }
        }
    }

    /// Measures the lease whose clock the report of an instance has stopped, with the tasks of that report. Reports without
    /// an executed task do not count: reuse takes a time of its own.
    pub(crate) fn handle_tasks(&mut self, instance: InstanceId, tasks: &[TaskReport]) {
        let Some((_, on_slot)) = self.stopped.take().filter(|(stopped, _)| *stopped == instance) else {
            return;
        };
        if let Some(busy) = busy_seconds(tasks) {
            self.measured.push((on_slot.as_secs_f64() - busy).max(0.0));
        }
    }

    /// Excludes a lease that has returned an instance before its first report: tasks of it may have run.
    pub(crate) fn exclude(&mut self, worker: WorkerId, lease: LeaseId) {
        let clocks = self.by_worker.get_mut(&worker);
        if let Some(clock) = clocks.and_then(|clocks| clocks.by_lease.get_mut(&lease)) {
            clock.transfer = None;
        }
    }

    /// Removes an ended lease. Its slot goes to the next queued lease of the worker, whose clock starts.
    pub(crate) fn end(&mut self, worker: WorkerId, lease: LeaseId, now: Duration) {
        let Some(clocks) = self.by_worker.get_mut(&worker) else { return };
        let ended = clocks.by_lease.remove(&lease);
        let was_queued = ended.is_some_and(|clock| clocks.queued.remove(&(Reverse(clock.stage), lease)));
        if !was_queued
            && let Some((_, next)) = clocks.queued.pop_first()
            && let Some(clock) = clocks.by_lease.get_mut(&next)
        {
            // Inputs are transferred while the bucket is queued.
            let waited = now.saturating_sub(clock.granted);
            clock.transfer = clock.transfer.map(|transfer| transfer.saturating_sub(waited));
            clock.started = Some(now);
        }
        if clocks.by_lease.is_empty() {
            self.by_worker.remove(&worker);
        }
    }

    /// Removes the clocks of a worker that leaves.
    pub(crate) fn remove_worker(&mut self, worker: WorkerId) {
        self.by_worker.remove(&worker);
    }

    /// Takes the measured overheads in seconds, oldest first.
    pub(crate) fn take_measured(&mut self) -> Vec<f64> {
        std::mem::take(&mut self.measured)
    }

    /// Compares the queues with the clocks, and the clocks with the leases.
    pub(crate) fn check(&self, is_lease: impl Fn(WorkerId, LeaseId) -> bool) -> Result<(), String> {
        for (worker, clocks) in &self.by_worker {
            if let Some(lease) = clocks.by_lease.keys().find(|lease| !is_lease(*worker, **lease)) {
                return Err(format!("{lease} of {worker} has ended, and has a clock"));
            }
            let waiting = clocks.by_lease.iter().filter(|(_, clock)| clock.started.is_none());
            let waiting: BTreeSet<_> = waiting.map(|(id, clock)| (Reverse(clock.stage), *id)).collect();
            if waiting != clocks.queued {
                return Err(format!("{worker} has queued {:?}, counted are {waiting:?}", clocks.queued));
            }
        }
        Ok(())
    }
}

/// Returns the seconds from the start of the first executed task to the end of the last. Without start times, the sum of their
/// seconds. `None` without an executed task.
#[expect(clippy::cast_precision_loss, reason = "microseconds since 1970 are below 2^53")]
fn busy_seconds(tasks: &[TaskReport]) -> Option<f64> {
    let (mut first, mut last, mut sum, mut is_timed) = (u64::MAX, 0.0_f64, None, true);
    for report in tasks {
        let TaskOutcome::Ran { seconds, .. } = report.done else { continue };
        if !seconds.is_finite() || seconds < 0.0 {
            continue;
        }
        sum = Some(sum.unwrap_or(0.0) + seconds);
        let started = report.provenance.started_micros;
        is_timed &= started > 0;
        first = first.min(started);
        last = last.max(started as f64 * 1e-6 + seconds);
    }
    // Tasks may run at the same time, or after the look-up of others.
    let timed = || (last - first as f64 * 1e-6).max(0.0);
    sum.map(|sum| if is_timed { timed() } else { sum })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{ReuseSource, TaskProvenance};

    const WORKER: WorkerId = WorkerId(7);

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn ran(seconds: f64, started_micros: u64) -> TaskReport {
        let done = TaskOutcome::Ran { seconds, predicted_seconds: 0.0, digests: 0, digest_seconds: 0.0 };
        let provenance = TaskProvenance { started_micros, ..TaskProvenance::default() };
        TaskReport { task: 0, stage: 0, done, cache_seconds: 0.0, provenance }
    }

    fn granted(seconds: u64, stage: usize, has_slot: bool) -> GrantedLease {
        let transfer = Some(Duration::ZERO);
        GrantedLease { worker: WORKER, stage, now: at(seconds), has_slot, transfer }
    }

    /// Reports an instance whose task took 2 s.
    fn report(clocks: &mut SlotClocks, lease: u64, seconds: u64) {
        clocks.report(WORKER, LeaseId(lease), InstanceId(0), at(seconds));
        clocks.handle_tasks(InstanceId(0), &[ran(2.0, 0)]);
    }

    #[test]
    fn overhead_is_the_time_from_the_grant_without_tasks_and_transfers() {
        let mut clocks = SlotClocks::default();
        clocks.grant(LeaseId(1), granted(10, 0, true));
        report(&mut clocks, 1, 17);
        // Only the first report counts.
        report(&mut clocks, 1, 30);
        let transfer = Some(at(4));
        clocks.grant(LeaseId(2), GrantedLease { transfer, ..granted(40, 0, true) });
        report(&mut clocks, 2, 47);
        clocks.grant(LeaseId(3), GrantedLease { transfer: None, ..granted(40, 0, true) });
        report(&mut clocks, 3, 47);
        clocks.grant(LeaseId(4), granted(50, 0, true));
        clocks.exclude(WORKER, LeaseId(4));
        report(&mut clocks, 4, 57);
        assert_eq!(clocks.take_measured(), [5.0, 1.0]);
        assert_eq!(clocks.take_measured(), [0.0; 0]);
    }

    #[test]
    fn clock_of_a_queued_lease_starts_when_a_slot_is_free() {
        let mut clocks = SlotClocks::default();
        clocks.grant(LeaseId(1), granted(0, 0, true));
        clocks.grant(LeaseId(2), granted(0, 0, false));
        // The transfer takes 30 s, and 20 s of it pass in the queue.
        let transfer = Some(at(30));
        clocks.grant(LeaseId(3), GrantedLease { transfer, ..granted(0, 1, false) });
        report(&mut clocks, 1, 5);
        clocks.end(WORKER, LeaseId(1), at(20));
        report(&mut clocks, 3, 36);
        clocks.end(WORKER, LeaseId(3), at(40));
        report(&mut clocks, 2, 48);
        assert_eq!(clocks.take_measured(), [3.0, 4.0, 6.0], "the later stage starts first");
        clocks.end(WORKER, LeaseId(2), at(50));
        assert!(clocks.by_worker.is_empty());
    }

    #[test]
    fn lease_that_starts_out_of_order_measures_nothing() {
        let mut clocks = SlotClocks::default();
        clocks.grant(LeaseId(1), granted(0, 0, true));
        clocks.grant(LeaseId(2), granted(0, 0, false));
        clocks.grant(LeaseId(3), granted(0, 0, false));
        clocks.end(WORKER, LeaseId(1), at(10));
        report(&mut clocks, 3, 20);
        report(&mut clocks, 2, 90);
        assert_eq!(clocks.take_measured(), [0.0; 0]);
    }

    #[test]
    fn tasks_of_a_report_occupy_the_slot_from_the_first_start_to_the_last_end() {
        let reused = TaskReport { done: TaskOutcome::Reused(ReuseSource::Value), ..ran(0.0, 0) };
        assert_eq!(busy_seconds(&[reused]), None);
        assert_eq!(busy_seconds(&[ran(2.0, 0), reused, ran(3.0, 0)]), Some(5.0));
        // Two tasks at the same time, and a third one after a pause of 1 s.
        let seconds = busy_seconds(&[ran(2.0, 1_000_000), ran(3.0, 1_500_000), ran(1.0, 5_500_000)]).unwrap();
        assert!((seconds - 5.5).abs() < 1e-6, "{seconds}");
        assert_eq!(busy_seconds(&[ran(f64::NAN, 1)]), None);
    }
}
