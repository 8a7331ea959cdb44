//! Handlers for the results of a study: the list of files, one file, and what became of its tasks.

use super::{Reply, Shared};
use crate::http::control::ControlError;
use crate::http::download;
use crate::http::error::ApiError;
use actix_web::web::{Path, Query};
use actix_web::{HttpRequest, HttpResponse};
use pleach_api::schema::{Results, is_result_name};
use pleach_results::provenance::RunSelection;
use serde::Deserialize;

pub(in crate::http) async fn names(id: Path<String>, shared: Shared) -> Reply {
    let results = shared.control.result_names(&id).await?;
    Ok(HttpResponse::Ok().json(Results { results }))
}

/// Query of an explanation.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ExplainQuery {
    evaluation: Option<usize>,
    tile: Option<String>,
    phase: Option<usize>,
}

pub(in crate::http) async fn explanation(request: HttpRequest, id: Path<String>, shared: Shared) -> Reply {
    let query = Query::<ExplainQuery>::from_query(request.query_string());
    let allowed = |error| {
        ApiError::Request(format!("{error}; evaluation=N, tile=NAME and phase=N are allowed, each once"))
    };
    let ExplainQuery { evaluation, tile, phase } = query.map_err(allowed)?.into_inner();
    if tile.is_some() && evaluation.is_none() {
        return Err(ApiError::Request("tile: allowed with evaluation=N only".to_owned()));
    }
    let answer = shared.control.explain(&id, RunSelection { evaluation, tile, phase }).await?;
    Ok(HttpResponse::Ok().json(answer))
}

/// Sends only listed files, so that no name can lead to another file.
pub(in crate::http) async fn one(path: Path<(String, String)>, shared: Shared) -> Reply {
    let (id, name) = path.into_inner();
    let names = shared.control.result_names(&id).await?;
    if !is_result_name(&name) || !names.contains(&name) {
        return Err(ControlError::Missing(format!("{name}: not a result of study {id}")).into());
    }
    download::file(shared.control.result(&id, &name).await?).await
}
