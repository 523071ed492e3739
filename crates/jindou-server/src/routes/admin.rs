//! `/admin/queries`: lists and cancels running queries. A client with a read token sees only the queries of that token.

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
use std::sync::atomic::Ordering;

fn document(q: &LiveQuery) -> Value {
    json!({
        "id": q.id, "query": q.text(), "client": &*q.client, "state": q.state().name(),
        "class": q.light.get().map(|light| if *light { "light" } else { "heavy" }),
        "seconds": q.started.elapsed().as_secs_f64(), "timeout": q.limit().as_secs_f64(),
        "rows": q.rows.load(Ordering::Relaxed), "bytes": q.bytes.load(Ordering::Relaxed),
        "memory": q.memory.used(), "tag": q.tag.get(),
    })
}

/// The JSON document of a query, with the progress of its steps if it is profiled or watched.
fn detailed(q: &LiveQuery) -> Value {
    let mut document = document(q);
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
        let all: Vec<_> = seen.map(|q| document(q)).collect();
        Ok(page(&json!({ "queries": all })))
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
            let mut response = page(&document(&q));
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
