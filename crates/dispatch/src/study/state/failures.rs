//! Failures: the causes of failed instances, and the evidence against instances that may fail.
//!
//! A worker may be lost for any reason, so one crash says little about an instance. After several, the instance is a
//! suspect and runs on otherwise empty workers only, in ever smaller groups of suspects. After several more crashes while it
//! ran with nothing else, it fails.
//!
//! Invariants: an instance has at most one cause and keeps it. Crash counts are positive, except after the reattach
//! of the worker that was counted. The report that an instance is done ends its crash count.

use crate::InstanceId;
use crate::message::TaskFailure;
use std::collections::{BTreeMap, HashMap};

/// Crash count of a suspect instance. One lost worker is an accident, and two at once may be one as well.
const SUSPECTED_AFTER: u32 = 2;

/// Crash limit: a suspect fails after 3 lost workers that ran nothing else.
const GIVEN_UP_AFTER: u32 = 3;

/// The suspects of a lost lease run in at most 16 groups. One instance in a lease of 1,000 that crashes its workers is found
/// after 2 such crashes more (groups of 63, 4, 1), and the innocent ones of a worker that was lost by accident cost 16
/// leases, not 1,000.
const GROUPS: u32 = 16;

/// Maximum of missing-input reports of an instance: each time its input was computed and could not be fetched.
const MAX_MISSING_INPUTS: u32 = 10;

/// Lost workers that had an instance.
#[derive(Clone, Copy, Debug)]
struct Crashes {
    /// Number of the lost workers.
    count: u32,
    /// Number of those among them that ran nothing else.
    alone: u32,
    /// Open instances of the smallest of the lost leases: one of them is the cause, if any is.
    among: u32,
}

/// Causes of failed instances, and counts for the others.
#[derive(Debug, Default)]
pub(crate) struct Failures {
    /// Origin and cause of each failed instance.
    causes: BTreeMap<InstanceId, (InstanceId, TaskFailure)>,
    crashes: HashMap<InstanceId, Crashes>,
    /// Number of missing-input reports of each instance.
    missing_inputs: HashMap<InstanceId, u32>,
}

impl Failures {
    /// Records the cause of a failed instance.
    pub(crate) fn record(&mut self, instance: InstanceId, origin: InstanceId, cause: &TaskFailure) {
        let before = self.causes.insert(instance, (origin, cause.clone()));
        assert!(before.is_none(), "{instance} fails with {origin}, and failed before: {before:?}");
    }

    /// Returns the origin and the cause of a failed instance.
    pub(crate) fn cause(&self, instance: InstanceId) -> Option<&(InstanceId, TaskFailure)> {
        self.causes.get(&instance)
    }

    /// Counts a lost worker that had an instance in a lease of `open` unreported ones.
    pub(crate) fn record_crash(&mut self, instance: InstanceId, open: usize) {
        let crashes = self.crashes.entry(instance).or_insert(Crashes { count: 0, alone: 0, among: u32::MAX });
        crashes.alone += u32::from(open == 1 && crashes.count >= SUSPECTED_AFTER);
        crashes.count += 1;
        crashes.among = crashes.among.min(u32::try_from(open).unwrap_or(u32::MAX));
    }

    /// Takes back a crash: the worker has reattached. Returns whether the instance had crashes and is no suspect now.
    pub(crate) fn retract_crash(&mut self, instance: InstanceId) -> bool {
        let Some(crashes) = self.crashes.get_mut(&instance) else { return false };
        crashes.count = crashes.count.saturating_sub(1);
        crashes.alone = crashes.alone.saturating_sub(1);
        !self.is_suspected(instance)
    }

    /// Clears a finished instance of suspicion. Returns whether it had crashes.
    pub(crate) fn clear_crashes(&mut self, instance: InstanceId) -> bool {
        self.crashes.remove(&instance).is_some()
    }

    /// Returns whether the crash count of an instance requires isolation.
    pub(crate) fn is_suspected(&self, instance: InstanceId) -> bool {
        self.crashes.get(&instance).is_some_and(|crashes| crashes.count >= SUSPECTED_AFTER)
    }

    /// Returns the size of the largest group in which a suspect may run.
    pub(crate) fn group_limit(&self, instance: InstanceId) -> usize {
        self.crashes.get(&instance).map_or(usize::MAX, |crashes| crashes.among.div_ceil(GROUPS) as usize)
    }

    /// Returns the cause with which an instance fails that has reached the crash limit. `None` for any other.
    pub(crate) fn crash_limit_cause(&self, instance: InstanceId) -> Option<TaskFailure> {
        let Crashes { count, alone, .. } =
            self.crashes.get(&instance).filter(|crashes| crashes.alone >= GIVEN_UP_AFTER)?;
        let cause =
            format!("{count} workers were lost while they ran it, the last {alone} with nothing else to do");
        Some(TaskFailure { at: "worker".to_owned(), cause })
    }

    /// Counts a report of missing inputs. Returns the cause with which the instance fails, once it has reached the
    /// limit.
    pub(crate) fn record_missing_input(&mut self, instance: InstanceId) -> Option<TaskFailure> {
        let reports = self.missing_inputs.entry(instance).or_default();
        *reports += 1;
        (*reports >= MAX_MISSING_INPUTS).then(|| {
            let cause = format!("what it reads could not be had from other workers, {reports} times");
            TaskFailure { at: "input".to_owned(), cause }
        })
    }

    /// Compares the causes with the failed instances.
    pub(crate) fn check(&self, is_failed: impl Fn(InstanceId) -> bool, failed: usize) -> Result<(), String> {
        match self.causes.iter().find(|(id, (origin, _))| !is_failed(**id) || !is_failed(*origin)) {
            Some((id, (origin, _))) => {
                Err(format!("{id} or its origin {origin} has a cause and is not failed"))
            }
            None if self.causes.len() != failed => {
                Err(format!("{failed} instances failed, {} have a cause", self.causes.len()))
            }
            None => Ok(()),
        }
    }
}
