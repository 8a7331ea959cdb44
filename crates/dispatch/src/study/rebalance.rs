//! Work stealing and speculative execution: finds leases to steal from, and stragglers to grant twice.
//!
//! One pass over all leases finds candidates for all workers that are idle at one moment. The manager knows these workers.

use super::Study;
use super::state::{Lease, Throughput};
use crate::plan::ReuseScope;
use crate::{InstanceId, LeaseId, WorkerId};
use std::collections::BinaryHeap;
use std::time::Duration;

/// Candidates for stealing and speculative execution in one study at one moment.
#[derive(Debug, Default)]
pub(crate) struct RebalanceCandidates {
    /// Leases that can be stolen from, by the time until they end the study, and by their number of open instances.
    shareable: BinaryHeap<((Duration, usize), LeaseId)>,
    /// Stragglers, by the time since their last report.
    late: BinaryHeap<(Duration, LeaseId)>,
}

/// Condition under which a lease is a straggler.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StragglerPolicy {
    /// Time since its last report, as a multiple of the time of an instance of its stage.
    pub(crate) factor: u32,
    /// Minimum of that time.
    pub(crate) min_time: Duration,
}

impl StragglerPolicy {
    /// Returns the time without a report after which a lease of a stage is a straggler. `None` until an
    /// instance of the stage has been finished.
    pub(super) fn timeout(self, stage: usize, throughput: &Throughput) -> Option<Duration> {
        Some(throughput.report_interval(stage)?.saturating_mul(self.factor).max(self.min_time))
    }
}

impl Study {
    /// Finds the candidates among all leases.
    pub(crate) fn helpable(&self, now: Duration, behind: StragglerPolicy) -> RebalanceCandidates {
        let usual: Vec<Option<Duration>> =
            (0..self.throughput.stages()).map(|stage| behind.timeout(stage, &self.throughput)).collect();
        let mut helpable = RebalanceCandidates::default();
        for (id, lease) in self.leases.iter() {
            if self.may_share(lease, Duration::ZERO) {
                helpable.shareable.push(((self.remaining_path(lease), lease.open().len()), id));
            }
            let Some(first) = lease.open().first().filter(|_| lease.twin().is_none()) else { continue };
            let silent = now.saturating_sub(lease.since());
            let stage = self.plan.instances.at(*first).stage;
            let is_late = usual.get(stage).copied().flatten().is_some_and(|usual| silent > usual);
            // A suspect is never granted twice, since it could crash two workers.
            let is_isolated = lease.is_isolated();
            // Only the worker of the lease may have the outputs of a reopened parent.
            let lacks_input = || lease.open().iter().any(|id| self.unfinished_parents(*id) > 0);
            if is_late && !is_isolated && !lacks_input() {
                helpable.late.push((silent, id));
            }
        }
        helpable
    }

    /// Picks the victim: another worker's lease with the longest predicted path to the end of the study, or without
    /// predictions the most open instances. It is of a suitable stage and without a pending steal request. Marks it as requested. It has more than one instance.
    pub(crate) fn request_steal(
        &mut self,
        helpable: &mut RebalanceCandidates,
        worker: WorkerId,
        longer_than: Duration,
        suits: impl Fn(usize) -> bool,
    ) -> Option<(WorkerId, LeaseId)> {
        let is_still = |lease: &Lease| self.may_share(lease, longer_than);
        let id = self.first(&mut helpable.shareable, worker, suits, is_still)?;
        Some((self.leases.request_return(id, longer_than)?, id))
    }

    /// Returns whether a worker may be asked for instances of a lease. Where workers find the results of each other, it may
    /// also give its only instance, to a worker that continues it.
    fn may_share(&self, lease: &Lease, longer_than: Duration) -> bool {
        let is_shared = self.plan.sharing != ReuseScope::Tree;
        lease.is_shareable(longer_than)
            && (is_shared || lease.open().len() > 1)
            && self.outweighs_overhead(lease)
    }

    /// Returns whether the instances that a worker gives of a lease, half of them, take longer than the overhead of their new
    /// bucket. Also without measured or predicted times.
    fn outweighs_overhead(&self, lease: &Lease) -> bool {
        let overhead = self.plan.bucket_overhead_seconds;
        if overhead <= 0.0 {
            return true;
        }
        let Some(first) = lease.open().first() else { return false };
        let measured = self.throughput.seconds_per_instance(self.plan.instances.at(*first).stage);
        let predicted = || Some(f64::from(self.own_seconds(*first))).filter(|seconds| *seconds > 0.0);
        let given = lease.open().len().div_ceil(2) as f64;
        measured.or_else(predicted).is_none_or(|seconds| seconds * given > overhead)
    }

    /// Returns the predicted time until the results of a lease's last instance are complete, if one instance runs after
    /// the other. Zero without predictions.
    fn remaining_path(&self, lease: &Lease) -> Duration {
        let Some(first) = lease.open().first() else { return Duration::ZERO };
        // The instances of a bucket have the same tasks and about the same readers.
        let seconds = self.seconds_after(*first) + self.own_seconds(*first) * lease.open().len() as f32;
        Duration::try_from_secs_f32(seconds).unwrap_or(Duration::MAX)
    }

    fn rank(&self, id: InstanceId) -> f32 {
        self.plan.ranks.get(id.index()).copied().unwrap_or(0.0)
    }

    /// Returns the predicted seconds from the end of an instance to the end of the study. 0 without predictions.
    fn seconds_after(&self, id: InstanceId) -> f32 {
        self.instances.children(id).iter().map(|child| self.rank(*child)).fold(0.0, f32::max)
    }

    /// Returns the predicted seconds of an instance. 0 without predictions.
    fn own_seconds(&self, id: InstanceId) -> f32 {
        (self.rank(id) - self.seconds_after(id)).max(0.0)
    }

    /// Returns another worker's straggler of a suitable stage with the longest time since its last report.
    pub(crate) fn straggler(
        &self,
        helpable: &mut RebalanceCandidates,
        worker: WorkerId,
        suits: impl Fn(usize) -> bool,
    ) -> Option<LeaseId> {
        self.first(&mut helpable.late, worker, suits, |lease| lease.twin().is_none())
    }

    /// Takes the first suitable lease of another worker that still qualifies. Leases that are unsuitable only
    /// for this worker stay in the heap.
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
            // Not returned to the heap: the lease has ended or was asked since the search.
            let Some(lease) = self.leases.get(id).filter(|lease| is_still(lease)) else { continue };
            if lease.worker() != worker && self.stage_of(id).is_some_and(&suits) {
                found = Some(id);
                break;
            }
            others.push((key, id));
        }
        heap.extend(others);
        found
    }

    /// Returns whether a lease's worker has a steal request that it has not answered.
    #[must_use]
    pub fn has_steal_request(&self, lease: LeaseId) -> bool {
        self.leases.get(lease).is_some_and(Lease::has_steal_request)
    }

    /// Returns the stage of a lease's instances.
    #[must_use]
    pub fn stage_of(&self, lease: LeaseId) -> Option<usize> {
        let first = self.leases.get(lease)?.open().first()?;
        Some(self.plan.instances.at(*first).stage)
    }
}
