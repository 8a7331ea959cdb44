//! HTTP on the manager: studies are submitted, followed and ended here, their input files come in and their results go out.
//!
//! A server runs on a thread of its own ([`serve`]) and asks a [`Control`] whatever it is asked; it decides
//! nothing itself. What there is to ask is in [`routes`], and for everybody else in `openapi.json`, which is served.
//! Clients show a token or a certificate of the cluster ([`access`]); what they may take is bounded ([`Limits`]).

mod access;
mod body;
pub(crate) mod control;
mod download;
mod handlers;
mod measure;
mod problem;
mod routes;
pub(crate) mod token;
pub(crate) mod view;

#[cfg(test)]
pub(crate) mod tests;

pub(crate) use problem::MEDIA_TYPE as PROBLEM;

use crate::service::inputs::InputStore;
use actix_web::dev::ServerHandle;
use actix_web::middleware::{DefaultHeaders, from_fn};
use actix_web::{App, HttpServer, web};
use control::Control;
use rustls::ServerConfig;
use std::io;
use std::net::TcpListener;
use std::sync::{Arc, mpsc};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;
use token::ApiToken;
use tokio::sync::Semaphore;

/// What clients may take.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Longest submission: a million parameter sets of twenty values, with room to spare.
    pub(crate) submission_bytes: u64,
    /// Submissions that are read and understood at once; each is in memory until it is.
    pub(crate) submissions: usize,
    /// Longest input file: larger than any tile, and what 32-bit TIFF can be.
    pub(crate) input_bytes: u64,
    /// Connections at once; more wait to be accepted. A client has one or two.
    pub(crate) connections: usize,
    /// For TLS, and again for the head of a request: whoever is slower is not a client.
    pub(crate) head: Duration,
    /// Between two pieces of a body: a client that is alive sends something.
    pub(crate) body: Duration,
    /// For what has been begun when the server stops.
    pub(crate) stop: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            submission_bytes: 256_000_000,
            submissions: 2,
            input_bytes: 4 << 30,
            connections: 256,
            head: Duration::from_secs(5),
            body: Duration::from_secs(30),
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
    submissions: Semaphore,
}

/// A running server. Dropped, it stops at once.
#[derive(Debug)]
pub(crate) struct Server {
    handle: ServerHandle,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Ends what has been begun, within [`Limits::stop`], and takes nothing new.
    pub(crate) fn stop(mut self) {
        self.end(true);
    }

    fn end(&mut self, gracefully: bool) {
        if let Some(thread) = self.thread.take() {
            // The server is told when the future is made; its thread ends when it has stopped.
            drop(self.handle.stop(gracefully));
            // One that has panicked has ended the process.
            let _ = thread.join();
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.end(false);
    }
}

/// Serves HTTP on a thread of its own.
///
/// # Errors
/// When the operating system gives no thread, or does not listen.
pub(crate) fn serve(setup: Setup) -> io::Result<Server> {
    let (tell, told) = mpsc::channel();
    let thread = Builder::new().name("http".to_owned()).spawn(move || {
        actix_web::rt::System::new().block_on(async move {
            match server(setup) {
                Err(error) => {
                    // Whoever started the server waits for this.
                    let _ = tell.send(Err(error));
                }
                Ok(server) => {
                    let _ = tell.send(Ok(server.handle()));
                    // What the listener says at its end concerns nobody any more.
                    let _ = server.await;
                }
            }
        });
    })?;
    let handle = told.recv().map_err(io::Error::other)??;
    Ok(Server { handle, thread: Some(thread) })
}

fn server(setup: Setup) -> io::Result<actix_web::dev::Server> {
    let Setup { listener, tls, control, token, inputs, limits } = setup;
    let submissions = Semaphore::new(limits.submissions);
    let state = web::Data::new(State { control, token, inputs, limits, submissions });
    let app = move || {
        // Answers are of the moment, and are what they say they are.
        let headers = DefaultHeaders::new()
            .add(("Cache-Control", "no-store"))
            .add(("X-Content-Type-Options", "nosniff"));
        App::new()
            .app_data(web::Data::clone(&state))
            .wrap(headers)
            .wrap(from_fn(measure::measure))
            .configure(routes::configure)
    };
    let server = HttpServer::new(app)
        // One thread: requests are few, and what takes long is done on others.
        .workers(1)
        .max_connections(limits.connections)
        .tls_handshake_timeout(limits.head)
        .client_request_timeout(limits.head)
        .client_disconnect_timeout(limits.head)
        .shutdown_timeout(limits.stop.as_secs())
        .on_connect(access::on_connect)
        .disable_signals();
    Ok(server.listen_rustls_0_23(listener, tls)?.run())
}
