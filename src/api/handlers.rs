//! What is done for each path: the request is understood, the manager asked, and its answer said.

pub(super) mod health;
pub(super) mod inputs;
pub(super) mod results;
pub(super) mod studies;
pub(super) mod workers;

use super::State;
use super::error::ApiError;
use actix_web::HttpResponse;
use actix_web::web::Data;

/// What all requests share.
type Shared = Data<State>;

type Reply = Result<HttpResponse, ApiError>;
