//! Handlers for the results of a study: the list of files, one file, what became of its tasks, and its objects by position.

use super::{Reply, Shared};
use crate::http::control::ControlError;
use crate::http::download;
use crate::http::error::ApiError;
use actix_web::web::{Path, Query};
use actix_web::{HttpRequest, HttpResponse};
use pleach_api::schema::{Results, is_result_name};
use pleach_results::provenance::RunSelection;
use pleach_study::spatial::{self, DEFAULT_COUNT, ObjectQuery, SelectionTextError};
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

/// Query over the objects of an evaluation.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ObjectsQuery {
    stage: String,
    output: String,
    evaluation: usize,
    tile: Option<String>,
    #[serde(rename = "box")]
    within: Option<String>,
    nearest: Option<String>,
    count: Option<u32>,
    unit: Option<String>,
}

pub(in crate::http) async fn objects(request: HttpRequest, id: Path<String>, shared: Shared) -> Reply {
    let allowed = |error| {
        ApiError::Request(format!(
            "{error}; stage=S, output=NAME, evaluation=N, tile=NAME, box=X0,Y0,X1,Y1 or nearest=X,Y, count=K and unit=px|um are \
             allowed, each once"
        ))
    };
    let query = Query::<ObjectsQuery>::from_query(request.query_string()).map_err(allowed)?.into_inner();
    let refused = |error: SelectionTextError| ApiError::Request(error.to_string());
    let selection = spatial::selection(query.within.as_deref(), query.nearest.as_deref()).map_err(refused)?;
    let in_microns = match query.unit.as_deref() {
        None | Some("px") => false,
        Some("um") => true,
        Some(unit) => return Err(ApiError::Request(format!("unit: {unit:?}; px and um are allowed"))),
    };
    let count = query.count.unwrap_or(DEFAULT_COUNT);
    let ObjectsQuery { stage, output, evaluation, tile: image, .. } = query;
    let query = ObjectQuery { stage, output, evaluation, image, selection, count, in_microns };
    Ok(HttpResponse::Ok().json(shared.control.objects(&id, query).await?))
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
