//! Bodies of requests: piece by piece, none longer than its limit, none waited for too long.

use super::problem::ApiError;
use actix_web::HttpRequest;
use actix_web::http::header::CONTENT_LENGTH;
use actix_web::rt::time::timeout;
use actix_web::web::Payload;
use bytes::Bytes;
use std::time::Duration;
use tokio_stream::StreamExt;

/// A body that is being read.
pub(super) struct Body {
    payload: Payload,
    /// Bytes that may still come.
    left: u64,
    limit: u64,
    patience: Duration,
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
        patience: Duration,
    ) -> Result<Self, ApiError> {
        let length = request.headers().get(CONTENT_LENGTH).and_then(|length| length.to_str().ok());
        if length.and_then(|length| length.parse::<u64>().ok()).is_some_and(|length| length > limit) {
            return Err(ApiError::TooLong { limit });
        }
        Ok(Self { payload, left: limit, limit, patience })
    }

    /// The next piece, or none at the end.
    ///
    /// # Errors
    /// [`ApiError::TooLong`], [`ApiError::TooSlow`], and [`ApiError::Request`] for a body that is cut short.
    pub(super) async fn next(&mut self) -> Result<Option<Bytes>, ApiError> {
        let piece = timeout(self.patience, self.payload.next()).await;
        let piece = piece.map_err(|_| ApiError::TooSlow { seconds: self.patience.as_secs() })?;
        let Some(piece) = piece.transpose().map_err(|error| ApiError::Request(error.to_string()))? else {
            return Ok(None);
        };
        self.left =
            self.left.checked_sub(piece.len() as u64).ok_or(ApiError::TooLong { limit: self.limit })?;
        Ok(Some(piece))
    }

    /// All of it. Memory grows as it comes, whatever the client says about its length.
    ///
    /// # Errors
    /// As [`Body::next`].
    pub(super) async fn all(mut self) -> Result<Vec<u8>, ApiError> {
        let mut all = Vec::new();
        while let Some(piece) = self.next().await? {
            all.extend_from_slice(&piece);
        }
        Ok(all)
    }
}
