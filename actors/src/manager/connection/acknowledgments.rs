//! Acknowledgments of a worker's reports, in the order of the reports.
//!
//! The manager acknowledges a report once its record is on disk. A worker repeats the others over its next link, so an
//! early acknowledgment would lose a result with the manager's process.
//!
//! Invariants:
//! - Reports are acknowledged in order: a report waits for those before it.
//! - Sent acknowledgments never exceed the reports whose records are on disk, and these never exceed the reports
//!   received.

use pleach_dispatch::PlanId;
use std::collections::VecDeque;

/// Reports of one connection, from their receipt to their acknowledgment.
#[derive(Default)]
pub(super) struct Acknowledgments {
    /// Reports that are not on disk yet, in order, each with its record. `None` for a report without a record.
    pending: VecDeque<Option<(PlanId, u64)>>,
    /// Reports received.
    received: u64,
    /// Reports that may be acknowledged: they and all before them are on disk.
    durable: u64,
    /// Reports acknowledged to the worker.
    acknowledged: u64,
}

impl Acknowledgments {
    /// Queues the acknowledgment of a report.
    pub(super) fn push(&mut self, record: Option<(PlanId, u64)>) {
        self.received += 1;
        self.pending.push_back(record);
    }

    /// Advances past the reports whose records are on disk. Returns the total number of reports to acknowledge, if it
    /// has grown.
    pub(super) fn advance(&mut self, is_durable: impl Fn(PlanId, u64) -> bool) -> Option<u64> {
        while let Some(report) = self.pending.front() {
            if report.is_some_and(|(study, record)| !is_durable(study, record)) {
                break;
            }
            self.pending.pop_front();
            self.durable += 1;
        }
        assert_eq!(
            self.durable + self.pending.len() as u64,
            self.received,
            "every report is either durable or pending"
        );
        assert!(self.acknowledged <= self.durable, "no report is acknowledged before its record is on disk");
        let has_grown = self.durable > self.acknowledged;
        self.acknowledged = self.durable;
        has_grown.then_some(self.acknowledged)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn report_waits_for_earlier_reports() {
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
