//! Instances that a worker returns to the manager for others.

use super::{SharingCluster, WorkerMessage};
use pleach_dispatch::LeaseId;
use std::time::Duration;

impl SharingCluster {
    /// Returns a part of the unstarted instances of a bucket.
    pub(super) fn share_half(&mut self, number: usize, lease: LeaseId) {
        let bucket = self.nodes[number].buckets.get_mut(&lease);
        let seconds = |task: usize, _: &[_]| self.study.task_seconds(task);
        let back = bucket.map(|bucket| bucket.run.take_part(seconds)).unwrap_or_default();
        self.end_withdrawal(number, lease);
        self.send_to_manager(number, WorkerMessage::Back(lease, back));
    }

    /// Returns instances with a longer path that others can continue.
    pub(super) fn share_spare(&mut self, number: usize, lease: LeaseId, longer_than: Duration) {
        let bucket = self.nodes[number].buckets.get_mut(&lease);
        let (path, back) = bucket.map(|bucket| bucket.run.take_spare(longer_than)).unwrap_or_default();
        self.end_withdrawal(number, lease);
        self.send_to_manager(number, WorkerMessage::Spare(lease, back, path));
    }

    fn end_withdrawal(&mut self, number: usize, lease: LeaseId) {
        self.follow_bucket(number, lease);
        self.demand(number, lease);
    }
}
