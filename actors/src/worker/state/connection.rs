//! Connection of a worker to its manager: the link, the number of the manager, and unacknowledged reports.
//!
//! Invariants:
//! - The manager has accepted a worker only over an open link. A closed link takes its acceptance with it.
//! - A link opens only after the previous link was closed, so that no frame is sent over two links.
//! - A report is queued before it is sent, so that it survives the loss of the link during the send.
//! - Collected reports are sent before any other message, and queued for the next link before it opens.

mod collected;
mod unacknowledged;

use crate::transport::{Disconnected, Incoming, Link, LinkStats, codec};
use collected::CollectedMessages;
use pleach_dispatch::message::{Report, ToManager};
use pleach_dispatch::{InstanceId, LeaseId, PlanId};
use std::fmt;
use std::time::{Duration, Instant};
use unacknowledged::UnacknowledgedReports;

/// Time for which reports are collected. A report that follows the last message by more is sent at once, so the delay only
/// concerns reports of tasks that take less.
const COLLECTED_FOR: Duration = Duration::from_millis(5);

/// Reason for an unsent report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReportError {
    /// The report exceeds the frame limit, so no manager would accept it.
    TooLarge,
    /// The link is lost. The report is queued for the next link.
    Disconnected,
}

/// Connection of a worker to its manager.
pub(crate) struct ManagerConnection {
    /// `None` while the worker is disconnected.
    link: Option<OpenLink>,
    /// A report exceeded the frame limit.
    has_lost_report: bool,
    /// Frames from the manager, until the actor starts.
    incoming: Option<Incoming>,
    /// Number of the manager that last accepted this worker.
    manager: Option<u64>,
    collected: CollectedMessages,
    /// Time of the last message with reports.
    last_reports: Option<Instant>,
    unacknowledged: UnacknowledgedReports,
}

struct OpenLink {
    link: Box<dyn Link>,
    /// The manager has accepted this worker over the link.
    is_accepted: bool,
}

impl ManagerConnection {
    /// Creates a connection without a link. `repeats_reports` is set for a worker that may reconnect.
    pub(crate) fn new(repeats_reports: bool) -> Self {
        let unacknowledged = UnacknowledgedReports::new(repeats_reports);
        let collected = CollectedMessages::default();
        Self {
            link: None,
            has_lost_report: false,
            incoming: None,
            manager: None,
            collected,
            last_reports: None,
            unacknowledged,
        }
    }

    /// Adds the first link, for an actor that has not started.
    pub(crate) fn with_link(self, link: Box<dyn Link>, incoming: Incoming) -> Self {
        Self { link: Some(OpenLink { link, is_accepted: false }), incoming: Some(incoming), ..self }
    }

    /// Takes the frames of the first link.
    pub(crate) fn take_incoming(&mut self) -> Option<Incoming> {
        let incoming = self.incoming.take();
        assert!(incoming.is_none() || self.link.is_some(), "the first frames belong to an open link");
        incoming
    }

    /// Opens the next link. The manager has not accepted the worker over it yet.
    pub(crate) fn open(&mut self, link: Box<dyn Link>) {
        assert!(self.link.is_none(), "a link opens only after the previous link was closed");
        assert!(!self.collected.has_reports(), "reports are queued for a link before it opens");
        self.link = Some(OpenLink { link, is_accepted: false });
    }

    /// Closes the link, and queues the collected reports for the next one. Returns whether it was open.
    pub(crate) fn close(&mut self) -> bool {
        let was_open = self.link.take().is_some();
        // The worker requests buckets again over the next link.
        self.collected.take_requests();
        // Without a link, only a report that no link can carry fails, which `has_lost_report` has.
        let _ = self.flush(Instant::now());
        was_open
    }

    /// Returns whether a report could not be sent, because it exceeds the frame limit. No later link can carry it either.
    pub(crate) fn has_lost_report(&self) -> bool {
        self.has_lost_report
    }

    pub(crate) fn is_open(&self) -> bool {
        self.link.is_some()
    }

    /// Returns whether the manager has accepted the worker over the open link.
    pub(crate) fn is_accepted(&self) -> bool {
        self.link.as_ref().is_some_and(|open| open.is_accepted)
    }

    /// Records that a manager has accepted the worker. Returns whether the worker belonged to a different manager
    /// before.
    pub(crate) fn accept(&mut self, manager: u64) -> bool {
        // A frame of a link that was lost meanwhile accepts nothing.
        if let Some(open) = &mut self.link {
            open.is_accepted = true;
        }
        self.manager.replace(manager).is_some_and(|previous| previous != manager)
    }

    /// Returns the number of the manager that last accepted this worker.
    pub(crate) fn manager(&self) -> Option<u64> {
        self.manager
    }

