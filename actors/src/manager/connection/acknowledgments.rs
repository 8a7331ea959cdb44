//! Acknowledgments of a worker's messages with reports, in the order of the messages.
//!
//! The manager acknowledges a message once the records of its reports are on disk. A worker repeats the others over its next
//! link, so an early acknowledgment would lose a result with the manager's process.
//!
//! Invariants:
//! - Messages are acknowledged in order: a message waits for those before it.
//! - Sent acknowledgments never exceed the messages whose records are on disk, and these never exceed the messages
//!   received.

use pleach_dispatch::PlanId;
use std::collections::VecDeque;

/// Messages with reports of one connection, from their receipt to their acknowledgment.
#[derive(Default)]
pub(super) struct Acknowledgments {
    /// Messages that are not on disk yet, in order, each with its last record. `None` for a message without a record.
    pending: VecDeque<Option<(PlanId, u64)>>,
    /// Messages received.
    received: u64,
    /// Messages that may be acknowledged: they and all before them are on disk.
    durable: u64,
    /// Messages acknowledged to the worker.
    acknowledged: u64,
}

impl Acknowledgments {
    /// Queues the acknowledgment of a message.
    pub(super) fn push(&mut self, record: Option<(PlanId, u64)>) {
        self.received += 1;
        self.pending.push_back(record);
    }

    /// Advances past the messages whose records are on disk. Returns the total number of messages to acknowledge, if it
    /// has grown.
    pub(super) fn advance(&mut self, is_durable: impl Fn(PlanId, u64) -> bool) -> Option<u64> {
        while let Some(message) = self.pending.front() {
            if message.is_some_and(|(study, record)| !is_durable(study, record)) {
                break;
            }
            self.pending.pop_front();
            self.durable += 1;
        }
        assert_eq!(
            self.durable + self.pending.len() as u64,
            self.received,
            "every message is either durable or pending"
        );
        assert!(
            self.acknowledged <= self.durable,
            "no message is acknowledged before its records are on disk"
        );
        let has_grown = self.durable > self.acknowledged;
        self.acknowledged = self.durable;
        has_grown.then_some(self.acknowledged)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn message_waits_for_earlier_messages() {
        let study = PlanId::first_round(1);
        let mut acknowledgments = Acknowledgments::default();
        for record in [None, Some((study, 1)), None, Some((study, 2))] {
            acknowledgments.push(record);
        }
        let advance = |acknowledgments: &mut Acknowledgments, durable: u64| {
            acknowledgments.advance(|_, record| record <= durable)
        };
        assert_eq!(advance(&mut acknowledgments, 0), Some(1));
        assert_eq!(advance(&mut acknowledgments, 0), None);
        assert_eq!(advance(&mut acknowledgments, 1), Some(3));
        assert_eq!(advance(&mut acknowledgments, 2), Some(4));
        assert_eq!(advance(&mut acknowledgments, 3), None);
    }
}
