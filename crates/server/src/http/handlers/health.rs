//! Handlers for the process itself: liveness, readiness, metrics and the description of the interface.

use super::{Reply, Shared};
use crate::http::control::ControlError;
use actix_web::HttpResponse;
use pleach_api::schema::Health;

/// Description of all routes.
const OPENAPI: &str = include_str!("../openapi.json");

fn status(status: &str) -> HttpResponse {
    HttpResponse::Ok().json(Health { status: status.to_owned() })
}

/// Liveness probe: any answer shows that the server's thread runs.
pub(in crate::http) async fn health() -> HttpResponse {
    status("ok")
}

pub(in crate::http) async fn ready(shared: Shared) -> Reply {
    if !shared.control.is_ready().await? {
        return Err(
            ControlError::NotReady("the manager does not accept studies at present".to_owned()).into()
        );
    }
    Ok(status("ready"))
}

pub(in crate::http) async fn metrics(shared: Shared) -> Reply {
    let text = shared.metrics.get(shared.control.metrics()).await?;
    Ok(HttpResponse::Ok().content_type(crate::exporter::TEXT).body(text))
}

pub(in crate::http) async fn openapi() -> HttpResponse {
    HttpResponse::Ok().content_type("application/json").body(OPENAPI)
}
