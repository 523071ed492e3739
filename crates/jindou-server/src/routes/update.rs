//! `/update`: SPARQL 1.1 Protocol, section 2.2. This version refuses every update, after the checks that it would need.

use super::answered;
use super::input::{Parameters, body, media_type, utf8};
use crate::problem::Problem;
use crate::shared::Shared;
use axum::body::Body;
use axum::extract::{Request, State};
use http::{Method, Response, StatusCode};
use std::sync::Arc;

pub(super) async fn handle(State(shared): State<Arc<Shared>>, request: Request) -> Response<Body> {
    let headers = request.headers().clone();
    answered(refuse(&shared, request).await.map(|e| match e {}), &headers)
}

/// The uninhabited answer of a route that only refuses.
enum Never {}

async fn refuse(shared: &Shared, request: Request) -> Result<Never, Problem> {
    let (parts, content) = request.into_parts();
    if parts.method != Method::POST {
        return Err(Problem::method("POST, OPTIONS"));
    }
    let most = shared.options.max_request_bytes;
    match media_type(&parts.headers)?.as_deref() {
        Some("application/x-www-form-urlencoded") => {
            let mut parameters = Parameters::of_url(&parts.uri);
            parameters.add(utf8(body(content, most).await?)?.as_bytes());
            if parameters.one("update")?.is_none() {
                return Err(Problem::bad_request("the form has no parameter 'update'"));
            }
        }
        Some("application/sparql-update") => {
            utf8(body(content, most).await?)?;
        }
        other => {
            return Err(Problem::media_type(format!(
                "an update comes as application/x-www-form-urlencoded or application/sparql-update, not as {}",
                other.unwrap_or("a body without Content-Type")
            )));
        }
    }
    Err(refusal(shared))
}

/// Why nothing is written.
pub(super) fn refusal(shared: &Shared) -> Problem {
    if shared.tokens.is_none() {
        Problem::new(
            StatusCode::FORBIDDEN,
            "read-only",
            "this server is read-only: it was started without --token-file",
        )
    } else {
        Problem::new(
            StatusCode::NOT_IMPLEMENTED,
            "unsupported",
            "this version of Jindou does not update; load the data anew with `jindou load --replace`",
        )
    }
}
