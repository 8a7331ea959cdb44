//! Accepts incoming connections and refuses peers that may not join.
//!
//! A peer is half-open until it has presented its certificate and its first frame. Half-open connections are limited in
//! number and time. Above a threshold a peer must prove its address first, which costs this node no memory.

use super::join::{self, JoinService};
use super::{NetworkError, Peer, QuicRuntime, RefusalReporter, endpoint, link, regions, tls};
use crate::transport::certs::Credentials;
use crate::transport::clock::Clock;
use crate::transport::frames::{self, FrameError};
use crate::transport::hello::{self, Hello, HelloError, MAX_HELLO_BYTES, Version};
use crate::transport::identity::{NodeIdentity, Role};
use crate::transport::refusal::{Cause, Refusal};
use crate::transport::settings::Settings;
use quinn::crypto::rustls::HandshakeData;
use quinn::{Connection, Endpoint, Incoming, ServerConfig};
use rustls::pki_types::CertificateDer;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use tokio::io::AsyncRead;
use tokio::sync::Semaphore;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::time::timeout;

/// Maximum number of accepted peers that wait for their actor.
const WAITING: usize = 64;

/// Bytes of a peer's first packets that quinn buffers until the server accepts it: 2 of the largest packets.
const FIRST_PACKETS_BYTES: u64 = 64 << 10;

/// Configuration of a server.
pub struct ServerSetup {
    /// Credentials of this node.
    pub credentials: Arc<Credentials>,
    /// Hello message of this node.
    pub hello: Hello,
    /// Protocol version of this node.
    pub version: Version,
    /// Accepted roles.
    pub roles: Vec<Role>,
    /// Limits of the connections.
    pub settings: Settings,
    /// Clock for certificates and tokens.
    pub clock: Arc<dyn Clock>,
    /// Reports refused peers to the operator.
    pub board: RefusalReporter,
    /// Join service, if this node has an authority.
    pub desk: Option<Arc<JoinService>>,
}

impl fmt::Debug for ServerSetup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerSetup").field("credentials", &self.credentials).finish_non_exhaustive()
    }
}

/// Listening endpoint that accepts peers.
#[derive(Debug)]
pub struct Server {
    endpoint: Endpoint,
    address: SocketAddr,
}

impl Server {
    /// Listens at `address`. The receiver returns accepted peers.
    ///
    /// # Errors
    /// Returns [`NetworkError`].
    pub fn listen(
        network: &QuicRuntime,
        address: SocketAddr,
        setup: ServerSetup,
    ) -> Result<(Self, Receiver<Peer>), NetworkError> {
        let _runtime = network.handle().enter();
        let crypto = tls::server(&setup.credentials, &setup.clock, setup.desk.is_some())?;
        let config = |peer: IpAddr| {
            let mut config = ServerConfig::with_crypto(Arc::clone(&crypto) as Arc<_>);
            config.transport_config(setup.settings.transport(peer)).max_incoming(setup.settings.half_open);
            config.incoming_buffer_size(FIRST_PACKETS_BYTES);
            let all = FIRST_PACKETS_BYTES * setup.settings.half_open as u64 / 4;
            config.incoming_buffer_size_total(all);
            config
        };
        // Only loopback or not matters here. It selects datagram sizes and segmentation offload.
        let local = Arc::new(config(IpAddr::V4(std::net::Ipv4Addr::LOCALHOST)));
        let far = config(IpAddr::V4(std::net::Ipv4Addr::UNSPECIFIED));
        let endpoint = endpoint(address, Some(far), &setup.settings)?;
        let address = endpoint.local_addr().map_err(|source| NetworkError::Address { address, source })?;
        let (come_in, peers) = channel(WAITING);
        network.handle().spawn(accept_all(endpoint.clone(), Arc::new(setup), local, come_in));
        Ok((Self { endpoint, address }, peers))
    }

