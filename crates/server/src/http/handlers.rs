//! Request handlers: each parses a request, calls the manager, and returns its answer.

pub(super) mod health;
pub(super) mod inputs;
pub(super) mod results;
pub(super) mod studies;
pub(super) mod workers;

use super::State;
use super::error::ApiError;
use actix_web::HttpResponse;
use actix_web::web::Data;

/// State that all requests share.
type Shared = Data<State>;

type Reply = Result<HttpResponse, ApiError>;
