//! How a study stands, in numbers, for people to see. Nothing is decided by them.

use super::{State, Study};
use crate::LeaseId;
use std::time::Duration;

/// Instances by where they stand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InstanceCounts {
    /// They wait for others.
    pub waiting: usize,
    /// They could run.
    pub ready: usize,
    /// A worker has them.
    pub leased: usize,
    /// They are done, by this manager or before.
    pub finished: usize,
    /// They failed, or one failed that they need.
    pub failed: usize,
}

impl Study {
    /// Time has passed; what becomes ready from now on has been so since `now`.
    pub fn handle_time(&mut self, now: Duration) {
        self.now = self.now.max(now);
    }

    /// Of a study that nothing has happened to yet: it begins at `now`.
    pub(crate) fn begin_at(&mut self, now: Duration) {
        self.now = now;
        self.buckets.iter_mut().for_each(|bucket| bucket.ready_since = now);
    }

    /// Counts its instances: takes time in proportion to them, some ten milliseconds for a million.
    #[must_use]
    pub fn census(&self) -> InstanceCounts {
        let mut census = InstanceCounts::default();
        for instance in &self.instances {
            *match instance.state {
                State::Waiting(_) => &mut census.waiting,
                State::Ready => &mut census.ready,
                State::Leased(_) => &mut census.leased,
                State::Done => &mut census.finished,
                State::Failed => &mut census.failed,
            } += 1;
        }
        census
    }

    /// Buckets that a worker could be given.
    #[must_use]
    pub fn ready_buckets(&self) -> usize {
        self.ready.len() + self.ready_alone.len()
    }

    /// How long the bucket of a lease had been ready when it was granted, as exactly as the study is told the time
    /// ([`handle_time`](Self::handle_time)).
    #[must_use]
    pub fn queue_wait(&self, lease: LeaseId) -> Option<Duration> {
        self.leases.get(&lease).map(|lease| lease.waited)
    }

    /// What is left of the study on so many slots, if it has all of them: what instances of each stage have taken on average,
    /// times those that are open. `None` without slots, and as long as nobody has finished an instance of a stage that has open
    /// ones.
    #[must_use]
    pub fn predicted_remaining_seconds(&self, slots: u32) -> Option<f64> {
        let mut open = vec![0_u32; self.plan.stages.len()];
        for (instance, plan) in self.instances.iter().zip(&self.plan.instances) {
            open[plan.stage] += u32::from(!instance.state.is_final());
        }
        let mut work = 0.0;
        for (stage, open) in open.into_iter().enumerate().filter(|(_, open)| *open > 0) {
            work += self.seconds_per_instance(stage)? * f64::from(open);
        }
        (slots > 0).then(|| work / f64::from(slots))
    }
}