    /// Returns the address, with the actual port.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the number of open and half-open connections.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.endpoint.open_connections()
    }

    /// Ends all connections, and waits until the peers are notified. Callers must wait before for frames that have to
    /// arrive: a dropped link ends its connection once its frames have arrived.
    pub async fn close(self) {
        self.end(&Refusal::new(Cause::Lost, "the node is shutting down"));
        self.endpoint.wait_idle().await;
    }

    /// Ends all connections and accepts no more.
    pub(crate) fn end(&self, refusal: &Refusal) {
        refusal.close_endpoint(&self.endpoint);
    }

    /// Waits until all connections have ended by themselves.
    pub async fn idle(&self) {
        self.endpoint.wait_idle().await;
    }
}

async fn accept_all(
    endpoint: Endpoint,
    setup: Arc<ServerSetup>,
    local: Arc<ServerConfig>,
    come_in: Sender<Peer>,
) {
    let half_open = Arc::new(Semaphore::new(setup.settings.half_open));
    while let Some(incoming) = endpoint.accept().await {
        let peer = incoming.remote_address().ip();
        // May be outdated at once. It only decides about the proof, and the permit enforces the maximum.
        let is_trusting = setup.settings.half_open - half_open.available_permits() < setup.settings.trusting;
        if !is_trusting && !incoming.remote_address_validated() {
            // quinn accepts a retry for every unvalidated address, so the refusal is only a safeguard.
            if let Err(again) = incoming.retry() {
                again.into_incoming().refuse();
            }
            continue;
        }
        let Ok(place) = Arc::clone(&half_open).try_acquire_owned() else {
            incoming.refuse();
            let text = format!("{} connections are half-open, the maximum", setup.settings.half_open);
            setup.board.note(peer, &Refusal::new(Cause::Busy, text));
            continue;
        };
        // One task per peer: a slow handshake must not delay the next peer.
        let (setup, local, come_in) = (Arc::clone(&setup), Arc::clone(&local), come_in.clone());
        tokio::spawn(async move {
            let (entered, connection) = enter(incoming, &setup, local).await;
            let refusal = match entered {
                Ok(Some(entered)) => {
                    // Released before the wait for the actor: the peer is no longer half-open.
                    drop(place);
                    // The receiver is dropped when the node ends.
                    let _ = come_in.send(entered).await;
                    return;
                }
                Ok(None) => return,
                Err(refusal) => refusal,
            };
            if let Some(connection) = connection {
                refusal.close(&connection);
            }
            setup.board.note(peer, &refusal);
        });
    }
}

/// Identifies a peer. Returns `None` if the peer only requested a certificate. The connection is returned as soon as it is
/// open, so that the caller can close it with the reason for a refusal.
async fn enter(
    incoming: Incoming,
    setup: &ServerSetup,
    local: Arc<ServerConfig>,
) -> (Result<Option<Peer>, Refusal>, Option<Connection>) {
    // The transport settings depend on the peer's address, which is known only now.
    let is_local = incoming.remote_address().ip().to_canonical().is_loopback();
    // Outside of the future, so that the connection survives a timeout and gets the reason.
    let mut connection = None;
    let entering = async {
        let connecting = if is_local { incoming.accept_with(local) } else { incoming.accept() };
        let lost = |error| Refusal::of_connection(&error);
        let open = connecting.map_err(lost)?.await.map_err(lost)?;
        let open = connection.insert(open);
        if speaks(open).as_deref() == Some(tls::JOINING) {
            // Handled before the identity check, because a joining worker has no certificate yet.
            return match &setup.desk {
                Some(desk) => join::serve(open, desk, &setup.clock).await.map(|()| None),
                None => Err(Refusal::new(Cause::Token, "this node does not accept tokens")),
            };
        }
        greet(open, setup).await.map(Some)
    };
    let entered = timeout(setup.settings.handshake, entering).await.unwrap_or_else(|_| {
        let seconds = setup.settings.handshake.as_secs_f64();
        Err(Refusal::new(Cause::Deadline, format!("no identification within {seconds} s")))
    });
    (entered, connection)
}

