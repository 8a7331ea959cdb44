//! One study: its grants, its finished instances and its unreferenced regions.
//!
//! Events: [`Study::grant`], [`handle_done`](Study::handle_done), [`handle_failed`](Study::handle_failed),
//! [`handle_missing_input`](Study::handle_missing_input), [`handle_returned`](Study::handle_returned),
//! [`handle_leave`](Study::handle_leave). After each, call [`Study::poll_effect`] until it returns `None`. A study keeps no
//! results and reads no clock: both are the shell's task. The shell collects results in a [`StudyOutcome`]. The [`Manager`](crate::manager::Manager) knows the workers and
//! decides which of them gets a bucket.
//!
//! `state` has the contexts of the state, each with private fields. The other modules apply events to them: `start`
//! builds the state of a plan, new or resumed, `grant` leases ready buckets, `lease_end` takes leases back,
//! `rebalance` finds work for idle workers, `replan` rebuilds buckets, `progress` counts, `worker_loss` reopens
//! instances whose outputs are lost with a worker, `isolation` finds instances that crash workers, `reattach`
//! restores leases granted by an earlier manager, `throughput` and `overhead` measure, `locality` counts bytes to transfer and keeps workers in their ranges, and
//! `invariants` compares the contexts with each other. This module finishes and fails instances.

mod grant;
mod invariants;
mod isolation;
mod lease_end;
mod locality;
mod outcome;
mod overhead;
mod progress;
mod reattach;
mod rebalance;
mod replan;
mod start;
mod state;
mod throughput;
mod worker_loss;

pub use grant::Eligibility;
pub use outcome::{
    InstanceEnd, InstanceFailure, InstanceReport, ReportedResults, StudyOutcome, TaskTotal, WorkerReports,
};
pub use progress::InstanceCounts;
pub(crate) use rebalance::{RebalanceCandidates, StragglerPolicy};
pub use replan::{MAX_MERGED_INSTANCES, Merged, NewBuckets, ReplacementPlan, Replanner};
pub use state::StudySnapshot;
pub(crate) use throughput::TaskTimings;

use crate::message::TaskFailure;
use crate::plan::ExecutionPlan;
use crate::{BucketId, InstanceId, LeaseId, WorkerId};
use pleach_regions::RegionKey;
use state::{Failures, Instances, Leases, Positions, ReadyQueue, Regions, SlotClocks, Throughput};
use std::collections::{BTreeMap, HashSet, VecDeque};
use std::time::Duration;

/// Effects of an event.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// Regions without a further reader.
    Release(Vec<RegionKey>),
    /// An instance is finished.
    Finished(InstanceId),
    /// A finished instance must be executed again: its stored outputs are lost and still have a reader.
    Reopened(InstanceId),
    /// An instance failed permanently. `origin` is the instance whose task failed.
    Failed {
        /// The instance.
        instance: InstanceId,
        /// The instance itself, or the ancestor whose failure it shares.
        origin: InstanceId,
        /// Why.
        cause: TaskFailure,
    },
    /// A worker can abandon this lease: another lease of the same instances was faster.
    Revoke {
        /// The worker that has the lease.
        worker: WorkerId,
        /// The lease.
        lease: LeaseId,
    },
    /// Every instance is finished or failed.
    Complete,
}

/// The state of one study.
#[derive(Debug)]
pub struct Study {
    plan: ExecutionPlan,
    instances: Instances,
    positions: Positions,
    ready: ReadyQueue,
    /// Ready buckets from the one that has been ready for longest. Empty in other orders than that of release.
    released: VecDeque<BucketId>,
    leases: Leases,
    regions: Regions,
    failures: Failures,
    /// Predicted paths of instances that workers have begun and returned.
    begun: BTreeMap<InstanceId, Duration>,
    throughput: Throughput,
    clocks: SlotClocks,
    /// Files that each worker has been granted a bucket for.
    read_files: HashSet<(WorkerId, RegionKey)>,
    /// Suspended: nothing more of it is granted.
    is_halted: bool,
    /// Time of the last event that carried one.
    now: Duration,
    effects: VecDeque<Effect>,
}

impl Study {
    /// Finishes an instance. Ignores a report under an expired lease, since another worker has the instance now.
    /// Returns whether the report counted.
    pub fn handle_done(
        &mut self,
        worker: WorkerId,
        lease: LeaseId,
        instance: InstanceId,
        now: Duration,
    ) -> bool {
        self.handle_time(now);
        // Before `close`, which may end the lease and with it the time of the last report.
        self.record_report(worker, lease, instance, now);
        if !self.close(worker, lease, instance) {
            return false;
        }
        self.clear(instance);
        self.instances.finish(instance);
        self.propagate_finish(instance);
        // After the release of regions, so that those without a further reader get no holder.
        self.add_holder(worker, instance);
        true
    }

    /// Propagates a finished instance: unblocks its children and drops its region references.
    fn propagate_finish(&mut self, instance: InstanceId) {
        self.effects.push_back(Effect::Finished(instance));
        for child in self.instances.children(instance).to_vec() {
            if let Some(bucket) = self.instances.finish_parent(child) {
                self.queue_if_ready(bucket);
            }
        }
        self.release(instance);
    }

    /// Fails an instance and everything that reads from it. Returns whether the report counted.
    pub fn handle_failed(
        &mut self,
        worker: WorkerId,
        lease: LeaseId,
        instance: InstanceId,
        cause: &TaskFailure,
    ) -> bool {
        self.clocks.exclude(worker, lease);
        if !self.close(worker, lease, instance) {
            return false;
        }
        // `fail` expects an instance without a lease. Its parents do not matter, since it ends with this event.
        self.instances.end_lease(instance, 0);
        self.fail(instance, instance, cause);
        true
    }

    /// Fails an instance that is not leased and its descendants that are not leased. Leased descendants stay: their
    /// workers may have their inputs.
    fn fail(&mut self, instance: InstanceId, origin: InstanceId, cause: &TaskFailure) {
        let mut failed = vec![instance];
        while let Some(id) = failed.pop() {
            if !self.instances.state(id).is_unstarted() {
                continue;
            }
            let bucket = self.instances.bucket_of(id);
            self.unqueue(bucket);
            self.instances.fail(id);
            // The other open instances of the bucket may have waited for this one only.
            self.queue_if_ready(bucket);
            self.failures.record(id, origin, cause);
            self.effects.push_back(Effect::Failed { instance: id, origin, cause: cause.clone() });
            // Reversed: the stack yields its last element first, so children fail in the order of the plan.
            failed.extend(self.instances.children(id).iter().rev());
            self.release(id);
        }
    }

    /// Returns the next effect, in order. `None` if none is pending.
    pub fn poll_effect(&mut self) -> Option<Effect> {
        self.effects.pop_front()
    }

    /// Counts instances neither finished nor failed.
    #[must_use]
    pub fn unfinished(&self) -> usize {
        self.instances.unfinished()
    }

    /// Returns the plan being executed.
    #[must_use]
    pub fn plan(&self) -> &ExecutionPlan {
        &self.plan
    }

    /// Releases the regions that a finished or failed instance referenced last. Completes the study after the last one.
    fn release(&mut self, instance: InstanceId) {
        debug_assert!(
            self.instances.state(instance).is_final(),
            "{instance} is open and releases its regions"
        );
        let released = self.regions.release(instance, &self.plan.instances.at(instance).used());
        if !released.is_empty() {
            self.effects.push_back(Effect::Release(released));
        }
        if self.instances.unfinished() == 0 {
            self.assert_complete(instance);
            self.effects.push_back(Effect::Complete);
        }
    }
}
