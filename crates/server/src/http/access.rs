//! Authentication of clients by the manager's token or by a client certificate of the cluster.
//!
//! Certificates of workers and of other managers give no access.

use super::State;
use super::control::{Submitter, TOKEN_USER};
use super::error::ApiError;
use crate::listener::{CERTIFIED, Connection, Stream};
use actix_web::HttpRequest;
use actix_web::body::MessageBody;
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::http::header::AUTHORIZATION;
use actix_web::middleware::Next;
use actix_web::web::Data;
use pleach_actors::transport::identity::{NodeIdentity, Role};
use std::rc::Rc;
use tokio_rustls::server::TlsStream;

/// Records the client of a connection that showed a client certificate, for all of its requests.
pub(super) fn on_connect(stream: &TlsStream<Stream>) {
    let (stream, tls) = stream.get_ref();
    let shown = tls.peer_certificates().and_then(<[_]>::first);
    let identity = shown.and_then(|certificate| NodeIdentity::of_certificate(certificate).ok());
    // Certificates of workers and managers grant no access over HTTP. Their holders need the token.
    if let Some(identity) = identity.filter(|identity| identity.role == Role::Client) {
        stream.connection().trust(Some(&identity.name.to_string()));
    }
}

/// Passes an authenticated request to its handler, before any of its body has been read. A connection that has shown
/// the token counts as one with credentials. Each of its requests has to show the token all the same.
pub(super) async fn authenticate<B: MessageBody + 'static>(
    request: ServiceRequest,
    next: Next<B>,
) -> Result<ServiceResponse<B>, actix_web::Error> {
    let connection = request.conn_data::<Rc<Connection>>();
    let connection =
        connection.ok_or_else(|| ApiError::Defect("a request without a connection".to_owned()))?;
    if !connection.is_certified() {
        check_token(&request)?;
        connection.trust(None);
    }
    next.call(request).await
}

/// Returns the client of an authenticated request.
pub(super) fn client(request: &HttpRequest) -> Result<Rc<str>, ApiError> {
    let client = request.conn_data::<Rc<Connection>>().and_then(|connection| connection.client());
    client.ok_or_else(|| ApiError::Defect("a request without a client".to_owned()))
}

/// Returns the client with its address, for the operator's log.
pub(super) fn client_at(request: &HttpRequest) -> Result<String, ApiError> {
    let who = client(request)?;
    let place = request.peer_addr().map(|address| format!(" at {}", address.ip().to_canonical()));
    Ok(format!("{who}{}", place.unwrap_or_default()))
}

/// Returns the client of a submission.
pub(super) fn submitter(request: &HttpRequest) -> Result<Submitter, ApiError> {
    let user = client(request)?.strip_prefix(CERTIFIED).unwrap_or(TOKEN_USER).to_owned();
    Ok(Submitter { user, at: client_at(request)? })
}

fn check_token(request: &ServiceRequest) -> Result<(), ApiError> {
    let state = request.app_data::<Data<State>>();
    let state = state.ok_or_else(|| ApiError::Defect("the server has no state".to_owned()))?;
    let Some(header) = request.headers().get(AUTHORIZATION) else {
        return Err(ApiError::Unauthorized(
            "no credentials; a token (Authorization: Bearer TOKEN) or a client certificate is required",
        ));
    };
    // The scheme's name is case-insensitive (RFC 9110, 11.1).
    let shown = header.as_bytes().split_at_checked(7);
    let shown = shown.filter(|(scheme, _)| scheme.eq_ignore_ascii_case(b"bearer ")).map(|(_, token)| token);
    match shown {
        Some(token) if state.token.is(token.trim_ascii()) => Ok(()),
        Some(_) => Err(ApiError::Unauthorized("the token does not match the token of this manager")),
        None => Err(ApiError::Unauthorized(
            "invalid Authorization header; Authorization: Bearer TOKEN is \
                                            allowed",
        )),
    }
}
