//! Failures: the causes of failed instances, and the evidence against instances that may fail.
//!
//! A worker may be lost for any reason, so one crash says little about an instance. After several, the instance is a
//! suspect and runs on otherwise empty workers only, and after several more there it fails.
//!
//! Invariants: an instance has at most one cause and keeps it. Crash counts are positive, except after the reattach
//! of the worker that was counted. The report that an instance is done ends its crash count.

use crate::InstanceId;
use crate::message::TaskFailure;
use std::collections::{BTreeMap, HashMap};

/// Crash count of a suspect instance. One lost worker is an accident, and two at once may be one as well.
const SUSPECTED_AFTER: u32 = 2;

/// Crash limit: a suspect fails after 3 more lost workers that ran nothing else.
const GIVEN_UP_AFTER: u32 = SUSPECTED_AFTER + 3;

/// Maximum of missing-input reports of an instance: each time its input was computed and could not be fetched.
const MAX_MISSING_INPUTS: u32 = 10;

/// Causes of failed instances, and counts for the others.
#[derive(Debug, Default)]
pub(crate) struct Failures {
    /// Origin and cause of each failed instance.
    causes: BTreeMap<InstanceId, (InstanceId, TaskFailure)>,
    /// Crash count of each instance: the workers lost while they had it.
    crashes: HashMap<InstanceId, u32>,
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

    /// Counts a lost worker that had an instance.
    pub(crate) fn record_crash(&mut self, instance: InstanceId) {
        *self.crashes.entry(instance).or_default() += 1;
    }

    /// Takes back a crash: the worker has reattached. Returns whether the instance had crashes and is no suspect now.
    pub(crate) fn retract_crash(&mut self, instance: InstanceId) -> bool {
        let Some(crashes) = self.crashes.get_mut(&instance) else { return false };
        *crashes = crashes.saturating_sub(1);
        !self.is_suspected(instance)
    }

    /// Clears a finished instance of suspicion. Returns whether it had crashes.
    pub(crate) fn clear_crashes(&mut self, instance: InstanceId) -> bool {
        self.crashes.remove(&instance).is_some()
    }

    /// Returns whether any instance has crashes.
    pub(crate) fn has_crashes(&self) -> bool {
        !self.crashes.is_empty()
    }

    /// Returns whether the crash count of an instance requires isolation.
    pub(crate) fn is_suspected(&self, instance: InstanceId) -> bool {
        self.crashes.get(&instance).is_some_and(|crashes| *crashes >= SUSPECTED_AFTER)
    }

    /// Returns the cause with which an instance fails that has reached the crash limit. `None` for any other.
    pub(crate) fn crash_limit_cause(&self, instance: InstanceId) -> Option<TaskFailure> {
        let crashes = self.crashes.get(&instance).filter(|crashes| **crashes >= GIVEN_UP_AFTER)?;
        let cause = format!(
            "{crashes} workers were lost while they ran it, the last {} with nothing else to do",
            GIVEN_UP_AFTER - SUSPECTED_AFTER
        );
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
