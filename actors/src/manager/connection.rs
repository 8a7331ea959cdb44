//! A worker's connection, from its first to its last frame, with the worker's unacknowledged reports.

mod acknowledgments;
mod table;

use super::ManagerActor;
use super::code::WorkerCode;
use crate::transport::quic::RegionStreams;
use crate::transport::{Frame, Incoming, Link, codec};
use acknowledgments::Acknowledgments;
use actix::prelude::*;
use pleach_dispatch::manager::WorkerInfo;
use pleach_dispatch::message::ToWorker;
use pleach_dispatch::storage::TransferCost;
use pleach_dispatch::{PlanId, WorkerId};
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::time::Instant;
pub(super) use table::ConnectionTable;
use tokio_stream::StreamExt;
use tokio_stream::wrappers::UnboundedReceiverStream;

/// Registers the connection of a new worker.
pub struct Connect {
    /// Link for messages to the worker.
    pub link: Box<dyn Link>,
    /// Frames from the worker.
    pub incoming: Incoming,
    /// Identity and resources of the worker.
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

/// Properties of a worker known before its first message.
#[derive(Clone, Debug)]
pub struct PendingWorker {
    /// Name of the worker. At most one worker of a name is connected.
    pub name: String,
    /// Address of a remote worker. `None` for one in this process.
    pub host: Option<IpAddr>,
    /// Location for operators: host name, address and port, as far as known.
    pub location: String,
    /// Capabilities of the worker. Its join message sets the slots.
    pub facts: WorkerInfo,
    /// Streams for files to the worker.
    pub regions: Option<RegionStreams>,
    /// Time limit of the worker, in seconds since 1970, if any.
    pub lease_end_seconds: Option<u64>,
}

impl PendingWorker {
    /// Returns the properties of a worker in this process.
    #[must_use]
    pub fn local() -> Self {
        let name = "local".to_owned();
        let location = "this process".to_owned();
        Self { name, host: None, location, facts: WorkerInfo::ANY, regions: None, lease_end_seconds: None }
    }
}

/// Number of a connection. The connection becomes a worker by joining.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ConnectionId(pub(super) u32);

pub(super) enum Event {
    Frame(ConnectionId, Frame),
    Closed(ConnectionId),
}

pub(super) struct Connection {
    pub(super) link: Box<dyn Link>,
    pub(super) newcomer: PendingWorker,
    /// `None` before the join message.
    worker: Option<WorkerId>,
    /// Incarnation of the worker process.
    pub(super) incarnation: u64,
    /// Time of the connection.
    pub(super) since: Instant,
    /// Address where peers fetch regions from the worker.
    pub(super) exchange: Option<SocketAddr>,
    /// Bytes of regions in its storage.
    pub(super) bytes: u64,
    /// Remarks on its closed accelerator slots.
    pub(super) closed_slots: Vec<String>,
    /// Measured cost of transfers from other workers.
    pub(super) transfers: Option<TransferCost>,
    /// Its external operations.
    pub(super) code: WorkerCode,
    acknowledgments: Acknowledgments,
}

impl Connection {
    /// Returns the worker, if the connection has joined.
    pub(super) fn worker(&self) -> Option<WorkerId> {
        self.worker
    }

    pub(super) fn send(&mut self, message: &ToWorker) {
        // A frame that cannot be sent needs no handling: the end of the link is an event.
        if let Ok(frame) = codec::encode(message) {
            let _ = self.link.send(frame);
        }
    }

    /// Queues the acknowledgment of a report. The manager sends it once `record` is on disk.
    pub(super) fn queue_ack(&mut self, record: Option<(PlanId, u64)>) {
        self.acknowledgments.push(record);
    }

    /// Acknowledges the reports whose records are on disk.
    pub(super) fn send_acks(&mut self, is_durable: impl Fn(PlanId, u64) -> bool) {
        if let Some(messages) = self.acknowledgments.advance(is_durable) {
            self.send(&ToWorker::AckReports { messages });
        }
    }
}

impl Handler<Connect> for ManagerActor {
    type Result = ();

    fn handle(&mut self, Connect { link, incoming, newcomer }: Connect, ctx: &mut Self::Context) {
        let connection = Connection {
            link,
            newcomer,
            worker: None,
            incarnation: 0,
            since: Instant::now(),
            exchange: None,
            bytes: 0,
            closed_slots: Vec::new(),
            transfers: None,
            code: WorkerCode::default(),
            acknowledgments: Acknowledgments::default(),
        };
        let id = self.connections.insert(connection);
        let frames = UnboundedReceiverStream::new(incoming).map(move |frame| Event::Frame(id, frame));
        // The end of a link is an event of its stream, because `finished` does not name the connection.
        ctx.add_stream(frames.chain(tokio_stream::once(Event::Closed(id))));
    }
}
