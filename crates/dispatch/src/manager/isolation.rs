//! Isolation: reserves workers for suspect instances. Under constant load no worker would ever become empty by itself.
//!
//! Suspect instances go to otherwise empty workers (`study/isolation`). For a suspect that has waited too long,
//! the manager reserves the least busy worker that can run it. The worker gets no grant until it is empty.

use super::rebalance::BEHIND;
use super::{Manager, WorkerEntry};
use crate::study::Study;
use crate::{PlanId, WorkerId};
use std::collections::BTreeSet;

/// At most 1 in 4 workers is reserved for isolation: suspect instances may be many, but the others are more.
const ONE_OF: usize = 4;

/// Maximum of reserved workers: the search for the least busy one visits all workers.
const MAX_AT_ONCE: usize = 8;

impl Manager {
    /// Reserves workers for overdue isolated buckets and releases the others.
    pub(super) fn reserve_isolation_workers(&mut self) {
        let mut overdue: Vec<(PlanId, usize)> = Vec::new();
        for (id, study) in &mut self.studies {
            overdue
                .extend(study.overdue(self.now, MAX_AT_ONCE, BEHIND).into_iter().map(|stage| (*id, stage)));
        }
        if overdue.is_empty() && self.reserved.is_empty() {
            return;
        }
        let there = self.members.staying().count();
        // At least 1, because fewer than 4 workers may have a suspect to isolate as well.
        let most = (there / ONE_OF).clamp(1, MAX_AT_ONCE);
        let mut reserved = BTreeSet::new();
        for (id, stage) in overdue {
            if reserved.len() == most {
                break;
            }
            reserved.extend(self.least_busy(id, stage, &reserved));
        }
        assert!(reserved.len() <= most, "{reserved:?} are reserved for isolation, at most {most} may be");
        if std::mem::replace(&mut self.reserved, reserved) != self.reserved {
            self.schedule();
        }
    }

    /// Returns the worker with the fewest leases among those that can run a stage and are not `taken`. Prefers
    /// workers that are reserved already. `None` if no worker qualifies.
    fn least_busy(&self, id: PlanId, stage: usize, taken: &BTreeSet<WorkerId>) -> Option<WorkerId> {
        let can = |(worker, member): &(WorkerId, &WorkerEntry)| {
            let runs = self.runs(*worker, member, id);
            let suits = runs.is_some_and(|runs| runs.get(stage).copied().unwrap_or(true));
            suits && !taken.contains(worker) && self.has_room(*worker, id)
        };
        // A change of worker from tick to tick would end each reservation before the worker is empty.
        let rank = |worker: &WorkerId| (!self.reserved.contains(worker), self.leases_of(*worker), *worker);
        self.members.staying().filter(can).map(|(worker, _)| worker).min_by_key(rank)
    }

    /// Releases reserved workers once no isolated instance is waiting.
    pub(super) fn release_isolation_workers(&mut self) {
        if !self.reserved.is_empty() && !self.studies.values().any(Study::has_ready_isolated) {
            self.reserved.clear();
        }
    }
}
