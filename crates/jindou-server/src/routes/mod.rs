//! Routes, one file for each.

mod admin;
mod change;
mod complete;
mod describe;
mod drain;
mod empty;
mod form;
mod input;
mod jobs;
mod merge;
mod multipart;
mod page;
pub(crate) mod parameters;
mod prefixes;
mod prepared;
mod query;
mod search;
mod sparql;
mod store;
mod update;

pub(crate) use input::BaseAddress;

use crate::bodies;
use crate::consistency;
use crate::guard;
use crate::listen::Phase;
use crate::paths;
use crate::problem::Problem;
use crate::run::Connection;
use crate::shared::AppState;
use crate::write::refusal;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::routing::any;
use axum::{Extension, Router};
use http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode};
use http_body::Body as _;
use hyper::body::Incoming;
use std::convert::Infallible;
use std::sync::Arc;
use tower::ServiceExt;

const ROUTES: &str = "Jindou\n\n/sparql         SPARQL 1.1 Protocol, queries and updates; in a browser the page\n/query          SPARQL 1.1 Protocol; without a query: the service description; in a browser the page\n/prepared       prepared queries: POST one, then ask /prepared/ID with $name=term\n/batch          many prepared queries in one request\n/complete       completions at the cursor of an unfinished query\n/search         finds resources by words of their labels and IRIs: q=…\n/labels         labels of resources: iri=…\n/prefixes       prefixes that need no declaration; PUT and DELETE /prefixes/NAME\n/update         SPARQL 1.1 Update\n/store          Graph Store Protocol\n/health         whether the process is alive\n/ready          whether requests are served\n/metrics        metrics for Prometheus\n/admin/queries  running queries; DELETE /admin/queries/ID cancels one\n/admin/merge    POST: merges changes into the store's files\n/admin/recluster  POST: renumbers the whole store\n/admin/backup   POST: backs up the store\n/admin/drain    POST: takes the server out of service and ends it\n";

/// The name of a path's route in metrics. There is a fixed number of names, whatever paths clients request.
pub(crate) fn name(path: &str) -> &'static str {
    let known = [
        "/sparql",
        "/query",
        "/prepared",
        "/batch",
        "/complete",
        "/prefixes",
        "/search",
        "/labels",
        "/update",
        "/store",
        "/health",
        "/ready",
        "/metrics",
        "/page.js",
        "/page.css",
        "/worker.js",
        "/icon.svg",
        "/",
    ];
    match path {
        p if p.starts_with("/prepared/") => "/prepared",
        p if p.starts_with("/prefixes/") => "/prefixes",
        p if p.starts_with("/store/") => "/store",
        p if p.starts_with("/admin/") => "/admin",
        p => known.into_iter().find(|k| *k == p).unwrap_or("other"),
    }
}

/// The methods that a path supports; `None` for an unknown path.
pub(crate) fn methods(path: &str) -> Option<&'static str> {
    Some(match path {
        "*" | "/" | "/sparql" | "/query" | "/complete" | "/search" | "/labels" => {
            "GET, HEAD, POST, OPTIONS"
        }
        "/prepared" | "/batch" | "/update" | "/admin/drain" => "POST, OPTIONS",
        "/health" | "/ready" | "/metrics" | "/page.js" | "/page.css" | "/worker.js"
        | "/icon.svg" | "/admin/queries" => "GET, HEAD, OPTIONS",
        "/admin/merge" => "GET, HEAD, POST, OPTIONS",
        "/admin/recluster" | "/admin/backup" => "GET, HEAD, POST, DELETE, OPTIONS",
        "/prefixes" => "GET, HEAD, OPTIONS",
        p if p.starts_with("/prefixes/") => "PUT, DELETE, OPTIONS",
        "/store" => "GET, HEAD, PUT, POST, DELETE, PATCH, OPTIONS",
        p if p.starts_with("/store/") => "GET, HEAD, PUT, POST, DELETE, PATCH, OPTIONS",
        p if p.starts_with("/prepared/") => "GET, HEAD, POST, OPTIONS",
        p if p.starts_with("/admin/queries/") => "GET, HEAD, DELETE, OPTIONS",
        _ => return None,
    })
}