    /// Sends a message that concerns only this link, after the collected ones. Without a link the message is dropped: the next
    /// link starts with a complete join message.
    pub(crate) fn send(&mut self, message: &ToManager) -> Result<(), ReportError> {
        self.flush(Instant::now())?;
        self.send_now(message).map_err(|Disconnected| ReportError::Disconnected)
    }

    fn send_now(&self, message: &ToManager) -> Result<(), Disconnected> {
        let Some(open) = &self.link else { return Ok(()) };
        let frame = codec::encode(message).map_err(|_| Disconnected)?;
        open.link.send(frame)
    }

    /// Sends a report that must survive the loss of this link, or collects it. Returns the time after which
    /// [`flush`](Self::flush) must be called, if it is the first collected report.
    pub(crate) fn report(
        &mut self,
        study: PlanId,
        report: Report,
        now: Instant,
    ) -> Result<Option<Duration>, ReportError> {
        let earlier = if self.collected.accepts(study) { Ok(()) } else { self.flush(now) };
        let is_first = !self.collected.has_reports();
        // Also if the link is lost: the report is queued when it closes.
        self.collected.add(study, report);
        earlier?;
        let since = self.last_reports.map(|last| now.duration_since(last));
        let wait = since.and_then(|since| COLLECTED_FOR.checked_sub(since));
        // Without a link there is nothing to wait for.
        let waits = self.is_open() && !self.collected.is_full();
        match wait.filter(|_| waits) {
            Some(wait) => Ok(is_first.then_some(wait)),
            None => self.flush(now).map(|()| None),
        }
    }

    /// Requests buckets: behind the collected reports, or at once if there are none or a slot is idle.
    pub(crate) fn request(
        &mut self,
        buckets: u32,
        after: Option<u32>,
        is_idle: bool,
    ) -> Result<(), ReportError> {
        self.collected.request(buckets, after);
        if is_idle || !self.collected.has_reports() { self.flush(Instant::now()) } else { Ok(()) }
    }

    /// Sends the collected messages.
    pub(crate) fn flush(&mut self, now: Instant) -> Result<(), ReportError> {
        if let Some((study, reports)) = self.collected.take_reports() {
            self.last_reports = Some(now);
            self.send_reports(study, reports)?;
        }
        let requests = self.collected.take_requests();
        let mut requests = requests.iter();
        requests
            .try_for_each(|request| self.send_now(request))
            .map_err(|Disconnected| ReportError::Disconnected)
    }

    fn send_reports(&mut self, study: PlanId, mut reports: Vec<Report>) -> Result<(), ReportError> {
        let ended: Vec<_> = reports.iter().map(|report| (report.lease, report.instance)).collect();
        let half = reports.len() / 2;
        let message = ToManager::Reports { study, reports };
        let Ok(frame) = codec::encode(&message) else {
            let ToManager::Reports { reports: all, .. } = message else { return Ok(()) };
            // One report alone exceeds the limit of a frame.
            if half == 0 {
                self.has_lost_report = true;
                return Err(ReportError::TooLarge);
            }
            reports = all;
            let rest = reports.split_off(half);
            let (first, second) = (self.send_reports(study, reports), self.send_reports(study, rest));
            // Both halves are queued if the link is lost. A report that no link can carry is the greater error.
            return if second == Err(ReportError::TooLarge) { second } else { first.and(second) };
        };
        // Queued before the send: a link that fails now may still have delivered the reports, and the manager ignores
        // the repetition. Reports queued later would be lost with the link.
        self.unacknowledged.push(ended, &frame);
        match &self.link {
            Some(open) => open.link.send(frame).map_err(|Disconnected| ReportError::Disconnected),
            None => Ok(()),
        }
    }

    /// Repeats the unacknowledged reports over a new link, after the join message.
    pub(crate) fn repeat_reports(&mut self) -> Result<(), Disconnected> {
        // The manager counts the reports of each link from 0.
        self.unacknowledged.restart_count();
        let Some(open) = &self.link else { return Ok(()) };
        self.unacknowledged.frames().try_for_each(|frame| open.link.send(frame.to_vec()))
    }

    /// Removes the reports that the manager has acknowledged. `messages` is the total number of messages with them over this
    /// link.
    pub(crate) fn acknowledge(&mut self, messages: u64) -> Vec<(LeaseId, InstanceId)> {
        self.unacknowledged.acknowledge(messages)
    }

    /// Returns whether a report is unsent, or must be repeated over the next link.
    pub(crate) fn has_unacknowledged(&self) -> bool {
        self.collected.has_reports() || !self.unacknowledged.is_empty()
    }

    /// Ends the link after an invalid frame.
    pub(crate) fn refuse(&self, why: &dyn fmt::Display) {
        if let Some(open) = &self.link {
            open.link.refuse(why);
        }
    }

    /// Returns the statistics of the link, if it crosses a network.
    pub(crate) fn stats(&self) -> Option<LinkStats> {
        self.link.as_ref().and_then(|open| open.link.figures())
    }
}

#[cfg(test)]
mod tests;
