//! HTTP interface of the manager: clients submit, follow and end studies, send input files and download results.
//!
//! The server runs on a thread of its own ([`serve`]) and passes every operation to a `Control`, which decides.
//! `routes` lists the paths, and the served `openapi.json` describes them for other programs. Clients authenticate
//! with a token or a client certificate of the cluster (`access`). [`Limits`] bound the resources that they use.

mod access;
mod body;
pub(crate) mod control;
mod download;
mod error;
mod handlers;
mod request_metrics;
mod routes;
mod shares;

#[cfg(test)]
pub(crate) mod tests;

use crate::exporter::Text;
use crate::input_store::InputStore;
use crate::listener::{self, Bounds, Serve, answer_once};
use actix_web::middleware::{DefaultHeaders, from_fn};
use actix_web::{App, web};
use control::Control;
use pleach_api::token::ApiToken;
use rustls::ServerConfig;
use shares::ClientPermits;
use std::io;
use std::net::TcpListener;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Notify, Semaphore};
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;

/// Limits on the resources of clients.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Maximum bytes of a submission. The default has room for 1 million parameter sets of 20 values each.
    pub(crate) submission_bytes: u64,
    /// Maximum number of submissions that are parsed and planned at once. All of them are in memory until then.
    pub(crate) submissions: usize,
    /// Maximum number of submission bodies that one client sends at once.
    pub(crate) bodies: usize,
    /// Maximum bytes of an input file. The default of 4 GiB is larger than any tile and the maximum size of a 32-bit
    /// TIFF file.
    pub(crate) input_bytes: u64,
    /// Maximum number of connections. A client has one or two.
    pub(crate) connections: usize,
    /// Maximum number of connections from one network: an IPv4 address or an IPv6 /64. Clients behind one proxy share
    /// them.
    pub(crate) of_network: usize,
    /// Maximum number of connections without credentials: probes and monitoring, which last a moment each.
    pub(crate) anonymous: usize,
    /// Maximum duration of a connection without credentials.
    pub(crate) anonymous_time: Duration,
    /// Maximum duration of the TLS handshake, and again of the head of a request. Every working client is faster.
    pub(crate) head: Duration,
    /// Period of a body: a working client sends at least [`Limits::body_bytes`] in each period.
    pub(crate) body: Duration,
    /// Minimum bytes of a body per period. The default is 1 KiB/s, below any network over which a slide can be
    /// sent.
    pub(crate) body_bytes: u64,
    /// Maximum time without progress of a write to a client.
    pub(crate) write: Duration,
    /// Time for the requests in progress when the server stops.
    pub(crate) stop: Duration,
}

impl Limits {
    fn bounds(&self) -> Bounds {
        Bounds {
            connections: self.connections,
            of_network: self.of_network,
            anonymous: self.anonymous,
            anonymous_time: self.anonymous_time,
            head: self.head,
            write: self.write,
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            submission_bytes: 256_000_000,
            submissions: 2,
            bodies: 8,
            input_bytes: 4 << 30,
            connections: 512,
            of_network: 128,
            anonymous: 256,
            anonymous_time: Duration::from_secs(15),
            head: Duration::from_secs(5),
            body: Duration::from_secs(30),
            body_bytes: 30 << 10,
            write: Duration::from_secs(30),
            stop: Duration::from_secs(5),
        }
    }
}

/// Parts of a server.
pub struct Setup {
    /// Bound socket for the connections of clients.
    pub listener: TcpListener,
    /// TLS configuration of [`https`](pleach_actors::transport::https).
    pub tls: ServerConfig,
    /// Operations of the manager that requests call.
    pub control: Arc<dyn Control>,
    /// Bearer token that clients without a certificate send.
    pub token: ApiToken,
    /// Store of the input files that clients upload.
    pub inputs: Arc<InputStore>,
    /// Limits on the resources of clients.
    pub limits: Limits,
}

/// State that all requests share.
struct State {
    control: Arc<dyn Control>,
    token: ApiToken,
    inputs: Arc<InputStore>,
    limits: Limits,
    metrics: Text,
    /// Permits for submission bodies, [`Limits::bodies`] per client.
    bodies: ClientPermits,
    /// Permits for submissions that are parsed and planned, one per client.
    turns: ClientPermits,
    submissions: Semaphore,
}

/// Running server. Dropping it stops it at once.
#[derive(Debug)]
pub struct Server {
    server: listener::Server,
    patience: Duration,
}

impl Server {
    /// Stops the server: accepts nothing new, and finishes the requests in progress within `Limits::stop`.
    pub fn stop(self) {
        self.server.stop(self.patience);
    }
}

/// Starts the server on a thread of its own.
///
/// # Errors
/// [`io::Error`] when the operating system provides no thread or does not listen.
pub fn serve(setup: Setup) -> io::Result<Server> {
    let Setup { listener, tls, control, token, inputs, limits } = setup;
    let state = State {
        control,
        token,
        inputs,
        limits,
        metrics: Text::default(),
        bodies: ClientPermits::new(limits.bodies),
        turns: ClientPermits::new(1),
        submissions: Semaphore::new(limits.submissions),
    };
    let make = move |draining| serving(state, tls, draining);
    let server = listener::start("http", listener, limits.bounds(), None, make)?;
    Ok(Server { server, patience: limits.stop })
}

async fn serving(state: State, mut tls: ServerConfig, draining: Rc<Notify>) -> io::Result<Serve> {
    let bounds = state.limits.bounds();
    // Answers describe the present state, and their media type is exact.
    let headers =
        DefaultHeaders::new().add(("Cache-Control", "no-store")).add(("X-Content-Type-Options", "nosniff"));
    let app = App::new()
        .app_data(web::Data::new(state))
        // actix runs the last of these first: `measure` is outermost, so that it counts every answer.
        .wrap(from_fn(answer_once))
        .wrap(headers)
        .wrap(from_fn(request_metrics::measure))
        .configure(routes::configure);
    let serve = listener::service(app, bounds, draining, access::on_connect).await?;
    // No HTTP/2: answers are small, and connections are few.
    tls.alpn_protocols.push(b"http/1.1".to_vec());
    let acceptor = TlsAcceptor::from(Arc::new(tls));
    Ok(Box::new(move |stream, address| {
        let (acceptor, serve) = (acceptor.clone(), serve.clone());
        Box::pin(async move {
            // On a failed handshake, TLS itself sends the client the reason.
            if let Ok(Ok(stream)) = timeout(bounds.head, acceptor.accept(stream)).await {
                serve(stream, address).await;
            }
        })
    }))
}
