//! Unacknowledged messages with reports: frames in sending order, from the send to the manager's acknowledgment.
//!
//! The manager acknowledges by count: the n-th message of a link is the n-th one queued since the link opened.
//!
//! Invariants:
//! - Acknowledged and queued messages add up to the messages of this link. Otherwise an acknowledgment would remove a
//!   report that the manager has not stored.
//! - Without repetition, as in an embedded run, the queue is empty.

use pleach_dispatch::{InstanceId, LeaseId};
use std::collections::VecDeque;

/// Unacknowledged reports of a worker.
pub(super) struct UnacknowledgedReports {
    /// The worker may reconnect and repeat reports.
    repeats: bool,
    /// Messages in sending order.
    queue: VecDeque<ReportsMessage>,
    /// Messages of this link: sent, or to be sent first.
    count: u64,
    /// Acknowledged messages of this link.
    acknowledged: u64,
}

struct ReportsMessage {
    ended: Vec<(LeaseId, InstanceId)>,
    frame: Vec<u8>,
}

impl UnacknowledgedReports {
    pub(super) fn new(repeats: bool) -> Self {
        Self { repeats, queue: VecDeque::new(), count: 0, acknowledged: 0 }
    }

    /// Queues the frame of a message with the reports of these instances.
    pub(super) fn push(&mut self, ended: Vec<(LeaseId, InstanceId)>, frame: &[u8]) {
        if self.repeats {
            self.queue.push_back(ReportsMessage { ended, frame: frame.to_vec() });
            self.count += 1;
        }
        self.check_count();
    }

    /// Restarts the count for a new link, over which all queued messages are repeated.
    pub(super) fn restart_count(&mut self) {
        self.check_count();
        self.acknowledged = 0;
        self.count = self.queue.len() as u64;
    }

    /// Returns the frames to repeat, in order.
    pub(super) fn frames(&self) -> impl Iterator<Item = &[u8]> {
        self.queue.iter().map(|message| &*message.frame)
    }

    /// Removes the first messages, until `messages` of this link are acknowledged. Returns the instances of their reports. A
    /// number above the messages of this link violates the protocol, and acknowledges those.
    pub(super) fn acknowledge(&mut self, messages: u64) -> Vec<(LeaseId, InstanceId)> {
        let mut ended = Vec::new();
        while self.acknowledged < messages {
            let Some(mut message) = self.queue.pop_front() else { break };
            self.acknowledged += 1;
            ended.append(&mut message.ended);
        }
        self.check_count();
        ended
    }

    pub(super) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    fn check_count(&self) {
        assert_eq!(
            self.acknowledged + self.queue.len() as u64,
            self.count,
            "acknowledged and queued messages add up to the messages of the link"
        );
        assert!(self.repeats || self.queue.is_empty(), "reports are queued only to be repeated");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(instances: impl IntoIterator<Item = u32>) -> Vec<(LeaseId, InstanceId)> {
        instances.into_iter().map(|instance| (LeaseId(7), InstanceId(instance))).collect()
    }

    #[test]
    fn acknowledgments_count_from_the_start_of_a_link() {
        let mut reports = UnacknowledgedReports::new(true);
        for (message, instances) in [0..1, 1..4, 4..5, 5..7].into_iter().enumerate() {
            reports.push(of(instances), &[message as u8]);
        }
        assert_eq!(reports.acknowledge(2), of(0..4));
        assert_eq!(reports.acknowledge(2), of([]));
        reports.restart_count();
        assert!(reports.frames().eq([[2], [3]]));
        reports.push(of([7]), &[4]);
        assert_eq!(reports.acknowledge(1), of([4]));
        assert_eq!(reports.acknowledge(3), of(5..8));
        assert!(reports.is_empty());
    }

    #[test]
    fn excess_acknowledgment_covers_no_later_report() {
        let mut reports = UnacknowledgedReports::new(true);
        reports.push(of([0]), &[0]);
        assert_eq!(reports.acknowledge(5), of([0]));
        reports.push(of([1]), &[1]);
        assert_eq!(reports.acknowledge(1), of([]));
        assert_eq!(reports.acknowledge(2), of([1]));
    }

    #[test]
    fn worker_that_cannot_reconnect_queues_nothing() {
        let mut reports = UnacknowledgedReports::new(false);
        reports.push(of([0]), &[0]);
        assert!(reports.is_empty() && reports.acknowledge(1).is_empty());
    }
}
