//! What idle workers can be helped with: a part of what others have not begun, or a lease that is far behind, once more.
//!
//! One pass over all leases finds it for all workers that are idle at one moment; who they are is the manager's.

use super::{Lease, Study};
use crate::{LeaseId, WorkerId};
use std::collections::BinaryHeap;
use std::time::Duration;

/// Leases of one study that somebody can be helped with, as they are at one moment.
#[derive(Debug, Default)]
pub(crate) struct RebalanceCandidates {
    /// By what is open of them: those of which a part may be asked back.
    shareable: BinaryHeap<(usize, LeaseId)>,
    /// By how long they have been silent: those that may be tried twice.
    late: BinaryHeap<(Duration, LeaseId)>,
}

/// When a lease is far behind.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StragglerPolicy {
    /// It has been silent for so many times what an instance of its stage takes.
    pub(crate) factor: u32,
    /// And for so long at least.
    pub(crate) least: Duration,
}

impl Study {
    /// How long a lease of a stage is silent that is far behind; `None`: nobody has finished an instance of it.
    pub(super) fn straggler_timeout(&self, stage: usize, behind: StragglerPolicy) -> Option<Duration> {
        Some(self.report_interval(stage)?.saturating_mul(behind.factor).max(behind.least))
    }

    /// Looks through all leases.
    pub(crate) fn helpable(&self, now: Duration, behind: StragglerPolicy) -> RebalanceCandidates {
        let usual: Vec<Option<Duration>> =
            (0..self.pace.len()).map(|stage| self.straggler_timeout(stage, behind)).collect();
        let mut helpable = RebalanceCandidates::default();
        for (id, lease) in &self.leases {
            if is_shareable(lease) {
                helpable.shareable.push((lease.open.len(), *id));
            }
            let Some(first) = lease.open.first().filter(|_| lease.twin.is_none()) else { continue };
            let silent = now.saturating_sub(lease.since);
            let stage = self.plan.instances[first.index()].stage;
            let is_late = usual.get(stage).copied().flatten().is_some_and(|usual| silent > usual);
            let bucket = self.instances[first.index()].bucket;
            let is_alone =
                || self.buckets[bucket.index()].alone || lease.open.iter().any(|id| self.is_suspected(*id));
            if is_late && !is_alone() {
                helpable.late.push((silent, *id));
            }
        }
        helpable
    }

    /// The lease of another worker that has most to hand back, of those that have not been asked and are of a stage that
    /// suits; its worker is asked now. It has more than one instance.
    pub(crate) fn request_steal(
        &mut self,
        helpable: &mut RebalanceCandidates,
        worker: WorkerId,
        suits: impl Fn(usize) -> bool,
    ) -> Option<(WorkerId, LeaseId)> {
        let id = self.first(&mut helpable.shareable, worker, suits, is_shareable)?;
        let lease = self.leases.get_mut(&id)?;
        lease.asked_back = true;
        Some((lease.worker, id))
    }

    /// The lease of another worker that has been silent for longest, of those that are far behind and of a stage that suits.
    pub(crate) fn straggler(
        &self,
        helpable: &mut RebalanceCandidates,
        worker: WorkerId,
        suits: impl Fn(usize) -> bool,
    ) -> Option<LeaseId> {
        self.first(&mut helpable.late, worker, suits, |lease| lease.twin.is_none())
    }

    /// Takes the first one that is another worker's, suits, and still is what it was. What is only not for this worker stays.
    fn first<K: Ord>(
        &self,
        heap: &mut BinaryHeap<(K, LeaseId)>,
        worker: WorkerId,
        suits: impl Fn(usize) -> bool,
        is_still: impl Fn(&Lease) -> bool,
    ) -> Option<LeaseId> {
        let mut others = Vec::new();
        let mut found = None;
        while let Some((key, id)) = heap.pop() {
            let Some(lease) = self.leases.get(&id).filter(|lease| is_still(lease)) else { continue };
            if lease.worker != worker && self.stage_of(id).is_some_and(&suits) {
                found = Some(id);
                break;
            }
            others.push((key, id));
        }
        heap.extend(others);
        found
    }

    /// Whether a lease's worker has been asked for a part of it and has not answered.
    #[must_use]
    pub fn is_asked_back(&self, lease: LeaseId) -> bool {
        self.leases.get(&lease).is_some_and(|lease| lease.asked_back)
    }

    /// The stage of a lease's instances.
    #[must_use]
    pub fn stage_of(&self, lease: LeaseId) -> Option<usize> {
        let first = self.leases.get(&lease)?.open.first()?;
        Some(self.plan.instances[first.index()].stage)
    }
}

/// Whether a part of a lease may be asked back.
fn is_shareable(lease: &Lease) -> bool {
    !lease.asked_back && lease.twin.is_none() && lease.open.len() > 1
}
