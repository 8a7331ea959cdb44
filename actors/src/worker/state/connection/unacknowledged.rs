//! Unacknowledged reports: frames in sending order, from the send to the manager's acknowledgment.
//!
//! The manager acknowledges by count: the n-th report of a link is the n-th one queued since the link opened.
//!
//! Invariants:
//! - Acknowledged and queued reports add up to the reports of this link. Otherwise an acknowledgment would remove a
//!   report that the manager has not stored.
//! - Without repetition, as in an embedded run, the queue is empty.

use pleach_dispatch::message::ToManager;
use pleach_dispatch::{InstanceId, LeaseId};
use std::collections::VecDeque;

/// Unacknowledged reports of a worker.
pub(super) struct UnacknowledgedReports {
    /// The worker may reconnect and repeat reports.
    repeats: bool,
    /// Reports in sending order.
    queue: VecDeque<Report>,
    /// Reports of this link: sent, or to be sent first.
    count: u64,
    /// Acknowledged reports of this link.
    acknowledged: u64,
}

struct Report {
    lease: LeaseId,
    instance: InstanceId,
    frame: Vec<u8>,
}

impl UnacknowledgedReports {
    pub(super) fn new(repeats: bool) -> Self {
        Self { repeats, queue: VecDeque::new(), count: 0, acknowledged: 0 }
    }

    /// Queues the frame of a message if the manager acknowledges messages of this kind.
    pub(super) fn push(&mut self, message: &ToManager, frame: &[u8]) {
        if !self.repeats {
            return;
        }
        if let ToManager::Done { lease, instance, .. } | ToManager::Failed { lease, instance, .. } = message {
            self.queue.push_back(Report { lease: *lease, instance: *instance, frame: frame.to_vec() });
            self.count += 1;
        }
        self.check_count();
    }

    /// Restarts the count for a new link, over which all queued reports are repeated.
    pub(super) fn restart_count(&mut self) {
        self.check_count();
        self.acknowledged = 0;
        self.count = self.queue.len() as u64;
    }

    /// Returns the frames to repeat, in order.
    pub(super) fn frames(&self) -> impl Iterator<Item = &[u8]> {
        self.queue.iter().map(|report| &*report.frame)
    }

    /// Removes the first reports, until `reports` of this link are acknowledged. A number above the reports of this
    /// link violates the protocol, and acknowledges those.
    pub(super) fn acknowledge(&mut self, reports: u64) -> Vec<(LeaseId, InstanceId)> {
        let mut removed = Vec::new();
        while self.acknowledged < reports {
            let Some(report) = self.queue.pop_front() else { break };
            self.acknowledged += 1;
            removed.push((report.lease, report.instance));
        }
        self.check_count();
        removed
    }

    pub(super) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    fn check_count(&self) {
        assert_eq!(
            self.acknowledged + self.queue.len() as u64,
            self.count,
            "acknowledged and queued reports add up to the reports of the link"
        );
        assert!(self.repeats || self.queue.is_empty(), "reports are queued only to be repeated");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pleach_dispatch::PlanId;
    use pleach_dispatch::message::TaskFailure;

    fn report(instance: u32) -> ToManager {
        let cause = TaskFailure { at: String::new(), cause: String::new() };
        let (study, lease, instance) = (PlanId::first_round(1), LeaseId(7), InstanceId(instance));
        ToManager::Failed { study, lease, instance, cause, tasks: Vec::new() }
    }

    fn of(instances: impl IntoIterator<Item = u32>) -> Vec<(LeaseId, InstanceId)> {
        instances.into_iter().map(|instance| (LeaseId(7), InstanceId(instance))).collect()
    }

    #[test]
    fn acknowledgments_count_from_the_start_of_a_link() {
        let mut reports = UnacknowledgedReports::new(true);
        (0..4).for_each(|number| reports.push(&report(number), &[number as u8]));
        reports.push(&ToManager::Drain, &[9]);
        assert_eq!(reports.acknowledge(2), of(0..2));
        assert_eq!(reports.acknowledge(2), of([]));
        reports.restart_count();
        assert!(reports.frames().eq([[2], [3]]));
        reports.push(&report(4), &[4]);
        assert_eq!(reports.acknowledge(1), of([2]));
        assert_eq!(reports.acknowledge(3), of(3..5));
        assert!(reports.is_empty());
    }

    #[test]
    fn excess_acknowledgment_covers_no_later_report() {
        let mut reports = UnacknowledgedReports::new(true);
        reports.push(&report(0), &[0]);
        assert_eq!(reports.acknowledge(5), of([0]));
        reports.push(&report(1), &[1]);
        assert_eq!(reports.acknowledge(1), of([]));
        assert_eq!(reports.acknowledge(2), of([1]));
    }

    #[test]
    fn worker_that_cannot_reconnect_queues_nothing() {
        let mut reports = UnacknowledgedReports::new(false);
        reports.push(&report(0), &[0]);
        assert!(reports.is_empty() && reports.acknowledge(1).is_empty());
    }
}