fn speaks(connection: &Connection) -> Option<Vec<u8>> {
    connection.handshake_data()?.downcast::<HandshakeData>().ok()?.protocol
}

/// Returns the identity in the certificate that TLS has verified.
pub(super) fn identity(connection: &Connection) -> Result<NodeIdentity, Refusal> {
    let shown =
        connection.peer_identity().and_then(|shown| shown.downcast::<Vec<CertificateDer<'static>>>().ok());
    let Some(certificate) = shown.as_ref().and_then(|chain| chain.first()) else {
        let text = "no certificate; issue one with `pleach certs issue`, or join with a token";
        return Err(Refusal::new(Cause::NoCertificate, text));
    };
    NodeIdentity::of_certificate(certificate)
        .map_err(|error| Refusal::new(Cause::Certificate, format!("invalid certificate: {error}")))
}

/// Receives the first frame of a peer with an accepted role, and sends this node's.
async fn greet(connection: &Connection, setup: &ServerSetup) -> Result<Peer, Refusal> {
    let there = identity(connection)?;
    let here = setup.credentials.identity();
    // Refused before the stream is accepted, so that this node reads no frame of a peer without access.
    if !setup.roles.contains(&there.role) {
        let roles: Vec<_> = setup.roles.iter().map(|role| role.as_str()).collect();
        let text =
            format!("{there} is not allowed to connect to {here}; allowed roles: {}", roles.join(", "));
        return Err(Refusal::new(Cause::Role, text));
    }
    let (mut send, recv) = connection.accept_bi().await.map_err(|error| Refusal::of_connection(&error))?;
    let mut recv = link::buffered(recv);
    let frame = first_frame(&mut recv, connection).await?;
    let hello = hello::read(&frame, &setup.version, here, &there).map_err(|error| not_understood(&error))?;
    let answer = hello::write(&setup.version, &setup.hello).map_err(|error| not_understood(&error))?;
    let mut bytes = Vec::new();
    frames::append(&answer, &mut bytes);
    send.write_all(&bytes).await.map_err(|error| connection_lost(connection, &error))?;
    Ok(peer(connection, there, hello, (send, recv), &setup.settings, &setup.board))
}

/// Reads the first frame of the peer.
pub(super) async fn first_frame(
    recv: &mut (impl AsyncRead + Unpin),
    connection: &Connection,
) -> Result<Vec<u8>, Refusal> {
    match frames::read(recv, MAX_HELLO_BYTES).await {
        Ok(Some(frame)) => Ok(frame),
        Ok(None) => Err(Refusal::new(Cause::Language, "the connection ended before the first frame")),
        Err(error @ FrameError::TooLong { .. }) => Err(Refusal::new(Cause::TooLong, error)),
        Err(error @ FrameError::Cut) => Err(Refusal::new(Cause::Language, error)),
        Err(error) => Err(connection_lost(connection, &error)),
    }
}

pub(super) fn connection_lost(connection: &Connection, error: &dyn fmt::Display) -> Refusal {
    let closed = connection.close_reason().map(|error| Refusal::of_connection(&error));
    closed.unwrap_or_else(|| Refusal::new(Cause::Lost, error))
}

pub(super) fn not_understood(error: &HelloError) -> Refusal {
    let cause = match error {
        HelloError::Mismatch(_) => Cause::Version,
        HelloError::Magic | HelloError::Content(_) => Cause::Language,
    };
    Refusal::new(cause, error)
}

/// Starts the link and the region streams of a connection.
pub(super) fn peer(
    connection: &Connection,
    identity: NodeIdentity,
    hello: Hello,
    control: (quinn::SendStream, tokio::io::BufReader<quinn::RecvStream>),
    settings: &Settings,
    board: &RefusalReporter,
) -> Peer {
    let address = connection.remote_address();
    // Extends the limits only now: an unidentified peer has one stream and a small window.
    settings.trust(connection);
    let (link, incoming) = link::start(connection, control, settings, board);
    let (regions, arrivals) = regions::start(connection, settings, board);
    Peer { identity, hello, address, link, incoming, regions, arrivals }
}
