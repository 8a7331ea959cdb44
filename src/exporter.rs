//! What a process measures and how it is, over plain HTTP: `GET /metrics` for Prometheus, `GET /healthz` for whoever restarts
//! it, `GET /readyz` for whoever waits until it works.
//!
//! None says anything about what studies hold. Nothing is decided here, and nothing else is served.

use crate::exit::{Outcome, Stop};
use actix_web::dev::ServerHandle;
use actix_web::{App, HttpResponse, HttpServer, web};
use pleach_telemetry::Exposition;
use std::future::Future;
use std::net::{SocketAddr, TcpListener};
use std::pin::Pin;
use std::sync::{Arc, mpsc};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

/// The media type of what is shown.
pub(crate) const TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Connections at once: Prometheus has one, and people another.
const CONNECTIONS: usize = 16;

/// For the head of a request: whoever is slower is not Prometheus.
const HEAD: Duration = Duration::from_secs(5);

/// What is done to show what there is now; `None` when the process ends.
pub(crate) type Looked<'a> = Pin<Box<dyn Future<Output = Option<Box<dyn FnOnce() + Send + 'a>>> + Send + 'a>>;

/// Whether the process does its work now; if not, why, in one line.
pub(crate) type Readiness<'a> = Pin<Box<dyn Future<Output = Result<(), String>> + Send + 'a>>;

/// Whoever knows how things are.
pub(crate) trait Sampled: Send + Sync + 'static {
    /// Looks, and gives what sets the metrics that are sampled.
    fn look(&self) -> Looked<'_>;

    /// Asks whether the process does its work.
    fn ready(&self) -> Readiness<'_>;
}

struct State {
    exposition: Exposition,
    sampled: Box<dyn Sampled>,
}

/// A running server. Dropped, it stops at once.
#[derive(Debug)]
pub(crate) struct Exporter {
    handle: ServerHandle,
    thread: Option<JoinHandle<()>>,
}

impl Drop for Exporter {
    fn drop(&mut self) {
        if let Some(thread) = self.thread.take() {
            // The server is told when the future is made; its thread ends when it has stopped.
            drop(self.handle.stop(false));
            // One that has panicked has ended the process.
            let _ = thread.join();
        }
    }
}

/// Takes an address, before anything else is begun.
///
/// # Errors
/// [`Stop::Input`] when it is taken, or none of this machine.
pub(crate) fn bind(address: SocketAddr) -> Outcome<TcpListener> {
    TcpListener::bind(address).map_err(|error| Stop::Input(format!("--metrics {address}: {error}")))
}

/// Serves on a thread of its own.
///
/// # Errors
/// [`Stop::Defect`] when the operating system gives no thread, or does not listen.
pub(crate) fn serve(
    listener: TcpListener,
    exposition: Exposition,
    sampled: Box<dyn Sampled>,
) -> Outcome<Exporter> {
    let (tell, told) = mpsc::channel();
    let thread = Builder::new().name("metrics".to_owned()).spawn(move || {
        actix_web::rt::System::new().block_on(async move {
            match server(listener, State { exposition, sampled }) {
                Err(error) => _ = tell.send(Err(error)),
                Ok(server) => {
                    // Whoever started the server waits for this.
                    let _ = tell.send(Ok(server.handle()));
                    // What the listener says at its end concerns nobody any more.
                    let _ = server.await;
                }
            }
        });
    });
    let thread = thread.map_err(Stop::defect)?;
    let handle = told.recv().map_err(Stop::defect)?.map_err(Stop::defect)?;
    Ok(Exporter { handle, thread: Some(thread) })
}

fn server(listener: TcpListener, state: State) -> std::io::Result<actix_web::dev::Server> {
    let state = web::Data::new(Arc::new(state));
    let app = move || {
        App::new()
            .app_data(web::Data::clone(&state))
            .route("/metrics", web::get().to(metrics))
            .route("/healthz", web::get().to(health))
            .route("/readyz", web::get().to(ready))
    };
    let server = HttpServer::new(app)
        .workers(1)
        .max_connections(CONNECTIONS)
        .client_request_timeout(HEAD)
        .client_disconnect_timeout(HEAD)
        .shutdown_timeout(0)
        .disable_signals();
    Ok(server.listen(listener)?.run())
}

async fn metrics(state: web::Data<Arc<State>>) -> HttpResponse {
    let Some(sample) = state.sampled.look().await else {
        return HttpResponse::ServiceUnavailable().body("the process ends\n");
    };
    match state.exposition.text(sample) {
        Ok(text) => HttpResponse::Ok().content_type(TEXT).body(text),
        Err(error) => HttpResponse::InternalServerError().body(format!("{error}\n")),
    }
}

async fn health(state: web::Data<Arc<State>>) -> HttpResponse {
    match state.sampled.look().await {
        Some(_) => HttpResponse::Ok().body("ok\n"),
        None => HttpResponse::ServiceUnavailable().body("the process ends\n"),
    }
}

async fn ready(state: web::Data<Arc<State>>) -> HttpResponse {
    match state.sampled.ready().await {
        Ok(()) => HttpResponse::Ok().body("ok\n"),
        Err(why) => HttpResponse::ServiceUnavailable().body(format!("{why}\n")),
    }
}
