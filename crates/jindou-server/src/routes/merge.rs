//! `/admin/merge`: merges the updates since the last merge into the store's segments.

use super::{answered, text};
use crate::paths;
use crate::problem::Problem;
use crate::shared::AppState;
use crate::write::refusal;
use axum::body::Body;
use axum::extract::State;
use http::{HeaderMap, Method, Response};
use jindou::{CancelToken, Error, Progress};
use std::sync::Arc;

/// Cancels the merge when its request is dropped.
struct MergeWatch(CancelToken);

impl Drop for MergeWatch {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

pub(super) async fn handle(
    State(shared): State<Arc<AppState>>,
    method: Method,
    headers: HeaderMap,
) -> Response<Body> {
    answered(answer(&shared, &method).await, &headers)
}

/// GET reports on past and running merges; POST merges, and answers when the merge has ended.
async fn answer(shared: &Arc<AppState>, method: &Method) -> Result<Response<Body>, Problem> {
    match *method {
        Method::GET | Method::HEAD => Ok(status(shared)),
        Method::POST => merge(shared).await,
        _ => Err(Problem::method("GET, HEAD, POST")),
    }
}

fn status(shared: &AppState) -> Response<Body> {
    let s = shared.upkeep.merge_status().unwrap_or_default();
    let document = serde_json::json!({
        "running": s.running, "done": s.done, "failed": s.failed, "bytes": s.bytes, "merged": s.merged,
        "edits": s.edits, "changes_bytes": s.changes_bytes, "changes_memory": s.changes_memory,
        "generations": s.generations, "last_failure": s.last_failure.as_deref().map(paths::hidden),
    });
    text("application/json", format!("{document:#}\n"))
}

async fn merge(shared: &Arc<AppState>) -> Result<Response<Body>, Problem> {
    if let Some(problem) = refusal(shared) {
        return Err(problem);
    }
    let options = shared.options.merge.clone().with_cancel(CancelToken::new());
    let watch = MergeWatch(options.cancel.clone());
    let work = Arc::clone(shared);
    let job =
        tokio::task::spawn_blocking(move || work.upkeep.merge(&options, &Progress::default()));
    let done = job
        .await
        .unwrap_or_else(|_| Err(Error::Internal("the merge ended without an answer".into())));
    drop(watch);
    let r = done.map_err(|e| Problem::from_error(&e))?;
    tracing::info!(
        snapshot = r.snapshot,
        edits = r.edits,
        bytes = r.bytes,
        "merged"
    );
    let document = serde_json::json!({
        "snapshot": r.snapshot, "edits": r.edits, "predicates": r.predicates, "edges": r.edges,
        "bytes": r.bytes, "generations": r.generations, "ms": crate::millis(r.time),
        "pause_ms": crate::millis(r.pause),
    });
    Ok(text("application/json", format!("{document:#}\n")))
}