/// All routes of a server, behind the guard.
#[derive(Clone)]
pub(crate) struct Routes {
    shared: Arc<AppState>,
    router: Router,
}

impl Routes {
    pub(crate) fn new(shared: Arc<AppState>) -> Self {
        Self {
            router: router(Arc::clone(&shared)),
            shared,
        }
    }

    /// Answers a request.
    pub(crate) async fn answer(
        &self,
        connection: Arc<Connection>,
        request: http::Request<Incoming>,
    ) -> Response<Body> {
        let (parts, body, hold) = bodies::received(request, &self.shared.memory);
        let method = parts.method.clone();
        let next = |connection, parts| self.route(connection, parts, body);
        let response = guard::guard(&self.shared, connection, parts, next).await;
        let response = whole(response, &method);
        match hold {
            Some(hold) => hold.answer(response),
            None => response,
        }
    }

    /// Passes a checked request to its route. The routes of queries and updates are called directly, since their
    /// requests are the most frequent ones, and a router allocates, boxes and copies for each.
    async fn route(
        &self,
        connection: Arc<Connection>,
        mut parts: Parts,
        body: Body,
    ) -> Response<Body> {
        let shared = &self.shared;
        let result = match parts.uri.path() {
            "/query" => query::answer(shared, connection, &parts, body).await,
            "/sparql" => sparql::answer(shared, connection, &parts, body).await,
            "/update" => Box::pin(update::answer(shared, &connection, &parts, body)).await,
            _ => {
                parts.extensions.insert(connection);
                let request = Request::from_parts(parts, body);
                let routed = self.router.clone().oneshot(request);
                return Box::pin(routed)
                    .await
                    .unwrap_or_else(|never: Infallible| match never {});
            }
        };
        answered(result, &parts.headers)
    }
}

/// Gives a response the length of its body if that is known, and removes the body if the request was HEAD.
fn whole(mut response: Response<Body>, method: &Method) -> Response<Body> {
    if let Some(length) = response.body().size_hint().exact()
        && !response.headers().contains_key(CONTENT_LENGTH)
    {
        response.headers_mut().insert(CONTENT_LENGTH, length.into());
    }
    if *method == Method::HEAD {
        *response.body_mut() = Body::empty();
    }
    response
}

/// Defines the router, and a list of all paths for tests.
macro_rules! routes {
    ($($path:literal => $handler:expr,)*) => {
        /// The paths of all routes: those that are called directly, then those of the router in its order.
        pub(crate) const PATHS: &[&str] = &["/query", "/sparql", "/update", $($path),*];

        /// The router.
        fn router(shared: Arc<AppState>) -> Router {
            Router::new()
                $(.route($path, any($handler)))*
                .fallback(nothing)
                .with_state(shared)
        }
    };
}

/// A handler that answers with what a function returns, or with its problem.
macro_rules! handler {
    (|$shared:ident, $connection:ident, $request:ident| $answer:expr) => {
        |State($shared): State<Arc<AppState>>,
         Extension($connection): Extension<Arc<Connection>>,
         $request: Request| async move {
            let headers = $request.headers().clone();
            answered($answer.await, &headers)
        }
    };
}

