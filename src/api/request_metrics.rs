//! Requests counted and timed: how many of each kind, how they were answered, and how long that took.
//!
//! A path is counted by its pattern, and what there is not as one: clients cannot make up series.

use actix_web::Error;
use actix_web::body::MessageBody;
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::http::Method;
use actix_web::middleware::Next;
use pleach_telemetry::catalog::{HTTP_IN_FLIGHT, HTTP_REQUESTS, HTTP_SECONDS};
use std::time::Instant;

/// A request that is being answered, whatever comes of it.
struct InFlight(metrics::Gauge);

impl InFlight {
    fn begin() -> Self {
        let gauge = HTTP_IN_FLIGHT.with([]);
        gauge.increment(1.0);
        Self(gauge)
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.decrement(1.0);
    }
}

/// Methods that somebody may have in mind; others are one.
fn method(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::HEAD => "HEAD",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::DELETE => "DELETE",
        _ => "other",
    }
}

/// Around everything that is asked.
pub(super) async fn measure(
    request: ServiceRequest,
    next: Next<impl MessageBody>,
) -> Result<ServiceResponse<impl MessageBody>, Error> {
    let (begun, _in_flight) = (Instant::now(), InFlight::begin());
    let method = method(request.method());
    let pattern = request.match_pattern();
    let answered = next.call(request).await;
    let route = pattern.as_deref().unwrap_or("none");
    let status = match &answered {
        Ok(response) => response.status(),
        Err(error) => error.as_response_error().status_code(),
    };
    HTTP_REQUESTS.with([method, route, status.as_str()]).increment(1);
    HTTP_SECONDS.with([method, route]).record(begun.elapsed().as_secs_f64());
    answered
}
