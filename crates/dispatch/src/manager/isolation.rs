//! What has to be alone, and finds nobody who is: where there is always something for everybody, no worker ever has nothing.
//!
//! Instances with which workers were lost go to workers that have nothing else (`study/poison`). One that has waited for
//! long gets a worker of its own: the least busy one that can run it gets nothing more until it has nothing left.

use super::rebalance::BEHIND;
use super::{Manager, WorkerEntry};
use crate::study::Study;
use crate::{PlanId, WorkerId};
use std::collections::BTreeSet;

/// Of so many workers one may be kept from other work at a time: what is suspected may be many instances, and what is not is
/// more.
const ONE_OF: usize = 4;

/// Workers kept at a time, at most: looking for the least busy one goes over all of them.
const MAX_AT_ONCE: usize = 8;

impl Manager {
    /// Time has passed: chooses whom to keep for what has waited for too long, and lets others go on.
    pub(super) fn reserve_isolation_workers(&mut self) {
        let mut overdue: Vec<(PlanId, usize)> = Vec::new();
        for (id, study) in &mut self.studies {
            overdue.extend(study.overdue(self.now, BEHIND).into_iter().map(|stage| (*id, stage)));
        }
        if overdue.is_empty() && self.kept.is_empty() {
            return;
        }
        let there = self.members.values().filter(|member| !member.draining).count();
        let most = (there / ONE_OF).clamp(1, MAX_AT_ONCE);
        let mut kept = BTreeSet::new();
        for (id, stage) in overdue {
            if kept.len() == most {
                break;
            }
            kept.extend(self.least_busy(id, stage, &kept));
        }
        if std::mem::replace(&mut self.kept, kept) != self.kept {
            self.schedule();
        }
    }

    /// The worker that is alone soonest, of those that can run a stage and are not `taken`: who is kept already stays so.
    fn least_busy(&self, id: PlanId, stage: usize, taken: &BTreeSet<WorkerId>) -> Option<WorkerId> {
        let can = |(worker, member): &(&WorkerId, &WorkerEntry)| {
            let runs = self.runs(**worker, member, id);
            let suits = runs.is_some_and(|runs| runs.get(stage).copied().unwrap_or(true));
            suits && !member.draining && !taken.contains(worker) && self.has_room(**worker, id)
        };
        let rank = |worker: &WorkerId| (!self.kept.contains(worker), self.leases_of(*worker), *worker);
        self.members.iter().filter(can).map(|(worker, _)| *worker).min_by_key(rank)
    }

    /// Nobody is kept for what is not there any more.
    pub(super) fn release_isolation_workers(&mut self) {
        if !self.kept.is_empty() && !self.studies.values().any(Study::has_ready_isolated) {
            self.kept.clear();
        }
    }
}
