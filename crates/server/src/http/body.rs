//! Bodies of requests, read piece by piece: none is longer than its limit or slower than allowed.

use super::Limits;
use super::error::ApiError;
use crate::input_store::InputError;
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

/// 1 MiB per write: pieces of a body are a few kB, and every write waits for a thread. Shorter bodies stay in memory.
const BLOCK_BYTES: usize = 1 << 20;

/// Body of a request during its transfer.
pub(super) struct Body {
    payload: Payload,
    /// Remaining bytes of the limit.
    remaining: u64,
    limit: u64,
    /// Period: at least `min_rate` bytes must arrive in each. Only waiting for the client counts.
    patience: Duration,
    min_rate: u64,
    /// Rest of `patience` and of `min_rate` in the present period.
    patience_left: Duration,
    min_remaining: u64,
}

impl Body {
    /// Prepares to read the body of a request.
    ///
    /// # Errors
    /// [`ApiError::TooLong`] if the head of the request announces more than `limit` bytes.
    pub(super) fn new(
        request: &HttpRequest,
        payload: Payload,
        limit: u64,
        limits: &Limits,
    ) -> Result<Self, ApiError> {
        let length = request.headers().get(CONTENT_LENGTH).and_then(|length| length.to_str().ok());
        // Refused before the transfer. `next` applies the limit to bodies without a length.
        if length.and_then(|length| length.parse::<u64>().ok()).is_some_and(|length| length > limit) {
            return Err(ApiError::TooLong { limit });
        }
        let (patience, min_rate) = (limits.body, limits.body_bytes);
        Ok(Self {
            payload,
            remaining: limit,
            limit,
            patience,
            min_rate,
            patience_left: patience,
            min_remaining: min_rate,
        })
    }

    /// Returns the next piece, or `None` at the end.
    ///
    /// # Errors
    /// [`ApiError::TooLong`], [`ApiError::TooSlow`], and [`ApiError::Request`] for a truncated body.
    pub(super) async fn next(&mut self) -> Result<Option<Bytes>, ApiError> {
        let asked = Instant::now();
        let Ok(piece) = timeout(self.patience_left, self.payload.next()).await else {
            return Err(ApiError::TooSlow { bytes: self.min_rate, seconds: self.patience.as_secs_f64() });
        };
        // Saturates: a piece that arrives just in time may be seen slightly later.
        self.patience_left = self.patience_left.saturating_sub(asked.elapsed());
        let Some(piece) = piece.transpose().map_err(|error| ApiError::Request(error.to_string()))? else {
            return Ok(None);
        };
        self.remaining =
            self.remaining.checked_sub(piece.len() as u64).ok_or(ApiError::TooLong { limit: self.limit })?;
        // Saturates: surplus bytes do not count for the next period, so a client cannot send first and stall later.
        self.min_remaining = self.min_remaining.saturating_sub(piece.len() as u64);
        if self.min_remaining == 0 {
            (self.patience_left, self.min_remaining) = (self.patience, self.min_rate);
        }
        Ok(Some(piece))
    }

    /// Reads the whole body into an unnamed file in `folder`, or into memory if it is short. So memory does not grow
    /// with the body.
    ///
    /// # Errors
    /// As [`Body::next`], and [`ApiError::Input`] when the file cannot be written.
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
        // Needs no blocking thread: it moves the offset only, and the next read is on such a thread.
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
