//! Progress of a study, in numbers for display. No decision depends on them.

use super::Study;
use super::state::{InstanceState, Lease};
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

    /// Counts the instances by state. Linear in their number, about 10 ms for a million.
    #[must_use]
    pub fn census(&self) -> InstanceCounts {
        let mut census = InstanceCounts::default();
        for state in self.instances.states() {
            *match state {
                InstanceState::Waiting(_) | InstanceState::Reopened => &mut census.waiting,
                InstanceState::Ready => &mut census.ready,
                InstanceState::Leased(_) => &mut census.leased,
                InstanceState::Done => &mut census.finished,
                InstanceState::Failed => &mut census.failed,
            } += 1;
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
    pub fn predicted_remaining_seconds(&self, slots: u32) -> Option<f64> {
        let mut open = vec![0_u32; self.plan.stages.len()];
        for (state, plan) in self.instances.states().zip(&self.plan.instances) {
            open[plan.stage] += u32::from(!state.is_final());
        }
        let mut work = 0.0;
        for (stage, open) in open.into_iter().enumerate().filter(|(_, open)| *open > 0) {
            work += self.seconds_per_instance(stage)? * f64::from(open);
        }
        (slots > 0).then(|| work / f64::from(slots))
    }
}
