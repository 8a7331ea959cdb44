//! Progress of a study, in numbers for display. No decision depends on them.

use super::Study;
use super::state::Lease;
use crate::LeaseId;
use std::time::Duration;

/// Instances by state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InstanceCounts {
    /// Instances that wait for parents.
    pub waiting: usize,
    /// Instances that can run.
    pub ready: usize,
    /// Instances leased to a worker.
    pub leased: usize,
    /// Instances finished under this manager or before.
    pub finished: usize,
    /// Instances that failed, or whose ancestor failed.
    pub failed: usize,
}

impl Study {
    /// Advances the time: buckets that become ready from now on are ready since `now`.
    pub fn handle_time(&mut self, now: Duration) {
        self.now = self.now.max(now);
    }

    /// Sets the start time of a new study.
    pub(crate) fn begin_at(&mut self, now: Duration) {
        self.now = now;
        self.instances.set_all_ready_since(now);
    }

    /// Counts the instances by state.
    #[must_use]
    pub fn census(&self) -> InstanceCounts {
        let mut census = InstanceCounts::default();
        for stage in self.instances.census() {
            census.waiting += stage.waiting;
            census.ready += stage.ready;
            census.leased += stage.leased;
            census.finished += stage.finished;
            census.failed += stage.failed;
        }
        census
    }

    /// Counts the buckets that can be granted.
    #[must_use]
    pub fn ready_buckets(&self) -> usize {
        self.ready.len()
    }

    /// Returns the time that the bucket of a lease had been ready when it was granted. Its resolution is that
    /// of the calls of [`handle_time`](Self::handle_time).
    #[must_use]
    pub fn queue_wait(&self, lease: LeaseId) -> Option<Duration> {
        self.leases.get(lease).map(Lease::waited)
    }

    /// Predicts the remaining seconds of the study on all of `slots`: the mean time of an instance of each stage, times the
    /// number of open ones. `None` without slots, and until an instance of each stage with open ones has
    /// been finished.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "a prediction")]
    pub fn predicted_remaining_seconds(&self, slots: u32) -> Option<f64> {
        let mut work = 0.0;
        let open = self.instances.census().iter().map(InstanceCounts::open).enumerate();
        for (stage, open) in open.filter(|(_, open)| *open > 0) {
            work += self.seconds_per_instance(stage)? * open as f64;
        }
        (slots > 0).then(|| work / f64::from(slots))
    }
}
