//! Upload of input files, which are stored if their content has the digest in the path.

use super::{Reply, Shared};
use crate::http::body::Body;
use crate::http::error::ApiError;
use crate::input_store::{InputError, Receiving};
use actix_web::web::{Path, Payload, block};
use actix_web::{HttpRequest, HttpResponse};
use pleach_api::digest::InputDigest;
use pleach_api::schema::Stored;

/// 1 MiB per write: pieces of a body are a few kB, and every write waits for a thread that may wait for the disk.
const BLOCK_BYTES: usize = 1 << 20;

/// Receives an input file. If the store already has it, the body is read and discarded: its client may have missed
/// the answer to an earlier upload, and reads an answer only after it has sent everything. A corrupt file is
/// replaced.
pub(in crate::http) async fn receive(
    request: HttpRequest,
    digest: Path<String>,
    payload: Payload,
    shared: Shared,
) -> Reply {
    let digest: InputDigest =
        digest.parse().map_err(|error| ApiError::Request(format!("{digest}: {error}")))?;
    let mut body = Body::new(&request, payload, shared.limits.input_bytes, &shared.limits)?;
    let inputs = std::sync::Arc::clone(&shared.inputs);
    // The store may read the whole file to verify it.
    if apart(move || Ok(inputs.has(digest))).await? {
        let mut bytes = 0;
        while let Some(piece) = body.next().await? {
            bytes += piece.len() as u64;
        }
        shared.control.input_arrived(digest).await?;
        return Ok(HttpResponse::Ok().json(Stored { digest, bytes }));
    }
    match store(&mut body, digest, &shared).await {
        Ok(bytes) => {
            shared.control.input_arrived(digest).await?;
            Ok(HttpResponse::Created().json(Stored { digest, bytes }))
        }
        Err(error) => {
            if matches!(error, ApiError::Input(_)) {
                // The client reads the reason once it has sent everything. Further errors on the way add nothing.
                while let Ok(Some(_)) = body.next().await {}
            }
            Err(error)
        }
    }
}

async fn store(body: &mut Body, digest: InputDigest, shared: &Shared) -> Result<u64, ApiError> {
    let inputs = std::sync::Arc::clone(&shared.inputs);
    let mut receiving = apart(move || inputs.receive(digest)).await?;
    let mut pieces = Vec::with_capacity(BLOCK_BYTES);
    while let Some(piece) = body.next().await? {
        pieces.extend_from_slice(&piece);
        if pieces.len() >= BLOCK_BYTES {
            (receiving, pieces) = write(receiving, pieces).await?;
        }
    }
    let (receiving, _) = write(receiving, pieces).await?;
    apart(move || receiving.finish()).await
}

async fn write(mut receiving: Receiving, mut pieces: Vec<u8>) -> Result<(Receiving, Vec<u8>), ApiError> {
    apart(move || {
        receiving.write(&pieces)?;
        pieces.clear();
        Ok((receiving, pieces))
    })
    .await
}

/// Runs `work` on a blocking thread, because it may wait for the disk.
async fn apart<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, InputError> + Send + 'static,
) -> Result<T, ApiError> {
    let done = block(work).await.map_err(|error| ApiError::Defect(error.to_string()))?;
    Ok(done?)
}
