//! Transport between nodes: QUIC, with TLS 1.3 and a certificate at both ends.
//!
//! A connection has one control stream, which carries the frames of a [`Link`](super::Link) ([`link`]), and a separate
//! stream for every data region ([`regions`]). [`server`] accepts peers: half-open connections are few and short, and every
//! refused peer gets the reason. [`client`] connects, and [`join`] gets a certificate for a token.
//!
//! All work runs on separate threads ([`QuicRuntime`]). Actors send through channels and never wait. Callers interpret
//! frames and route regions.

pub mod client;
pub mod join;
pub mod link;
pub mod regions;
pub mod server;
pub(super) mod tls;

pub use client::Connector;
pub use join::JoinService;
pub use link::{LinkEnd, QuicLink};
pub use regions::{ReceivedRegion, RegionArrival, RegionStreams};
pub use server::{Server, ServerSetup};

use super::Incoming;
use super::clock::Clock;
use super::hello::Hello;
use super::identity::NodeIdentity;
use super::refusal::{Cause, Refusal};
use super::refusal_log::{RefusalLimiter, RefusalNotice};
use super::settings::Settings;
use parking_lot::Mutex;
use quinn::{Endpoint, EndpointConfig};
use socket2::SockRef;
use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::Arc;
use thiserror::Error;
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::sync::mpsc::Receiver;

/// An accepted peer, with its verified identity and its hello message.
#[derive(Debug)]
pub struct Peer {
    /// Identity by its certificate.
    pub identity: NodeIdentity,
    /// Hello message of the peer, unverified.
    pub hello: Hello,
    /// Address of the peer.
    pub address: SocketAddr,
    /// Sends frames to the peer.
    pub link: QuicLink,
    /// Frames from the peer.
    pub incoming: Incoming,
    /// Sends data regions to the peer.
    pub regions: RegionStreams,
    /// Data regions from the peer.
    pub arrivals: Receiver<RegionArrival>,
}

/// Reason for an endpoint that cannot send or receive.
#[derive(Debug, Error)]
pub enum NetworkError {
    /// The operating system cannot start threads.
    #[error("failed to start network threads: {0}")]
    Threads(io::Error),
    /// The address cannot be used.
    #[error("failed to listen at {address}: {source}")]
    Address {
        /// The address.
        address: SocketAddr,
        /// Cause.
        source: io::Error,
    },
    /// Certificate, key and authority do not match.
    #[error("invalid certificate of the node: {0}")]
    Certificate(String),
}

/// Runtime with separate threads for all network traffic. On the single thread of Actix, connections would wait for actors:
/// regions moved at a third of the speed there.
pub struct QuicRuntime {
    runtime: Option<Runtime>,
    handle: Handle,
}

impl fmt::Debug for QuicRuntime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("QuicRuntime").finish_non_exhaustive()
    }
}

impl QuicRuntime {
    /// Starts `threads` threads, at least 1.
    ///
    /// # Errors
    /// Returns [`NetworkError::Threads`].
    pub fn start(threads: usize) -> Result<Self, NetworkError> {
        let mut builder = Builder::new_multi_thread();
        let builder = builder.worker_threads(threads.max(1)).thread_name("network").enable_all();
        let runtime = builder.build().map_err(NetworkError::Threads)?;
        let handle = runtime.handle().clone();
        Ok(Self { runtime: Some(runtime), handle })
    }

    /// Returns the handle that starts tasks on the runtime.
    #[must_use]
    pub fn handle(&self) -> &Handle {
        &self.handle
    }
}

impl Drop for QuicRuntime {
    /// Does not block. Callers that must deliver messages first wait for [`Server::close`] or [`Connector::close`].
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            // The drop of a tokio runtime blocks, and panics in an async context.
            runtime.shutdown_background();
        }
    }
}

/// Receives refusal notices for the operator.
pub type OperatorLog = Arc<dyn Fn(&RefusalNotice) + Send + Sync>;

/// Reports refused peers to the operator, within limits.
#[derive(Clone)]
pub struct RefusalReporter {
    notices: Arc<Mutex<RefusalLimiter>>,
    clock: Arc<dyn Clock>,
    log: OperatorLog,
}

impl fmt::Debug for RefusalReporter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RefusalReporter").finish_non_exhaustive()
    }
}

impl RefusalReporter {
    /// Creates a reporter, which calls the operator's function on a thread of the network.
    #[must_use]
    pub fn new(clock: Arc<dyn Clock>, log: OperatorLog) -> Self {
        Self { notices: Arc::default(), clock, log }
    }

    fn note(&self, peer: IpAddr, refusal: &Refusal) {
        // A name in use is logged by name: on the manager by its actor, on the worker by its process.
        if matches!(refusal.cause, Cause::Ended | Cause::NameInUse) {
            return;
        }
        let mut notices = self.notices.lock();
        // An IPv4 address mapped to IPv6 counts as the same peer in the limits.
        let notice = notices.note(self.clock.now(), peer.to_canonical(), refusal);
        // Releases the lock before the call: a slow operator log must not block other connections.
        drop(notices);
        if let Some(notice) = notice {
            (self.log)(&notice);
        }
    }
}

/// Creates an endpoint on a socket at `address`. Must be called within the network's runtime, because quinn spawns tasks on
/// it.
fn endpoint(
    address: SocketAddr,
    server: Option<quinn::ServerConfig>,
    settings: &Settings,
) -> Result<Endpoint, NetworkError> {
    let fail = |source| NetworkError::Address { address, source };
    // quinn's default limit for datagrams from peers, 1,472 bytes, would end path discovery there.
    let mut config = EndpointConfig::default();
    config
        .max_udp_payload_size(Settings::MAX_DATAGRAM_BYTES)
        .map_err(|error| fail(io::Error::other(error)))?;
    let socket = UdpSocket::bind(address).map_err(fail)?;
    if let Some(bytes) = settings.socket_bytes {
        // Best effort: the system may grant less, and connections work with smaller buffers.
        let buffers = SockRef::from(&socket);
        let _ = buffers.set_recv_buffer_size(bytes);
        let _ = buffers.set_send_buffer_size(bytes);
    }
    Endpoint::new(config, server, socket, Arc::new(quinn::TokioRuntime)).map_err(fail)
}
