//! Queries: studies and workers as seen by the shell.

use super::{Manager, WorkerEntry, WorkerInfo};
use crate::study::Study;
use crate::{PlanId, WorkerId};
use pleach_workflow::is_joining;
use std::collections::BTreeSet;

impl Manager {
    /// Returns a study that is neither complete nor canceled. `None` for any other.
    #[must_use]
    pub fn study(&self, id: PlanId) -> Option<&Study> {
        self.studies.get(&id)
    }

    /// Counts the slots of workers that are not draining.
    #[must_use]
    pub fn slots(&self) -> u32 {
        let slots = self.members.staying().map(|(_, member)| member.facts().slots);
        slots.fold(0, u32::saturating_add)
    }

    /// Counts workers that are not draining and can run some stage of a study: they have its operations and enough
    /// memory.
    #[must_use]
    pub fn able_workers(&self, id: PlanId) -> usize {
        let runs =
            |member: &WorkerEntry| member.studies.get(&id).is_some_and(|suited| suited.runs.contains(&true));
        self.members.staying().filter(|(_, member)| runs(member)).count()
    }

    /// Returns the number of leases of a worker and whether it drains. `None` if it has left.
    #[must_use]
    pub fn worker(&self, worker: WorkerId) -> Option<(usize, bool)> {
        let member = self.members.get(worker)?;
        Some((self.leases_of(worker), member.is_draining()))
    }

    /// Returns the facts that a worker reported when it joined. `None` if it has left.
    #[must_use]
    pub fn worker_info(&self, worker: WorkerId) -> Option<&WorkerInfo> {
        self.members.get(worker).map(WorkerEntry::facts)
    }

    /// Returns the operations, by name and version, of the studies' stages that a worker does not have.
    #[must_use]
    pub fn missing_operations(&self, worker: WorkerId) -> Vec<(String, u32)> {
        let Some(operations) = self.members.get(worker).and_then(|member| member.facts().operations.as_ref())
        else {
            return Vec::new();
        };
        let stages = self.studies.values().flat_map(|study| &study.plan().stages);
        let needed =
            stages.flat_map(|stage| stage.tasks.iter().map(|task| (task.operation.clone(), task.version)));
        let is_missing = |operation: &(String, u32)| {
            !operations.contains(operation) && !is_joining(&operation.0, operation.1)
        };
        let lacking: BTreeSet<_> = needed.filter(is_missing).collect();
        lacking.into_iter().collect()
    }

    pub(super) fn leases_of(&self, worker: WorkerId) -> usize {
        self.studies.values().map(|study| study.leases_of(worker)).sum()
    }
}
