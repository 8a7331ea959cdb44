//! Reports and requests that wait to be sent together.
//!
//! The manager's time for a message with one report is a multiple of that for a further report in a message.
//!
//! Invariants:
//! - All collected reports are of one study, in the order of the ends of their instances.
//! - A request of buckets waits only behind collected messages, so an idle slot waits for none.

use pleach_dispatch::PlanId;
use pleach_dispatch::message::{Report, ToManager};

/// Reports of a message, at most. Beyond, the cost of a message does not matter.
const MAX_REPORTS: usize = 256;

/// Collected reports and requests.
#[derive(Default)]
pub(super) struct CollectedMessages {
    study: Option<PlanId>,
    reports: Vec<Report>,
    /// Buckets of any stage.
    buckets: u32,
    /// Stage after which one further bucket is requested.
    after: Option<u32>,
}

impl CollectedMessages {
    /// Adds a report. Reports of another study must have been taken.
    pub(super) fn add(&mut self, study: PlanId, report: Report) {
        assert!(self.accepts(study), "reports of {:?} are sent before those of {study}", self.study);
        self.study = Some(study);
        self.reports.push(report);
    }

    /// Adds a request.
    pub(super) fn request(&mut self, buckets: u32, after: Option<u32>) {
        match after {
            // The manager answers the latest one only.
            Some(_) => self.after = after,
            None => self.buckets += buckets,
        }
    }

    /// Returns whether a report of a study may be added.
    pub(super) fn accepts(&self, study: PlanId) -> bool {
        self.study.is_none_or(|collected| collected == study)
    }

    pub(super) fn is_full(&self) -> bool {
        self.reports.len() >= MAX_REPORTS
    }

    pub(super) fn has_reports(&self) -> bool {
        !self.reports.is_empty()
    }

    /// Takes the reports.
    pub(super) fn take_reports(&mut self) -> Option<(PlanId, Vec<Report>)> {
        let study = self.study.take()?;
        Some((study, std::mem::take(&mut self.reports)))
    }

    /// Takes the requests.
    pub(super) fn take_requests(&mut self) -> Vec<ToManager> {
        let buckets = std::mem::take(&mut self.buckets);
        let any = (buckets > 0).then_some(ToManager::Request { buckets, after: None });
        let later = self.after.take().map(|after| ToManager::Request { buckets: 1, after: Some(after) });
        any.into_iter().chain(later).collect()
    }
}
