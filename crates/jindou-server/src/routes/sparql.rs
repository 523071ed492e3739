//! `/sparql`, and `/` with a query: one address for queries and updates (SPARQL 1.1 Protocol, sections 2.1 and 2.2),
//! which are distinguished by the media type or the parameter's name.

use super::input::{body, media_type};
use super::{answered, form, page, query, text, update};
use crate::problem::Problem;
use crate::run::Connection;
use crate::shared::AppState;
use axum::Extension;
use axum::body::Body;
use axum::extract::{Request, State};
use http::request::Parts;
use http::{Method, Response};
use std::sync::Arc;

/// `/`: as `/sparql`, but a request without a query gets the list of routes.
pub(super) async fn home(
    State(shared): State<Arc<AppState>>,
    Extension(connection): Extension<Arc<Connection>>,
    request: Request,
) -> Response<Body> {
    let (parts, content) = request.into_parts();
    let reads = matches!(parts.method, Method::GET | Method::HEAD);
    let url = parts.uri.query().unwrap_or_default().as_bytes();
    let asks = form::has(url, "query") || form::has(url, "update");
    if reads && !asks && !page::is_wanted(&parts.headers) {
        return text("text/plain; charset=utf-8", super::ROUTES);
    }
    let result = answer(&shared, connection, &parts, content).await;
    answered(result, &parts.headers)
}

/// `/sparql`: queries and updates.
pub(super) async fn answer(
    shared: &Arc<AppState>,
    connection: Arc<Connection>,
    parts: &Parts,
    mut content: Body,
) -> Result<Response<Body>, Problem> {
    let is_update = match parts.method {
        Method::GET | Method::HEAD => false,
        Method::POST => is_update(shared, parts, &mut content).await?,
        _ => return Err(Problem::method("GET, HEAD, POST, OPTIONS")),
    };
    if is_update {
        Box::pin(update::answer(shared, &connection, parts, content)).await
    } else {
        query::answer(shared, connection, parts, content).await
    }
}

/// True if a POST is an update, false if it is a query. Reads a form, and replaces it by what was read.
async fn is_update(shared: &AppState, parts: &Parts, content: &mut Body) -> Result<bool, Problem> {
    match media_type(&parts.headers)?.as_deref() {
        Some("application/sparql-query") => Ok(false),
        Some("application/sparql-update") => Ok(true),
        Some("application/x-www-form-urlencoded") => {
            let form = std::mem::take(content);
            let sent = body(form, shared.options.max_request_bytes).await?;
            let url = parts.uri.query().unwrap_or_default().as_bytes();
            let has = |name| form::has(url, name) || form::has(&sent, name);
            let is_update = match (has("query"), has("update")) {
                (true, true) => {
                    return Err(Problem::bad_request(
                        "the request has both a query and an update; send only one",
                    ));
                }
                (false, false) => {
                    return Err(Problem::bad_request(
                        "the form has neither a parameter 'query' nor 'update'",
                    ));
                }
                (_, is_update) => is_update,
            };
            *content = Body::from(sent);
            Ok(is_update)
        }
        other => Err(Problem::media_type(format!(
            "send a query as application/sparql-query or an update as application/sparql-update, or either in a form (application/x-www-form-urlencoded), not as {}",
            other.unwrap_or("a body without Content-Type")
        ))),
    }
}
