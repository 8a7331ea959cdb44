//! Isolation of instances that crash workers.
//!
//! A worker may be lost for any reason. An instance that was on several lost workers is a suspect and runs on
//! an otherwise empty worker, together with some of the instances that were lost with it. A crash there takes no other lease
//! with it, and one of these few is its cause, so each of them runs in a smaller group next. If workers crash that run a
//! suspect alone, the suspect fails. All other instances continue.

use super::{StragglerPolicy, Study};
use crate::{BucketId, InstanceId, WorkerId};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

impl Study {
    /// Moves suspects among instances without a lease into isolated buckets, in groups of those that shared a bucket, or fails
    /// them once they have reached the crash limit.
    pub(super) fn isolate_or_fail(&mut self, instances: &BTreeSet<InstanceId>) {
        let mut suspects: BTreeMap<BucketId, Vec<InstanceId>> = BTreeMap::new();
        for &id in instances {
            // An instance may have failed with one before it.
            if !self.failures.is_suspected(id) || !self.instances.state(id).is_unstarted() {
                continue;
            }
            if let Some(cause) = self.failures.crash_limit_cause(id) {
                self.fail(id, id, &cause);
                continue;
            }
            suspects.entry(self.instances.bucket_of(id)).or_default().push(id);
        }
        for (old, suspects) in suspects {
            self.isolate(old, &suspects);
        }
    }

    /// Moves suspects from their bucket into isolated ones, unless it is isolated and small enough.
    fn isolate(&mut self, old: BucketId, suspects: &[InstanceId]) {
        let is_open = |id: &&InstanceId| self.instances.state(**id).is_unstarted();
        let suspects: Vec<InstanceId> = suspects.iter().filter(is_open).copied().collect();
        let most = suspects.iter().map(|id| self.failures.group_limit(*id)).min().unwrap_or(usize::MAX);
        let bucket = self.instances.bucket(old);
        if suspects.is_empty() || bucket.is_isolated() && bucket.open().len() <= most {
            return;
        }
        self.unqueue(old);
        for group in suspects.chunks(most) {
            let new = self.regroup(group.iter().copied().collect());
            // Before it is queued: isolation decides which workers it is queued for.
            self.set_isolated(new, true);
            self.queue_if_ready(new);
        }
        self.end_isolation(old);
        self.queue_if_ready(old);
    }

    /// Ends the isolation of a bucket without a suspect.
    fn end_isolation(&mut self, bucket: BucketId) {
        let now = self.instances.bucket(bucket);
        if now.is_isolated() && !now.open().iter().any(|id| self.failures.is_suspected(*id)) {
            self.set_isolated(bucket, false);
        }
    }

    /// Isolates a bucket or ends its isolation. It is not queued meanwhile, since its queue depends on this.
    fn set_isolated(&mut self, bucket: BucketId, isolated: bool) {
        assert!(!self.ready.contains(bucket), "{bucket} is queued while its isolation changes");
        self.instances.set_isolated(bucket, isolated);
    }

    /// Returns whether a bucket needs an otherwise empty worker.
    pub(crate) fn is_isolated(&self, bucket: BucketId) -> bool {
        self.instances.bucket(bucket).is_isolated()
    }

    /// Returns whether any bucket waits for an otherwise empty worker.
    pub(crate) fn has_ready_isolated(&self) -> bool {
        self.ready.has_isolated()
    }

    /// Returns the stages of isolated buckets that have been ready for longer than the timeout of a straggler, in order: once
    /// for each bucket, but at most `most` times for each stage.
    pub(crate) fn overdue(&mut self, now: Duration, most: usize, behind: StragglerPolicy) -> Vec<usize> {
        let throughput = &self.throughput;
        self.ready.overdue(now, most, |stage| behind.timeout(stage, throughput).unwrap_or(behind.min_time))
    }

    /// Clears a reported instance of suspicion.
    pub(super) fn clear(&mut self, instance: InstanceId) {
        if self.failures.clear_crashes(instance) {
            // Its bucket is leased, hence not queued.
            self.end_isolation(self.instances.bucket_of(instance));
        }
    }

    /// Takes back a crash of these instances: their worker has reattached, so they did not crash it.
    pub(super) fn retract_crash(&mut self, instances: &[InstanceId]) {
        // The failures contain no unknown instance, so the message may name some.
        let cleared = instances.iter().filter(|id| self.failures.retract_crash(**id));
        let buckets: BTreeSet<BucketId> = cleared.map(|id| self.instances.bucket_of(*id)).collect();
        for bucket in buckets {
            if self.instances.bucket(bucket).is_isolated() {
                self.unqueue(bucket);
                self.end_isolation(bucket);
                self.queue_if_ready(bucket);
            }
        }
    }

    /// Returns whether a worker has a lease with a suspect, so that it gets nothing else.
    #[must_use]
    pub fn runs_isolated(&self, worker: WorkerId) -> bool {
        self.leases.has_isolated(worker)
    }
}
