//! A worker's connection: from its first frame to its last, with what it has reported and not been told is safe.

use super::ManagerActor;
use crate::transport::quic::RegionStreams;
use crate::transport::{Frame, Incoming, Link, codec};
use actix::prelude::*;
use pleach_dispatch::manager::WorkerInfo;
use pleach_dispatch::message::ToWorker;
use pleach_dispatch::{PlanId, WorkerId};
use std::collections::VecDeque;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::time::Instant;
use tokio_stream::StreamExt;
use tokio_stream::wrappers::UnboundedReceiverStream;

/// A worker has connected.
pub struct Connect {
    /// For messages to it.
    pub link: Box<dyn Link>,
    /// Frames from it.
    pub incoming: Incoming,
    /// Who it is.
    pub newcomer: PendingWorker,
}

impl Message for Connect {
    type Result = ();
}

impl fmt::Debug for Connect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connect").finish_non_exhaustive()
    }
}

/// What is known of a worker before it speaks.
#[derive(Clone, Debug)]
pub struct PendingWorker {
    /// Its name: one worker of a name is connected at a time.
    pub name: String,
    /// Where it is, if it is elsewhere.
    pub host: Option<IpAddr>,
    /// The same for operators: host name, address and port, as far as they are known.
    pub location: String,
    /// What it can do; slots are what it says as it joins.
    pub facts: WorkerInfo,
    /// For files to it.
    pub regions: Option<RegionStreams>,
    /// When it has to end, in seconds since 1970, if it has to.
    pub lease_end_seconds: Option<u64>,
}

impl PendingWorker {
    /// A worker within the process.
    #[must_use]
    pub fn local() -> Self {
        let name = "local".to_owned();
        let location = "this process".to_owned();
        Self { name, host: None, location, facts: WorkerInfo::ANY, regions: None, lease_end_seconds: None }
    }
}

/// A connection, from connect to disconnect; it becomes a worker by joining.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ConnectionId(pub(super) u32);

pub(super) enum Event {
    Frame(ConnectionId, Frame),
    Closed(ConnectionId),
}

pub(super) struct Connection {
    pub(super) link: Box<dyn Link>,
    pub(super) newcomer: PendingWorker,
    pub(super) worker: Option<WorkerId>,
    /// The process behind it.
    pub(super) incarnation: u64,
    /// When it was made.
    pub(super) since: Instant,
    /// Where others fetch regions from it.
    pub(super) exchange: Option<SocketAddr>,
    /// Bytes of regions in its storage.
    pub(super) bytes: u64,
    /// Reports that it has not been told are safe, in order: which record of which study has to be on disk for each.
    unsafe_reports: VecDeque<Option<(PlanId, u64)>>,
    /// Reports that it may be told are safe.
    safe_reports: u64,
    told_safe: u64,
}

impl Connection {
    pub(super) fn send(&mut self, message: &ToWorker) {
        // A frame that cannot be sent is not an event of its own: the closed link will be.
        if let Ok(frame) = codec::encode(message) {
            let _ = self.link.send(frame);
        }
    }

    /// The worker has reported; `record` has to be on disk before it may forget that.
    pub(super) fn queue_ack(&mut self, record: Option<(PlanId, u64)>) {
        self.unsafe_reports.push_back(record);
    }

    /// Tells the worker what is on disk by now.
    pub(super) fn send_acks(&mut self, is_safe: impl Fn(PlanId, u64) -> bool) {
        while let Some(report) = self.unsafe_reports.front() {
            if report.is_some_and(|(study, record)| !is_safe(study, record)) {
                break;
            }
            self.unsafe_reports.pop_front();
            self.safe_reports += 1;
        }
        if self.safe_reports > self.told_safe {
            self.told_safe = self.safe_reports;
            self.send(&ToWorker::AckReports { reports: self.safe_reports });
        }
    }
}

impl Handler<Connect> for ManagerActor {
    type Result = ();

    fn handle(&mut self, Connect { link, incoming, newcomer }: Connect, ctx: &mut Self::Context) {
        let id = ConnectionId(self.next_connection);
        self.next_connection += 1;
        let connection = Connection {
            link,
            newcomer,
            worker: None,
            incarnation: 0,
            since: Instant::now(),
            exchange: None,
            bytes: 0,
            unsafe_reports: VecDeque::new(),
            safe_reports: 0,
            told_safe: 0,
        };
        self.connections.insert(id, connection);
        let frames = UnboundedReceiverStream::new(incoming).map(move |frame| Event::Frame(id, frame));
        ctx.add_stream(frames.chain(tokio_stream::once(Event::Closed(id))));
    }
}
