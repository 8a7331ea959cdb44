//! Reports of workers about the instances of their leases. A report under an expired lease does not count.

use super::Manager;
use crate::message::{Report, ReportedEnd, TaskFailure};
use crate::study::{Study, TaskTimings};
use crate::{InstanceId, LeaseId, PlanId, WorkerId};
use pleach_regions::RegionKey;
use std::time::Duration;

impl Manager {
    /// Handles a worker's reports on instances of a study, one after the other, and then grants what is ready. Returns for
    /// each report whether it counted.
    pub fn handle_reports(&mut self, worker: WorkerId, id: PlanId, reports: &[Report]) -> Vec<bool> {
        let Some(study) = self.studies.get_mut(&id) else { return vec![false; reports.len()] };
        let mut ran = TaskTimings::default();
        let handle = |Report { lease, instance, end, tasks }: &Report| {
            let counted = match end {
                ReportedEnd::Done { shared, .. } => {
                    // First: a grant of readers names the locations that are known by then.
                    study.note_shared(*instance, shared);
                    study.handle_done(worker, *lease, *instance, self.now)
                }
                ReportedEnd::Failed(cause) => study.handle_failed(worker, *lease, *instance, cause),
            };
            ran.add(study.handle_ran(*instance, tasks));
            counted
        };
        let counted = reports.iter().map(handle).collect();
        // The number of instances that workers with a time limit can finish depends on it.
        self.members.record_tasks(worker, ran);
        self.follow(id);
        self.schedule();
        counted
    }

    /// Finishes an instance. Returns whether the report counted: a report under an expired lease is fenced, since
    /// another worker has the instance now.
    pub fn handle_done(
        &mut self,
        worker: WorkerId,
        id: PlanId,
        lease: LeaseId,
        instance: InstanceId,
    ) -> bool {
        let now = self.now;
        self.study_event(id, |study| study.handle_done(worker, lease, instance, now))
    }

    /// Fails an instance and everything that reads from it. Returns whether the report counted.
    pub fn handle_failed(
        &mut self,
        worker: WorkerId,
        id: PlanId,
        lease: LeaseId,
        instance: InstanceId,
        cause: &TaskFailure,
    ) -> bool {
        self.study_event(id, |study| study.handle_failed(worker, lease, instance, cause))
    }

    /// Handles an instance whose input regions could not be fetched from peers (see
    /// [`Study::handle_missing_input`]). Returns whether the report counted.
    pub fn handle_missing_input(
        &mut self,
        worker: WorkerId,
        id: PlanId,
        lease: LeaseId,
        instance: InstanceId,
        keys: &[RegionKey],
    ) -> bool {
        self.study_event(id, |study| study.handle_missing_input(worker, lease, instance, keys))
    }

    /// Takes back unstarted instances of a lease. Returns whether the lease belonged to the worker.
    pub fn handle_returned(
        &mut self,
        worker: WorkerId,
        id: PlanId,
        lease: LeaseId,
        instances: &[InstanceId],
    ) -> bool {
        // Before the study clears the steal request: only a return without one shows a lack of time.
        if !instances.is_empty() {
            self.note_late(worker, id, lease);
        }
        self.study_event(id, |study| study.handle_returned(worker, lease, instances))
    }

    /// Takes back begun instances of a lease that others can continue, with their predicted path. See
    /// [`handle_returned`](Self::handle_returned).
    pub fn handle_spare(
        &mut self,
        worker: WorkerId,
        id: PlanId,
        lease: LeaseId,
        instances: &[InstanceId],
        path: Duration,
    ) -> bool {
        self.study_event(id, |study| {
            if study.leased(lease).is_none_or(|(holder, _)| holder != worker) {
                return false;
            }
            study.record_begun(lease, instances, path);
            // Also without instances: the lease could not be asked again otherwise.
            let mut counted = study.handle_returned(worker, lease, &[]);
            // Each in a bucket of its own: several workers wait, or will.
            for instance in instances {
                counted |= study.handle_returned(worker, lease, &[*instance]);
            }
            counted
        })
    }

    pub(super) fn study_event(&mut self, id: PlanId, event: impl FnOnce(&mut Study) -> bool) -> bool {
        let Some(study) = self.studies.get_mut(&id) else { return false };
        let counted = event(study);
        self.follow(id);
        self.schedule();
        counted
    }
}
