//! HTTP on the manager: studies are submitted, followed and ended here, their input files come in and their results go out.
//!
//! A server runs on a thread of its own ([`serve`]) and asks a [`Control`] whatever it is asked; it decides
//! nothing itself. What there is to ask is in [`routes`], and for everybody else in `openapi.json`, which is served.
//! Clients show a token or a certificate of the cluster ([`access`]); what they may take is bounded ([`Limits`]).

mod access;
mod body;
pub(crate) mod control;
mod download;
mod error;
mod handlers;
mod request_metrics;
mod routes;
pub(crate) mod schema;
mod shares;
pub(crate) mod token;

#[cfg(test)]
pub(crate) mod tests;

pub(crate) use error::MEDIA_TYPE as PROBLEM;

use crate::exporter::Text;
use crate::listener::{self, Bounds, Serve, answer_once};
use crate::service::inputs::InputStore;
use actix_web::middleware::{DefaultHeaders, from_fn};
use actix_web::{App, web};
use control::Control;
use rustls::ServerConfig;
use shares::Shares;
use std::io;
use std::net::TcpListener;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use token::ApiToken;
use tokio::sync::{Notify, Semaphore};
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;

/// What clients may take.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Longest submission: a million parameter sets of twenty values, with room to spare.
    pub(crate) submission_bytes: u64,
    /// Submissions that are parsed and planned at once, all in memory until then.
    pub(crate) submissions: usize,
    /// Bodies of submissions that come at once from one client.
    pub(crate) bodies: usize,
    /// Longest input file: larger than any tile, and what 32-bit TIFF can be.
    pub(crate) input_bytes: u64,
    /// Connections at once. A client has one or two.
    pub(crate) connections: usize,
    /// Of one network: an IPv4 address or an IPv6 /64. Clients behind one proxy share them.
    pub(crate) of_network: usize,
    /// Connections without credentials at once: probes and monitoring, for a moment each.
    pub(crate) anonymous: usize,
    /// How long one of these lasts.
    pub(crate) anonymous_time: Duration,
    /// For TLS, and again for the head of a request: whoever is slower is not a client.
    pub(crate) head: Duration,
    /// In each such time a client that is alive sends [`Limits::body_bytes`] of a body.
    pub(crate) body: Duration,
    /// 1 KiB/s by default: less than any network that a slide could be sent over.
    pub(crate) body_bytes: u64,
    /// How long a client may take nothing of an answer.
    pub(crate) write: Duration,
    /// For what has been begun when the server stops.
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

/// What a server is made of.
pub(crate) struct Setup {
    pub(crate) listener: TcpListener,
    /// See [`https`](pleach_actors::transport::https).
    pub(crate) tls: ServerConfig,
    pub(crate) control: Arc<dyn Control>,
    pub(crate) token: ApiToken,
    pub(crate) inputs: Arc<InputStore>,
    pub(crate) limits: Limits,
}

/// What all requests share.
struct State {
    control: Arc<dyn Control>,
    token: ApiToken,
    inputs: Arc<InputStore>,
    limits: Limits,
    metrics: Text,
    /// For bodies of submissions, by client.
    bodies: Shares,
    /// For submissions that are parsed and planned: one of each client.
    turns: Shares,
    submissions: Semaphore,
}

/// A running server. Dropped, it stops at once.
#[derive(Debug)]
pub(crate) struct Server {
    server: listener::Server,
    patience: Duration,
}

impl Server {
    /// Ends what has been begun, within [`Limits::stop`], and takes nothing new.
    pub(crate) fn stop(self) {
        self.server.stop(self.patience);
    }
}

/// Serves HTTP on a thread of its own.
///
/// # Errors
/// When the operating system gives no thread, or does not listen.
pub(crate) fn serve(setup: Setup) -> io::Result<Server> {
    let Setup { listener, tls, control, token, inputs, limits } = setup;
    let state = State {
        control,
        token,
        inputs,
        limits,
        metrics: Text::default(),
        bodies: Shares::new(limits.bodies),
        turns: Shares::new(1),
        submissions: Semaphore::new(limits.submissions),
    };
    let make = move |draining| serving(state, tls, draining);
    let server = listener::start("http", listener, limits.bounds(), None, make)?;
    Ok(Server { server, patience: limits.stop })
}

async fn serving(state: State, mut tls: ServerConfig, draining: Rc<Notify>) -> io::Result<Serve> {
    let bounds = state.limits.bounds();
    // Answers are of the moment, and are what they say they are.
    let headers =
        DefaultHeaders::new().add(("Cache-Control", "no-store")).add(("X-Content-Type-Options", "nosniff"));
    let app = App::new()
        .app_data(web::Data::new(state))
        .wrap(from_fn(answer_once))
        .wrap(headers)
        .wrap(from_fn(request_metrics::measure))
        .configure(routes::configure);
    let serve = listener::service(app, bounds, draining, access::on_connect).await?;
    tls.alpn_protocols.push(b"http/1.1".to_vec());
    let acceptor = TlsAcceptor::from(Arc::new(tls));
    Ok(Box::new(move |stream, address| {
        let (acceptor, serve) = (acceptor.clone(), serve.clone());
        Box::pin(async move {
            // A client that TLS turns away knows why from TLS.
            if let Ok(Ok(stream)) = timeout(bounds.head, acceptor.accept(stream)).await {
                serve(stream, address).await;
            }
        })
    }))
}
