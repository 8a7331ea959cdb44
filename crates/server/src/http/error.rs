//! Errors over HTTP: a status and one line of problem details (RFC 9457).

use super::control::ControlError;
use crate::input_store::InputError;
use actix_web::http::StatusCode;
use actix_web::http::header::{ALLOW, WWW_AUTHENTICATE};
use actix_web::{HttpRequest, HttpResponse, ResponseError};
use pleach_api::PROBLEM;
use pleach_api::schema::ProblemDetails;
use thiserror::Error;

/// Reason why a request fails.
#[derive(Debug, Error)]
pub(super) enum ApiError {
    /// The manager refuses the request.
    #[error("{0}")]
    Refused(#[from] ControlError),
    /// The input file is not stored.
    #[error("{0}")]
    Input(#[from] InputError),
    /// The client showed neither a token nor a client certificate.
    #[error("{0}")]
    Unauthorized(&'static str),
    /// The request cannot be parsed.
    #[error("{0}")]
    Request(String),
    /// The body has a media type that is not allowed.
    #[error("{0}")]
    MediaType(&'static str),
    /// The body is longer than allowed.
    #[error("request body too long; at most {limit} bytes are allowed")]
    TooLong {
        /// Maximum length in bytes.
        limit: u64,
    },
    /// The body came more slowly than allowed.
    #[error("request body too slow; at least {bytes} bytes in {seconds} s are required")]
    TooSlow {
        /// Minimum bytes in that time.
        bytes: u64,
        /// Length of the period in seconds.
        seconds: f64,
    },
    /// No route has this path.
    #[error("{0}: path not found; /api/v1/openapi.json lists all paths")]
    Path(String),
    /// The path does not allow this method.
    #[error("method {method} is not allowed; allowed are {allowed}")]
    Method {
        /// Method of the request.
        method: String,
        /// Allowed methods.
        allowed: String,
    },
    /// Internal error of the server.
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
            // The server closes the connection, because it does not read the rest of the body.
            Self::TooLong { .. } | Self::TooSlow { .. } => {
                response.force_close();
            }
            _ => {}
        }
        // One line, because scripts read the output line by line. A path or a library's message may contain line
        // ends.
        let detail = self.to_string().lines().map(str::trim).collect::<Vec<_>>().join(" ");
        let problem = ProblemDetails {
            kind: "about:blank".to_owned(),
            title: status.canonical_reason().unwrap_or_default().to_owned(),
            status: status.as_u16(),
            detail,
        };
        let body = serde_json::to_vec(&problem).unwrap_or_default();
        response.content_type(PROBLEM).body(body)
    }
}

/// Answers a request for an unknown path.
pub(super) async fn no_path(request: HttpRequest) -> Result<HttpResponse, ApiError> {
    Err(ApiError::Path(request.path().to_owned()))
}
