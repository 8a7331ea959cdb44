//! Bodies of requests: piece by piece, none longer than its limit, none slower than allowed.

use super::Limits;
use super::error::ApiError;
use crate::service::inputs::InputError;
use actix_web::HttpRequest;
use actix_web::http::header::CONTENT_LENGTH;
use actix_web::rt::time::timeout;
use actix_web::web::{Payload, block};
use bytes::Bytes;
use std::io::{Read, Seek, Write};
use std::path::Path;
use std::time::{Duration, Instant};
use tempfile::{SpooledTempFile, spooled_tempfile_in};
use tokio_stream::StreamExt;

/// Written at once, and kept in memory where a body is no longer: pieces are a few kB, and every write waits for a thread.
const BLOCK_BYTES: usize = 1 << 20;

/// A body that is being read.
pub(super) struct Body {
    payload: Payload,
    /// Bytes that may still come.
    left: u64,
    limit: u64,
    /// Time in which `least` bytes come. Only waiting counts.
    patience: Duration,
    least: u64,
    /// Of both, what has not passed and not come.
    patience_left: Duration,
    least_left: u64,
}

impl Body {
    /// The body of a request.
    ///
    /// # Errors
    /// [`ApiError::TooLong`] where the client says that it is longer than `limit`.
    pub(super) fn new(
        request: &HttpRequest,
        payload: Payload,
        limit: u64,
        limits: &Limits,
    ) -> Result<Self, ApiError> {
        let length = request.headers().get(CONTENT_LENGTH).and_then(|length| length.to_str().ok());
        if length.and_then(|length| length.parse::<u64>().ok()).is_some_and(|length| length > limit) {
            return Err(ApiError::TooLong { limit });
        }
        let (patience, least) = (limits.body, limits.body_bytes);
        Ok(Self { payload, left: limit, limit, patience, least, patience_left: patience, least_left: least })
    }

    /// The next piece, or none at the end.
    ///
    /// # Errors
    /// [`ApiError::TooLong`], [`ApiError::TooSlow`], and [`ApiError::Request`] for a body that is cut short.
    pub(super) async fn next(&mut self) -> Result<Option<Bytes>, ApiError> {
        let asked = Instant::now();
        let Ok(piece) = timeout(self.patience_left, self.payload.next()).await else {
            return Err(ApiError::TooSlow { bytes: self.least, seconds: self.patience.as_secs_f64() });
        };
        self.patience_left = self.patience_left.saturating_sub(asked.elapsed());
        let Some(piece) = piece.transpose().map_err(|error| ApiError::Request(error.to_string()))? else {
            return Ok(None);
        };
        self.left =
            self.left.checked_sub(piece.len() as u64).ok_or(ApiError::TooLong { limit: self.limit })?;
        self.least_left = self.least_left.saturating_sub(piece.len() as u64);
        if self.least_left == 0 {
            (self.patience_left, self.least_left) = (self.patience, self.least);
        }
        Ok(Some(piece))
    }

    /// All of it, to be read: in a file of `folder` that has no name, unless it is short. Memory does not grow with it.
    ///
    /// # Errors
    /// As [`Body::next`], and [`ApiError::Input`] when it cannot be kept.
    pub(super) async fn spool(mut self, folder: &Path) -> Result<impl Read + Send + use<>, ApiError> {
        let mut file = spooled_tempfile_in(BLOCK_BYTES, folder);
        let mut pieces = Vec::new();
        while let Some(piece) = self.next().await? {
            pieces.extend_from_slice(&piece);
            if pieces.len() >= BLOCK_BYTES {
                (file, pieces) = write(file, pieces, folder).await?;
            }
        }
        (file, _) = write(file, pieces, folder).await?;
        file.rewind().map_err(|error| InputError::at(&folder.join("submission"), error))?;
        Ok(file)
    }
}

async fn write(
    mut file: SpooledTempFile,
    mut pieces: Vec<u8>,
    folder: &Path,
) -> Result<(SpooledTempFile, Vec<u8>), ApiError> {
    let written = block(move || {
        file.write_all(&pieces)?;
        pieces.clear();
        std::io::Result::Ok((file, pieces))
    });
    let written = written.await.map_err(|error| ApiError::Defect(error.to_string()))?;
    Ok(written.map_err(|error| InputError::at(&folder.join("submission"), error))?)
}
