//! Routes of the HTTP interface: every path with its methods, both for the server and for the test that compares them
//! with `openapi.json`.

use super::access::authenticate;
use super::error::{ApiError, no_path};
use super::handlers::{health, inputs, results, studies, workers};
use actix_web::http::Method;
use actix_web::middleware::from_fn;
use actix_web::web::{self, PathConfig, ServiceConfig, delete, post, put};
use actix_web::{HttpRequest, Route, guard};

/// Route for one path and method.
pub(super) struct Entry {
    pub(super) method: Method,
    /// Path with parameters in braces. A last parameter with `:.+` may contain slashes.
    pub(super) path: &'static str,
    /// Whether the route needs no credentials: probes and monitoring have no token, and learn only the names and
    /// progress of studies.
    pub(super) is_open: bool,
    route: Route,
}

/// Returns all routes. Routes of one path are adjacent.
pub(super) fn entries() -> Vec<Entry> {
    let guarded = |method, path, route| Entry { method, path, is_open: false, route };
    let open = |path, route| Entry { method: Method::GET, path, is_open: true, route };
    vec![
        guarded(Method::GET, "/api/v1/studies", get().to(studies::list)),
        guarded(Method::POST, "/api/v1/studies", post().to(studies::submit)),
        guarded(Method::GET, "/api/v1/studies/{id}", get().to(studies::one)),
        guarded(Method::DELETE, "/api/v1/studies/{id}", delete().to(studies::cancel)),
        guarded(Method::POST, "/api/v1/studies/{id}/forget", post().to(studies::forget)),
        guarded(Method::GET, "/api/v1/studies/{id}/explanation", get().to(results::explanation)),
        guarded(Method::GET, "/api/v1/studies/{id}/objects", get().to(results::objects)),
        guarded(Method::GET, "/api/v1/studies/{id}/results", get().to(results::names)),
        guarded(Method::GET, "/api/v1/studies/{id}/results/{name:.+}", get().to(results::one)),
        guarded(Method::PUT, "/api/v1/inputs/{digest}", put().to(inputs::receive)),
        guarded(Method::GET, "/api/v1/workers", get().to(workers::list)),
        guarded(Method::POST, "/api/v1/workers/{name}/drain", post().to(workers::drain)),
        guarded(Method::GET, "/api/v1/scaling", get().to(workers::scaling)),
        open("/healthz", get().to(health::health)),
        open("/readyz", get().to(health::ready)),
        open("/metrics", get().to(health::metrics)),
        open("/api/v1/openapi.json", get().to(health::openapi)),
    ]
}

/// Returns a route that accepts GET and also HEAD, which returns the same without a body (RFC 9110, 9.3.2).
fn get() -> Route {
    web::route().guard(guard::Any(guard::Get()).or(guard::Head()))
}

/// Registers all routes, and an error for every other path.
pub(super) fn configure(config: &mut ServiceConfig) {
    let mut entries = entries().into_iter().peekable();
    while let Some(first) = entries.next() {
        let mut methods = vec![first.method.to_string()];
        let mut resource = web::resource(first.path).route(first.route);
        while let Some(next) = entries.next_if(|next| next.path == first.path) {
            methods.push(next.method.to_string());
            resource = resource.route(next.route);
        }
        if let Some(got) = methods.iter().position(|method| method == "GET") {
            methods.insert(got + 1, Method::HEAD.to_string());
        }
        let allowed = methods.join(", ");
        let resource = resource.default_service(web::to(move |request: HttpRequest| {
            let (method, allowed) = (request.method().to_string(), allowed.clone());
            async move { Err::<String, _>(ApiError::Method { method, allowed }) }
        }));
        if first.is_open {
            config.service(resource);
        } else {
            config.service(resource.wrap(from_fn(authenticate)));
        }
    }
    let not_text = |error, request: &HttpRequest| {
        // A path that is not UTF-8 names nothing.
        let _: actix_web::error::PathError = error;
        ApiError::Path(request.path().to_owned()).into()
    };
    config.app_data(PathConfig::default().error_handler(not_text)).default_service(web::to(no_path));
}