routes! {
    "/" => sparql::home,
    "/page.js" => page::script,
    "/page.css" => page::style,
    "/worker.js" => page::worker,
    "/icon.svg" => page::icon,
    "/ready" => ready,
    "/prepared" => handler!(|s, c, r| prepared::prepared(&s, &c, r)),
    "/prepared/{id}" => prepared::one,
    "/batch" => handler!(|s, c, r| prepared::many(&s, &c, r)),
    "/complete" => handler!(|s, c, r| complete::answer(&s, &c, r)),
    "/prefixes" => handler!(|s, c, r| prefixes::list(&s, &c, r)),
    "/prefixes/" => handler!(|s, c, r| prefixes::change(&s, &c, r)),
    "/prefixes/{name}" => handler!(|s, c, r| prefixes::change(&s, &c, r)),
    "/search" => handler!(|s, c, r| search::found(&s, &c, r)),
    "/labels" => handler!(|s, c, r| search::labelled(&s, &c, r)),
    "/store" => handler!(|s, c, r| store::answer(&s, c, r)),
    "/store/{*graph}" => handler!(|s, c, r| store::answer(&s, c, r)),
    "/health" => health,
    "/metrics" => metrics,
    "/admin/queries" => admin::list,
    "/admin/queries/{id}" => admin::one,
    "/admin/recluster" => jobs::recluster,
    "/admin/backup" => jobs::backup,
    "/admin/merge" => merge::handle,
    "/admin/drain" => drain::handle,
}

/// A response with a whole body of this content type.
fn text(content_type: &'static str, body: impl Into<Body>) -> Response<Body> {
    let mut response = Response::new(body.into());
    response
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}

/// Checks that the method is GET or HEAD.
fn reading(method: &Method) -> Result<(), Problem> {
    if matches!(*method, Method::GET | Method::HEAD) {
        Ok(())
    } else {
        Err(Problem::method("GET, HEAD"))
    }
}

fn answered(result: Result<Response<Body>, Problem>, headers: &HeaderMap) -> Response<Body> {
    result.unwrap_or_else(|problem| problem.response(headers))
}

async fn nothing(headers: HeaderMap) -> Response<Body> {
    let problem = Problem::new(
        StatusCode::NOT_FOUND,
        "not-found",
        "nothing here; the routes are /sparql, /query, /prepared, /batch, /complete, /search, /labels, /prefixes, /update, /store, /health, /ready, /metrics, /admin/queries, /admin/merge, /admin/recluster, /admin/backup and /admin/drain",
    );
    problem.response(&headers)
}

async fn health(method: Method, headers: HeaderMap) -> Response<Body> {
    let answer = reading(&method).map(|()| text("application/json", "{\"status\":\"ok\"}\n"));
    answered(answer, &headers)
}

/// `/ready`: 200 while requests can be answered. Otherwise 503: while shutting down or draining, while the log cannot
/// accept updates, and, if that was requested, until the store has been read into memory.
async fn ready(
    State(shared): State<Arc<AppState>>,
    method: Method,
    headers: HeaderMap,
) -> Response<Body> {
    let behind = consistency::behind(&shared).await;
    let answer = reading(&method).and_then(|()| {
        let not = if *shared.phase.borrow() != Phase::Serving {
            "the server is shutting down".to_owned()
        } else if shared.is_draining() {
            "the server is draining and will shut down".to_owned()
        } else if let Some(unread) = shared.unread() {
            unread
        } else if let Some(behind) = behind {
            behind
        } else {
            // The log matters only to a server that accepts updates.
            let log = match refusal(&shared) {
                Some(_) => Ok(()),
                None => tokio::task::block_in_place(|| shared.upkeep.probe_log()),
            };
            match log {
                Ok(()) => return Ok(text("application/json", "{\"status\":\"ready\"}\n")),
                Err(e) => format!(
                    "queries work, but the log cannot be written: {}",
                    paths::told(&e)
                ),
            }
        };
        Err(Problem::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "not-ready",
            not,
        ))
    });
    answered(answer, &headers)
}

async fn metrics(
    State(shared): State<Arc<AppState>>,
    method: Method,
    headers: HeaderMap,
) -> Response<Body> {
    let answer = reading(&method).and_then(|()| {
        let made = tokio::task::block_in_place(|| shared.metrics.text(&shared));
        made.map(|body| text("text/plain; version=0.0.4; charset=utf-8", body))
            .map_err(|e| Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", e.to_string()))
    });
    answered(answer, &headers)
}
