//! Handlers for the results of a study: the list of files, and one file.

use super::{Reply, Shared};
use crate::http::control::ControlError;
use crate::http::download;
use actix_web::HttpResponse;
use actix_web::web::Path;
use pleach_api::schema::{Results, is_result_name};

pub(in crate::http) async fn names(id: Path<String>, shared: Shared) -> Reply {
    let results = shared.control.result_names(&id).await?;
    Ok(HttpResponse::Ok().json(Results { results }))
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
