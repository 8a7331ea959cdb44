//! Handlers for studies: list, show, submit, cancel, forget.

use super::{Reply, Shared};
use crate::http::access::{client, client_at, submitter};
use crate::http::body::Body;
use crate::http::error::ApiError;
use actix_web::http::header::{CONTENT_TYPE, LOCATION};
use actix_web::web::{Path, Payload, block};
use actix_web::{HttpRequest, HttpResponse};
use pleach_api::schema::Studies;
use pleach_api::submission::Submission;
use std::io::BufReader;

/// Header with the idempotency key: a client repeats a request under the same key.
const KEY: &str = "Idempotency-Key";

/// Maximum length of a key. Clients draw random keys of 32 digits.
const MAX_KEY: usize = 128;

pub(in crate::http) async fn list(shared: Shared) -> Reply {
    let studies = shared.control.studies().await?;
    Ok(HttpResponse::Ok().json(Studies { studies }))
}

pub(in crate::http) async fn one(id: Path<String>, shared: Shared) -> Reply {
    Ok(HttpResponse::Ok().json(shared.control.study(&id).await?))
}

pub(in crate::http) async fn cancel(request: HttpRequest, id: Path<String>, shared: Shared) -> Reply {
    Ok(HttpResponse::Ok().json(shared.control.cancel(&id, client_at(&request)?).await?))
}

pub(in crate::http) async fn forget(id: Path<String>, shared: Shared) -> Reply {
    Ok(HttpResponse::Ok().json(shared.control.forget(&id).await?))
}

pub(in crate::http) async fn submit(request: HttpRequest, payload: Payload, shared: Shared) -> Reply {
    let key = key(&request)?;
    // No browser sends this type on behalf of another site either.
    let media_type = request.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let media_type = media_type.and_then(|value| value.split(';').next()).map(str::trim);
    if !media_type.is_some_and(|media_type| media_type.eq_ignore_ascii_case("application/json")) {
        return Err(ApiError::MediaType("invalid Content-Type; application/json is allowed"));
    }
    let client = client(&request)?;
    let body = Body::new(&request, payload, shared.limits.submission_bytes, &shared.limits)?;
    // Each client has permits of its own: a slow body delays only the same client.
    let share = shared.bodies.acquire(&client).await?;
    let body = body.spool(shared.inputs.folder()).await?;
    // The permit bounds transfers only. The next ones bound parsing and planning.
    drop(share);
    // The client's own turn comes first: its waiting submissions must not occupy the permits that all clients share.
    let _of_client = shared.turns.acquire(&client).await?;
    let turn = shared.submissions.acquire().await;
    let _turn = turn.map_err(|error| ApiError::Defect(error.to_string()))?;
    let understood = block(move || {
        let mut json = serde_json::Deserializer::from_reader(BufReader::new(body));
        let submission: Submission = serde_path_to_error::deserialize(&mut json)
            .map_err(|error| ApiError::Request(format!("submission: {error}")))?;
        let ended = json.end().map_err(|error| ApiError::Request(format!("submission: {error}")));
        ended.map(|()| submission)
    });
    // The permits are held until the answer, because the submission is in memory until then.
    let submission = understood.await.map_err(|error| ApiError::Defect(error.to_string()))??;
    let submitted = shared.control.submit(submission, key, submitter(&request)?).await?;
    let location = format!("/api/v1/studies/{}", submitted.id);
    Ok(HttpResponse::Created().insert_header((LOCATION, location)).json(submitted))
}

fn key(request: &HttpRequest) -> Result<Option<String>, ApiError> {
    let Some(key) = request.headers().get(KEY) else { return Ok(None) };
    let key = key.to_str().ok().filter(|key| (1..=MAX_KEY).contains(&key.len()));
    let allowed = || format!("{KEY}: 1 to {MAX_KEY} ASCII characters are allowed");
    key.map(|key| Some(key.to_owned())).ok_or_else(|| ApiError::Request(allowed()))
}
