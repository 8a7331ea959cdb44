//! What goes wrong, as HTTP says it: a status and a problem (RFC 9457) of one line.

use super::control::ControlError;
use super::schema::ProblemDetails;
use crate::service::inputs::InputError;
use actix_web::http::StatusCode;
use actix_web::http::header::{ALLOW, WWW_AUTHENTICATE};
use actix_web::{HttpRequest, HttpResponse, ResponseError};
use thiserror::Error;

/// The media type of problems.
pub(crate) const MEDIA_TYPE: &str = "application/problem+json";

/// Why a request is not met.
#[derive(Debug, Error)]
pub(super) enum ApiError {
    /// The manager refuses.
    #[error("{0}")]
    Refused(#[from] ControlError),
    /// An input file is not stored.
    #[error("{0}")]
    Input(#[from] InputError),
    /// Neither a token nor a certificate of a client was shown.
    #[error("{0}")]
    Unauthorized(&'static str),
    /// The request is not understood.
    #[error("{0}")]
    Request(String),
    /// The body is of another kind than allowed.
    #[error("{0}")]
    MediaType(&'static str),
    /// The body is longer than allowed.
    #[error("the body is longer than {limit} bytes, the most that is allowed here")]
    TooLong {
        /// The most that is allowed.
        limit: u64,
    },
    /// The body did not come in time.
    #[error("the body came slower than {bytes} bytes in {seconds} s, the least that is allowed")]
    TooSlow {
        /// Bytes in that time.
        bytes: u64,
        /// How long was waited.
        seconds: f64,
    },
    /// There is nothing at this path.
    #[error("{0}: there is nothing at this path; /api/v1/openapi.json says what there is")]
    Path(String),
    /// The path does not take this method.
    #[error("{method} is not allowed here; {allowed} is")]
    Method {
        /// What was asked.
        method: String,
        /// What is allowed.
        allowed: String,
    },
    /// A defect of ours.
    #[error("{0}")]
    Defect(String),
}

impl ResponseError for ApiError {
    fn status_code(&self) -> StatusCode {
        match self {
            Self::Refused(ControlError::Missing(_)) | Self::Path(_) => StatusCode::NOT_FOUND,
            Self::Refused(ControlError::Conflict(_)) => StatusCode::CONFLICT,
            Self::Refused(ControlError::Study(_)) | Self::Input(InputError::Other { .. }) => {
                StatusCode::UNPROCESSABLE_ENTITY
            }
            Self::Refused(ControlError::NotReady(_)) => StatusCode::SERVICE_UNAVAILABLE,
            Self::Refused(ControlError::Defect(_) | ControlError::Corrupt(_))
            | Self::Input(InputError::File { .. })
            | Self::Defect(_) => StatusCode::INTERNAL_SERVER_ERROR,
            Self::Input(InputError::Full(_)) => StatusCode::INSUFFICIENT_STORAGE,
            Self::Unauthorized(_) => StatusCode::UNAUTHORIZED,
            Self::Request(_) => StatusCode::BAD_REQUEST,
            Self::MediaType(_) => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::TooLong { .. } => StatusCode::PAYLOAD_TOO_LARGE,
            Self::TooSlow { .. } => StatusCode::REQUEST_TIMEOUT,
            Self::Method { .. } => StatusCode::METHOD_NOT_ALLOWED,
        }
    }

    fn error_response(&self) -> HttpResponse {
        let status = self.status_code();
        let mut response = HttpResponse::build(status);
        match self {
            Self::Unauthorized(_) => {
                response.insert_header((WWW_AUTHENTICATE, "Bearer"));
            }
            Self::Method { allowed, .. } => {
                response.insert_header((ALLOW, allowed.as_str()));
            }
            // The rest of the body is not read.
            Self::TooLong { .. } | Self::TooSlow { .. } => {
                response.force_close();
            }
            _ => {}
        }
        // Scripts read it line by line, whatever a path or a library put into it.
        let detail = self.to_string().lines().map(str::trim).collect::<Vec<_>>().join(" ");
        let problem = ProblemDetails {
            kind: "about:blank".to_owned(),
            title: status.canonical_reason().unwrap_or_default().to_owned(),
            status: status.as_u16(),
            detail,
        };
        let body = serde_json::to_vec(&problem).unwrap_or_default();
        response.content_type(MEDIA_TYPE).body(body)
    }
}

/// For paths that there are not.
pub(super) async fn no_path(request: HttpRequest) -> Result<HttpResponse, ApiError> {
    Err(ApiError::Path(request.path().to_owned()))
}
