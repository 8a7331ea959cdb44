//! Opens connections to nodes: once, or with retries until accepted.

use super::server::{connection_lost, first_frame, identity, not_understood, peer};
use super::{NetworkError, Peer, QuicRuntime, RefusalReporter, endpoint, link, tls};
use crate::transport::backoff::Backoff;
use crate::transport::certs::Credentials;
use crate::transport::clock::Clock;
use crate::transport::frames;
use crate::transport::hello::{self, Hello, Version};
use crate::transport::identity::Role;
use crate::transport::refusal::{Cause, Refusal};
use crate::transport::settings::Settings;
use quinn::crypto::rustls::QuicClientConfig;
use quinn::{ClientConfig, ConnectError, Connection, Endpoint};
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::time::timeout;

/// Opens connections of a node. All of them share one socket.
#[derive(Clone)]
pub struct Connector {
    endpoint: Endpoint,
    crypto: Arc<QuicClientConfig>,
    credentials: Arc<Credentials>,
    version: Version,
    settings: Settings,
    board: RefusalReporter,
    handle: Handle,
}

impl fmt::Debug for Connector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connector").field("credentials", &self.credentials).finish_non_exhaustive()
    }
}

impl Connector {
    /// Creates a connector for a node with these credentials, to addresses of the same family as `like`.
    ///
    /// # Errors
    /// Returns [`NetworkError`].
    pub fn new(
        network: &QuicRuntime,
        like: SocketAddr,
        credentials: Arc<Credentials>,
        version: Version,
        settings: Settings,
        clock: &Arc<dyn Clock>,
        board: RefusalReporter,
    ) -> Result<Self, NetworkError> {
        let handle = network.handle().clone();
        // The endpoint registers its socket and its tasks with the entered runtime.
        let _runtime = handle.enter();
        let crypto = tls::client(&credentials, clock)?;
        let endpoint = endpoint(any_address(like), None, &settings)?;
        drop(_runtime);
        Ok(Self { endpoint, crypto, credentials, version, settings, board, handle })
    }

    /// Connects to a node that must have this role, and sends `hello`. Callers may use any runtime, because the connection
    /// runs on the network's.
    ///
    /// # Errors
    /// Returns [`Refusal`], with the reason of the other side if it sent one.
    pub async fn connect(&self, address: SocketAddr, role: Role, hello: Hello) -> Result<Peer, Refusal> {
        // The task owns its state: it runs on the network's runtime, and the caller may drop this future.
        let this = self.clone();
        let connecting = self.handle.spawn(async move {
            let within = this.settings.handshake;
            let connecting = this.greet(address, role, &hello);
            timeout(within, connecting).await.unwrap_or_else(|_| Err(unreachable(address, within)))
        });
        connecting.await.unwrap_or_else(|_| Err(Refusal::new(Cause::Lost, "the network runtime has ended")))
    }

    /// Connects, and retries until a failure is permanent. `wait` waits with the caller's clock and gets each failure. The
    /// caller resets `backoff` once the link has lasted, because a peer may accept a connection and end it at once.
    ///
    /// # Errors
    /// Returns a [`Refusal`] with a permanent cause.
    pub async fn keep_connecting(
        &self,
        address: SocketAddr,
        role: Role,
        hello: &Hello,
        backoff: &mut Backoff,
        mut wait: impl AsyncFnMut(&Refusal, Duration),
    ) -> Result<Peer, Refusal> {
        loop {
            match self.connect(address, role, hello.clone()).await {
                Ok(peer) => return Ok(peer),
                Err(refusal) if refusal.cause.is_permanent() => return Err(refusal),
                Err(refusal) => wait(&refusal, backoff.failed()).await,
            }
        }
    }

    /// Ends all connections, and waits until the peers are notified.
    pub async fn close(self) {
        self.end(&Refusal::new(Cause::Lost, "the node is shutting down"));
        // quinn sends the close messages in the background, so the runtime must not end before.
        self.endpoint.wait_idle().await;
    }

    /// Ends all connections and opens no more.
    pub(crate) fn end(&self, refusal: &Refusal) {
        refusal.close_endpoint(&self.endpoint);
    }

    /// Waits until all connections have ended by themselves.
    pub async fn idle(&self) {
        self.endpoint.wait_idle().await;
    }

    async fn greet(&self, address: SocketAddr, role: Role, hello: &Hello) -> Result<Peer, Refusal> {
        let connection =
            open(&self.endpoint, Arc::clone(&self.crypto), address, role, &self.settings).await?;
        let greeted = self.greet_on(&connection, hello).await;
        if let Err(refusal) = &greeted {
            // Closes with the reason: quinn closes a dropped connection with code 0 and no text.
            refusal.close(&connection);
        }
        greeted
    }

    async fn greet_on(&self, connection: &Connection, hello: &Hello) -> Result<Peer, Refusal> {
        let here = self.credentials.identity();
        let there = identity(connection)?;
        let (mut send, recv) = connection.open_bi().await.map_err(|error| Refusal::of_connection(&error))?;
        let mut bytes = Vec::new();
        frames::append(
            &hello::write(&self.version, hello).map_err(|error| not_understood(&error))?,
            &mut bytes,
        );
        send.write_all(&bytes).await.map_err(|error| connection_lost(connection, &error))?;
        let mut recv = link::buffered(recv);
        let frame = first_frame(&mut recv, connection).await?;
        let hello =
            hello::read(&frame, &self.version, here, &there).map_err(|error| not_understood(&error))?;
        Ok(peer(connection, there, hello, (send, recv), &self.settings, &self.board))
    }
}

/// Returns the unspecified address of the family of `like`, or its loopback address if `like` is one.
pub(super) fn any_address(like: SocketAddr) -> SocketAddr {
    let ip = match like.ip() {
        IpAddr::V4(ip) if ip.is_loopback() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(ip) if ip.is_loopback() => Ipv6Addr::LOCALHOST.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    SocketAddr::new(ip, 0)
}

/// Opens a connection to a node with a certificate of this role.
pub(super) async fn open(
    endpoint: &Endpoint,
    crypto: Arc<QuicClientConfig>,
    address: SocketAddr,
    role: Role,
    settings: &Settings,
) -> Result<Connection, Refusal> {
    let mut config = ClientConfig::new(crypto);
    config.transport_config(settings.transport(address.ip()));
    let connecting = endpoint.connect_with(config, address, &role.dns_name());
    let connecting = connecting.map_err(|error| {
        let cause = match error {
            ConnectError::InvalidRemoteAddress(_) => Cause::Unreachable,
            _ => Cause::Lost,
        };
        Refusal::new(cause, format!("failed to connect to {address}: {error}"))
    })?;
    connecting.await.map_err(|error| match error {
        quinn::ConnectionError::TimedOut => unreachable(address, settings.idle),
        error => Refusal::of_connection(&error),
    })
}

fn unreachable(address: SocketAddr, within: Duration) -> Refusal {
    let text = format!(
        "no response from {address} within {} s; check that this is the manager's --listen address (UDP, by \
         default port 7117)",
        within.as_secs_f64()
    );
    Refusal::new(Cause::Unreachable, text)
}
