//! Adapter from an actix application to the accept loop.

use super::request::{Connected, OneRequest};
use super::{Bounds, Connection, Stream};
use actix_http::{HttpService, Protocol, Request};
use actix_service::{IntoServiceFactory, Service, ServiceFactory, ServiceFactoryExt, map_config};
use actix_web::body::{BoxBody, MessageBody};
use actix_web::dev::{AppConfig, Extensions, Response, ServiceRequest, ServiceResponse};
use actix_web::error::InternalError;
use actix_web::http::ConnectionType;
use actix_web::middleware::Next;
use actix_web::{Error, HttpResponse};
use std::fmt;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::rc::Rc;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::Notify;

/// Future that serves a connection to its end.
pub(crate) type Served = Pin<Box<dyn Future<Output = ()>>>;

/// Function that serves a connection.
pub(crate) type Serve = Box<dyn Fn(Stream, SocketAddr) -> Served>;

/// Returns a function that serves the requests of a stream, which may be a TLS stream. It first calls `on_connect`.
///
/// # Errors
/// [`io::Error`] when the application does not start.
pub(crate) async fn service<T, A, S, B>(
    app: A,
    bounds: Bounds,
    draining: Rc<Notify>,
    on_connect: fn(&T),
) -> io::Result<impl Fn(T, SocketAddr) -> Served + Clone>
where
    T: Connected + AsyncRead + AsyncWrite + Unpin + 'static,
    A: IntoServiceFactory<S, Request>,
    S: ServiceFactory<Request, Config = AppConfig> + 'static,
    S::Error: Into<Error> + 'static,
    S::InitError: fmt::Debug,
    S::Response: Into<Response<B>> + 'static,
    <S::Service as Service<Request>>::Future: 'static,
    S::Service: 'static,
    B: MessageBody + 'static,
{
    let app = app.into_factory().map_err(|error| error.into().error_response());
    let factory = HttpService::build()
        .graceful_shutdown_signal(move || {
            let draining = Rc::clone(&draining);
            async move { draining.notified().await }
        })
        .client_request_timeout(bounds.head)
        .client_disconnect_timeout(bounds.head)
        .on_connect_ext(move |stream: &OneRequest<T>, data: &mut Extensions| {
            on_connect(stream.stream());
            data.insert(Rc::clone(stream.stream().connection()));
        })
        .finish(map_config(app, |()| AppConfig::default()));
    let service =
        factory.new_service(()).await.map_err(|()| io::Error::other("failed to start the HTTP service"))?;
    let service = Rc::new(service);
    Ok(move |stream: T, address: SocketAddr| -> Served {
        let service = Rc::clone(&service);
        Box::pin(async move {
            // The client sees the failure of its connection, which concerns nothing else.
            let _ = service.call((OneRequest::new(stream), Protocol::Http1, Some(address))).await;
        })
    })
}

/// Answers a client without credentials once and then closes its connection.
pub(crate) async fn answer_once<B: MessageBody + 'static>(
    request: ServiceRequest,
    next: Next<B>,
) -> Result<ServiceResponse<BoxBody>, Error> {
    let connection = request.conn_data::<Rc<Connection>>().cloned();
    let Some(connection) = connection else {
        return next.call(request).await.map(ServiceResponse::map_into_boxed_body);
    };
    let answered = next.call(request).await;
    connection.answered();
    // Checked after the handler, because authentication happens within it.
    if connection.client().is_some() {
        return answered.map(ServiceResponse::map_into_boxed_body);
    }
    match answered {
        Ok(answer) => Ok(answer.map_body(|head, body| {
            head.set_connection_type(ConnectionType::Close);
            body.boxed()
        })),
        Err(error) => {
            // Becomes a response here, because an error has no connection header.
            let answer = closing(error.error_response());
            Err(InternalError::from_response("", answer).into())
        }
    }
}

fn closing(mut answer: HttpResponse) -> HttpResponse {
    answer.head_mut().set_connection_type(ConnectionType::Close);
    answer
}
