//! Isolation of instances that crash workers.
//!
//! A worker may be lost for any reason. An instance that was on several lost workers is a suspect and runs on
//! an otherwise empty worker. A crash there takes no other lease with it, and no other instance can cause it.
//! If such workers crash as well, the suspect fails. All other instances continue.

use super::{StragglerPolicy, Study};
use crate::{BucketId, InstanceId, WorkerId};
use std::collections::BTreeSet;
use std::time::Duration;

impl Study {
    /// Gives each suspect among instances without a lease a bucket of its own, or fails it once it has reached the crash
    /// limit.
    pub(super) fn isolate_or_fail(&mut self, instances: &BTreeSet<InstanceId>) {
        for &id in instances {
            if !self.failures.is_suspected(id) || !self.instances.state(id).is_unstarted() {
                continue;
            }
            if let Some(cause) = self.failures.crash_limit_cause(id) {
                self.fail(id, id, &cause);
                continue;
            }
            let old = self.instances.bucket_of(id);
            if self.instances.bucket(old).is_isolated() {
                continue;
            }
            self.unqueue(old);
            let bucket = self.regroup(BTreeSet::from([id]));
            self.queue_if_ready(old);
            // Before it is queued: isolation decides which workers it is queued for.
            self.set_isolated(bucket, true);
            self.queue_if_ready(bucket);
        }
    }

    /// Isolates a bucket or ends its isolation. It is not queued meanwhile, since its queue depends on this.
    fn set_isolated(&mut self, bucket: BucketId, isolated: bool) {
        assert!(!self.ready.contains(bucket), "{bucket} is queued while its isolation changes");
        self.instances.set_isolated(bucket, isolated);
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
            self.set_isolated(self.instances.bucket_of(instance), false);
        }
    }

    /// Takes back a crash of these instances: their worker has reattached, so they did not crash it.
    pub(super) fn retract_crash(&mut self, instances: &[InstanceId]) {
        for &id in instances {
            // The failures contain no unknown instance, so the message may name some.
            if !self.failures.retract_crash(id) {
                continue;
            }
            let bucket = self.instances.bucket_of(id);
            if self.instances.bucket(bucket).is_isolated() {
                self.unqueue(bucket);
                self.set_isolated(bucket, false);
                self.queue_if_ready(bucket);
            }
        }
    }

    /// Returns whether a worker has a suspect instance, so that it gets nothing else.
    #[must_use]
    pub fn runs_isolated(&self, worker: WorkerId) -> bool {
        // Fast path: most studies have no crashes.
        if !self.failures.has_crashes() {
            return false;
        }
        let leased = self.leases.of_worker(worker).flat_map(|lease| lease.open());
        leased.into_iter().any(|id| self.failures.is_suspected(*id))
    }
}
