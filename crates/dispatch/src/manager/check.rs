//! The manager's invariants, checked after every event in tests and on demand in a debugger.

use super::Manager;
use crate::study::Eligibility;

impl Manager {
    /// Compares all redundant state with a recount, including that of every study.
    ///
    /// # Errors
    /// A description of the first violated invariant.
    pub fn sanity_check(&self) -> Result<(), String> {
        for (id, study) in &self.studies {
            study.sanity_check().map_err(|error| format!("{id}: {error}"))?;
            if let Some(worker) = study.workers().find(|worker| !self.members.contains(*worker)) {
                return Err(format!("{id} counts on {worker}, which is not there"));
            }
        }
        self.check_replicas()?;
        self.members.check()?;
        for (worker, member) in self.members.iter() {
            let queued = self.queue.count(worker);
            if queued != (usize::from(member.requested > 0), usize::from(member.wants_later)) {
                return Err(format!("{worker} is queued {queued:?} times, and is {member:?}"));
            }
            if member.studies.keys().ne(self.studies.keys()) {
                return Err(format!("{worker} knows other studies than there are"));
            }
            let idle = member.requested > 0 && !self.stopping && !self.holding;
            let alone = self.studies.values().any(|study| study.runs_isolated(worker));
            let suits = |(id, study): (&crate::PlanId, &crate::study::Study)| {
                let runs = self.runs(worker, member, *id).unwrap_or_default();
                study
                    .first_ready(Eligibility {
                        after: None,
                        runs: &runs,
                        is_alone: false,
                        near: self.by_data.then(|| member.reader(worker)),
                        idle: 1,
                        may_steal: self.may_steal(worker),
                    })
                    .is_some()
                    && member.studies[id].introduced
                    && !self.waits_for_slot(worker, study)
            };
            let is_reserved = self.reserved.contains(&worker) && self.leases_of(worker) > 0;
            if self.reserved.contains(&worker) && member.is_draining() {
                return Err(format!("{worker} is reserved, and about to leave"));
            }
            let waits = idle && !alone && !is_reserved && !self.has_more_grants();
            if waits && self.studies.iter().any(suits) {
                return Err(format!("{worker} waits, and buckets that suit it are ready"));
            }
        }
        Ok(())
    }
}
