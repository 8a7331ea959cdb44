//! Connection of a worker to its manager: the link, the number of the manager, and unacknowledged reports.
//!
//! Invariants:
//! - The manager has accepted a worker only over an open link. A closed link takes its acceptance with it.
//! - A link opens only after the previous link was closed, so that no frame is sent over two links.
//! - A report is queued before it is sent, so that it survives the loss of the link during the send.

mod unacknowledged;

use crate::transport::{Disconnected, Incoming, Link, LinkStats, codec};
use pleach_dispatch::message::ToManager;
use pleach_dispatch::{InstanceId, LeaseId};
use std::fmt;
use unacknowledged::UnacknowledgedReports;

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
    /// Frames from the manager, until the actor starts.
    incoming: Option<Incoming>,
    /// Number of the manager that last accepted this worker.
    manager: Option<u64>,
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
        Self { link: None, incoming: None, manager: None, unacknowledged }
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
        self.link = Some(OpenLink { link, is_accepted: false });
    }

    /// Closes the link. Returns whether it was open.
    pub(crate) fn close(&mut self) -> bool {
        self.link.take().is_some()
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

    /// Sends a message that concerns only this link. Without a link the message is dropped: the next link starts with a
    /// complete join message.
    pub(crate) fn send(&self, message: &ToManager) -> Result<(), Disconnected> {
        let Some(open) = &self.link else { return Ok(()) };
        let frame = codec::encode(message).map_err(|_| Disconnected)?;
        open.link.send(frame)
    }

    /// Sends a report that must survive the loss of this link.
    pub(crate) fn report(&mut self, message: &ToManager) -> Result<(), ReportError> {
        let frame = codec::encode(message).map_err(|_| ReportError::TooLarge)?;
        // Queued before the send: a link that fails now may still have delivered the report, and the manager ignores
        // the repetition. A report queued later would be lost with the link.
        self.unacknowledged.push(message, &frame);
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

    /// Removes the reports that the manager has acknowledged. `reports` is their total number over this link.
    pub(crate) fn acknowledge(&mut self, reports: u64) -> Vec<(LeaseId, InstanceId)> {
        self.unacknowledged.acknowledge(reports)
    }

    /// Returns whether a report must be repeated over the next link.
    pub(crate) fn has_unacknowledged(&self) -> bool {
        !self.unacknowledged.is_empty()
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
