//! Replication state of a worker: reports that wait until their outputs are durable, and replicas of other workers'
//! regions.
//!
//! Invariants:
//! - Every finished instance that is not reported yet either is being shared or awaits a replica. Without such
//!   instances the worker may leave.
//! - An instance awaits a replica only while the link is open, because a lost link brings no answers.
//! - Every replica in memory belongs to a study. Its release removes both.

use pleach_dispatch::message::{Report, ReportedEnd};
use pleach_dispatch::{InstanceId, LeaseId, PlanId};
use pleach_regions::RegionKey;
use std::collections::HashMap;

/// A finished instance of a lease.
pub(crate) type FinishedInstance = (PlanId, LeaseId, InstanceId);

/// Replication state of a worker.
#[derive(Default)]
pub(crate) struct Replication {
    /// Finished instances whose outputs are being written to a shared tier.
    sharing: usize,
    /// Reports that wait until another worker has fetched the outputs.
    awaiting: HashMap<FinishedInstance, Report>,
    /// Replicas of other workers' regions, kept in memory while nothing else needs the space.
    replicas: HashMap<RegionKey, PlanId>,
}

impl Replication {
    /// Counts an instance whose outputs are written to a shared tier from now on.
    pub(crate) fn begin_sharing(&mut self) {
        self.sharing += 1;
    }

    /// Ends the write of an instance's outputs, whether it succeeded or not.
    pub(crate) fn end_sharing(&mut self) {
        assert!(self.sharing > 0, "a write to a shared tier ends once");
        self.sharing -= 1;
    }

    /// Delays the report of an instance until [`take_report`](Self::take_report).
    pub(crate) fn await_replica(&mut self, finished: FinishedInstance, report: Report) {
        assert!(matches!(report.end, ReportedEnd::Done { .. }), "only a finished instance has outputs");
        self.awaiting.insert(finished, report);
    }

    /// Takes the report of an instance that no longer waits. `None` if the report was taken before.
    pub(crate) fn take_report(&mut self, finished: FinishedInstance) -> Option<Report> {
        self.awaiting.remove(&finished)
    }

    /// Returns the instances that await a replica.
    pub(crate) fn awaiting(&self) -> Vec<FinishedInstance> {
        self.awaiting.keys().copied().collect()
    }

    pub(crate) fn is_awaiting(&self) -> bool {
        !self.awaiting.is_empty()
    }

    /// Returns whether a finished instance is not reported yet.
    pub(crate) fn has_unreported(&self) -> bool {
        self.sharing > 0 || self.is_awaiting()
    }

    pub(crate) fn add_replica(&mut self, key: RegionKey, study: PlanId) {
        self.replicas.insert(key, study);
    }

    /// Removes a replica that was dropped or released. Returns its study.
    pub(crate) fn remove_replica(&mut self, key: RegionKey) -> Option<PlanId> {
        self.replicas.remove(&key)
    }

    /// Iterates over the replicas in memory.
    pub(crate) fn replicas(&self) -> impl Iterator<Item = RegionKey> {
        self.replicas.keys().copied()
    }
}
