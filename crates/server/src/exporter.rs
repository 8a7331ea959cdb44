//! Plain HTTP server of a process: `GET /metrics` for Prometheus, `GET /healthz` as liveness probe and `GET /readyz`
//! as readiness probe.
//!
//! No answer contains data of studies. All clients are without credentials, and [`listener`] bounds their
//! connections.

mod error;
mod text;

pub use error::ExporterError;
pub(crate) use text::Text;

use crate::listener::{self, Bounds, Probes, Serve, Server, Stream, answer_once};
use actix_web::middleware::from_fn;
use actix_web::{App, HttpResponse, web};
use pleach_study::Defect;
use pleach_telemetry::Exposition;
use std::future::Future;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;

/// Media type of the metrics.
pub(crate) const TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Bounds for monitoring: Prometheus has one connection, and a probe another for a moment. A newcomer may end the
/// oldest connection. An answer is ready within milliseconds, and its 200 kB arrive within seconds at any speed that
/// monitoring has.
const BOUNDS: Bounds = Bounds {
    connections: 64,
    of_network: 48,
    anonymous: 64,
    anonymous_time: Duration::from_secs(10),
    head: Duration::from_secs(5),
    write: Duration::from_secs(5),
};

const PROBES: Probes = Probes(&["/healthz", "/readyz"]);

/// Future of a function that sets the sampled metrics. `None` when the process ends.
pub type SampleFuture<'a> = Pin<Box<dyn Future<Output = Option<Box<dyn FnOnce() + Send>>> + Send + 'a>>;

/// Future of the readiness. The error is the reason, in one line.
pub type Readiness<'a> = Pin<Box<dyn Future<Output = Result<(), String>> + Send + 'a>>;

/// Source of the sampled metrics and of the readiness.
pub trait MetricSource: Send + Sync + 'static {
    /// Samples the process and returns a function that sets the sampled metrics.
    fn look(&self) -> SampleFuture<'_>;

    /// Returns whether the process is ready.
    fn ready(&self) -> Readiness<'_>;
}

struct State {
    exposition: Exposition,
    sampled: Box<dyn MetricSource>,
    text: Text,
}

/// Binds the address. Commands call this first, so that a taken address ends them before they start any work.
///
/// # Errors
/// [`ExporterError::Address`] when the address is taken or does not belong to this machine.
pub fn bind(address: SocketAddr) -> Result<TcpListener, ExporterError> {
    TcpListener::bind(address).map_err(|cause| ExporterError::Address { address, cause })
}

/// Starts the server on a thread of its own.
///
/// # Errors
/// [`ExporterError::Defect`] when the operating system provides no thread or does not listen.
pub fn serve(
    listener: TcpListener,
    exposition: Exposition,
    sampled: Box<dyn MetricSource>,
) -> Result<Server, ExporterError> {
    let state = State { exposition, sampled, text: Text::default() };
    let make = move |draining| serving(state, draining);
    let started = listener::start("metrics", listener, BOUNDS, Some(PROBES), make);
    Ok(started.map_err(Defect::new)?)
}

async fn serving(state: State, draining: Rc<Notify>) -> io::Result<Serve> {
    let state = web::Data::new(Arc::new(state));
    let app = App::new()
        .app_data(state)
        .wrap(from_fn(answer_once))
        .route("/metrics", web::get().to(metrics))
        .route("/healthz", web::get().to(health))
        .route("/readyz", web::get().to(ready));
    Ok(Box::new(listener::service(app, BOUNDS, draining, |_: &Stream| {}).await?))
}

async fn metrics(state: web::Data<Arc<State>>) -> HttpResponse {
    let text = state.text.get(async {
        let sample = state
            .sampled
            .look()
            .await
            .ok_or_else(|| HttpResponse::ServiceUnavailable().body("the process is shutting down\n"))?;
        let state = Arc::clone(&state);
        // Rendered on a blocking thread, because other clients wait for the server's only thread.
        let text = web::block(move || state.exposition.text(sample).map_err(|error| error.to_string()));
        let text = text.await.map_err(|error| error.to_string()).flatten();
        text.map_err(|error| HttpResponse::InternalServerError().body(format!("{error}\n")))
    });
    match text.await {
        Ok(pieces) => HttpResponse::Ok().content_type(TEXT).body(pieces),
        Err(why) => why,
    }
}

async fn health(state: web::Data<Arc<State>>) -> HttpResponse {
    match state.sampled.look().await {
        Some(_) => HttpResponse::Ok().body("ok\n"),
        None => HttpResponse::ServiceUnavailable().body("the process is shutting down\n"),
    }
}

async fn ready(state: web::Data<Arc<State>>) -> HttpResponse {
    match state.sampled.ready().await {
        Ok(()) => HttpResponse::Ok().body("ok\n"),
        Err(why) => HttpResponse::ServiceUnavailable().body(format!("{why}\n")),
    }
}
