//! Who may ask: whoever shows the manager's token, or a certificate of a client of the cluster.
//!
//! Workers and other managers have certificates too; they have nothing to ask here.

use super::State;
use super::problem::ApiError;
use actix_tls::accept::rustls_0_23::TlsStream;
use actix_web::HttpRequest;
use actix_web::body::MessageBody;
use actix_web::dev::{Extensions, ServiceRequest, ServiceResponse};
use actix_web::http::header::AUTHORIZATION;
use actix_web::middleware::Next;
use actix_web::rt::net::TcpStream;
use actix_web::web::Data;
use pleach_actors::transport::identity::{Identity, Role};
use std::any::Any;

/// A connection's client, who has shown a certificate that TLS has verified.
struct Certified(Identity);

/// Notes who is connected, for all requests of the connection.
pub(super) fn on_connect(connection: &dyn Any, data: &mut Extensions) {
    let Some(connection) = connection.downcast_ref::<TlsStream<TcpStream>>() else { return };
    let shown = connection.get_ref().1.peer_certificates().and_then(<[_]>::first);
    let identity = shown.and_then(|certificate| Identity::of_certificate(certificate).ok());
    if let Some(identity) = identity.filter(|identity| identity.role == Role::Client) {
        data.insert(Certified(identity));
    }
}

/// Lets a request through, or not. Nothing of its body has been read then.
pub(super) async fn authenticate<B: MessageBody + 'static>(
    request: ServiceRequest,
    next: Next<B>,
) -> Result<ServiceResponse<B>, actix_web::Error> {
    if request.conn_data::<Certified>().is_none() {
        check_token(&request)?;
    }
    next.call(request).await
}

/// The client of a request for the operator's log: its certificate's name or that it has the token, and its address.
pub(super) fn client(request: &HttpRequest) -> String {
    let certified = request.conn_data::<Certified>();
    let who = certified.map_or_else(|| "the token".to_owned(), |Certified(identity)| identity.to_string());
    let place = request.peer_addr().map(|address| format!(" at {}", address.ip().to_canonical()));
    who + &place.unwrap_or_default()
}

fn check_token(request: &ServiceRequest) -> Result<(), ApiError> {
    let state = request.app_data::<Data<State>>();
    let state = state.ok_or_else(|| ApiError::Defect("the server has no state".to_owned()))?;
    let Some(header) = request.headers().get(AUTHORIZATION) else {
        return Err(ApiError::Unauthorized(
            "a token (Authorization: Bearer TOKEN) or a client's certificate is needed",
        ));
    };
    // The scheme's name is case-insensitive (RFC 9110, 11.1).
    let shown = header.as_bytes().split_at_checked(7);
    let shown = shown.filter(|(scheme, _)| scheme.eq_ignore_ascii_case(b"bearer ")).map(|(_, token)| token);
    match shown {
        Some(token) if state.token.is(token.trim_ascii()) => Ok(()),
        Some(_) => Err(ApiError::Unauthorized("the token is not this manager's")),
        None => Err(ApiError::Unauthorized("Authorization: Bearer TOKEN is allowed")),
    }
}
