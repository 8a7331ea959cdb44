//! Metrics of requests: count by method, route and status, and duration.
//!
//! The label is the pattern of the route, and all unknown paths share one label, so clients cannot create series.

use actix_web::Error;
use actix_web::body::MessageBody;
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::http::Method;
use actix_web::middleware::Next;
use pleach_telemetry::catalog::{HTTP_IN_FLIGHT, HTTP_REQUESTS, HTTP_SECONDS};
use std::time::Instant;

/// Request in progress. The gauge decreases on drop, however the request ends.
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

/// Returns the label of a method. All methods that no client is expected to use share one label.
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

/// Measures a request and calls the next handler.
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
