//! Handlers for workers: the list, the drain of one, and the scaling decision.

use super::{Reply, Shared};
use actix_web::HttpResponse;
use actix_web::web::Path;
use pleach_api::schema::Workers;

pub(in crate::http) async fn list(shared: Shared) -> Reply {
    let workers = shared.control.workers().await?;
    Ok(HttpResponse::Ok().json(Workers { workers }))
}

pub(in crate::http) async fn scaling(shared: Shared) -> Reply {
    Ok(HttpResponse::Ok().json(shared.control.scaling().await?))
}

pub(in crate::http) async fn drain(name: Path<String>, shared: Shared) -> Reply {
    Ok(HttpResponse::Ok().json(shared.control.drain(&name).await?))
}
