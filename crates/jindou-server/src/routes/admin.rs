//! `/admin/queries`: lists running and slow queries, and cancels them. A client with a read token sees only the queries of that token.

use super::input::Parameters;
use super::{answered, reading, text};
use crate::live::{CancelCause, LiveQuery};
use crate::problem::Problem;
use crate::run::{Connection, so_far};
use crate::shared::AppState;
use axum::Extension;
use axum::body::Body;
use axum::extract::{Path, State};
use http::{HeaderMap, Method, Response, StatusCode, Uri};
use serde_json::{Value, json};
use std::sync::Arc;

/// The JSON document of a query, with the progress of its steps if it is profiled or watched.
fn detailed(q: &LiveQuery) -> Value {
    let mut document = q.document();
    if let Some(profile) = so_far(q) {
        document["profile"] = profile;
    }
    document
}

fn page(value: &Value) -> Response<Body> {
    text("application/json", format!("{value:#}\n"))
}

pub(super) async fn list(
    State(shared): State<Arc<AppState>>,
    Extension(connection): Extension<Arc<Connection>>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
) -> Response<Body> {
    let answer = reading(&method).and_then(|()| {
        let tag = Parameters::of_url(&uri)?.one("tag")?;
        let all = shared.live.list();
        let seen = all
            .iter()
            .filter(|q| connection.caller.sees(q.owner))
            .filter(|q| tag.is_none() || tag.as_ref() == q.tag.get());
        let all: Vec<_> = seen.map(|q| q.document()).collect();
        let slow = shared.slow.list(|owner, named| {
            connection.caller.sees(owner) && (tag.is_none() || tag.as_deref() == named)
        });
        Ok(page(&json!({ "queries": all, "slow": slow })))
    });
    answered(answer, &headers)
}

pub(super) async fn one(
    State(shared): State<Arc<AppState>>,
    Extension(connection): Extension<Arc<Connection>>,
    Path(id): Path<String>,
    method: Method,
    headers: HeaderMap,
) -> Response<Body> {
    let found = id.parse().ok().and_then(|id| shared.live.get(id));
    let found = found.filter(|q| connection.caller.sees(q.owner));
    let answer = match found {
        None => Err(Problem::new(
            StatusCode::NOT_FOUND,
            "no-query",
            format!("no query {id}; it may have ended"),
        )),
        Some(q) if method == Method::DELETE => {
            tracing::info!(id = q.id, "query cancelled at /admin/queries");
            q.cancel(CancelCause::Admin);
            let mut response = page(&q.document());
            *response.status_mut() = StatusCode::ACCEPTED;
            Ok(response)
        }
        Some(q) => match reading(&method) {
            Ok(()) => Ok(page(&detailed(&q))),
            Err(_) => Err(Problem::method("GET, HEAD, DELETE")),
        },
    };
    answered(answer, &headers)
}
