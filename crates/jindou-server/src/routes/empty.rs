//! The parameter `why-empty` of `/query`: the reasons why a query has no answer.

use super::input::Parameters;
use super::text;
use crate::admission::AdmissionRequest;
use crate::admission::limits::WorkClass;
use crate::live::{QueryState, shown};
use crate::piece;
use crate::problem::Problem;
use crate::run::{self, AnswerFailure, Connection};
use crate::shared::AppState;
use axum::body::Body;
use http::Response;
use jindou::Reason;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Time limit for finding reasons, including the wait for a slot.
const LONGEST: Duration = Duration::from_secs(1);

/// Answers with the reasons as JSON; an empty list if the query has an answer.
pub(super) async fn answer(
    shared: &Arc<AppState>,
    connection: &Connection,
    parameters: &Parameters,
    query: String,
    base: Option<String>,
) -> Result<Response<Body>, Problem> {
    let timeout = parameters.timeout()?.unwrap_or(shared.options.timeout);
    let text_of = format!("why empty: {}", shown(&query));
    let asked = AdmissionRequest::new(&text_of, Some(timeout.min(LONGEST)));
    let (tag, dataset) = (parameters.tag()?, parameters.dataset());
    let union_default = parameters.union_default()?;
    let found = piece::run(shared, connection, &asked, tag, move |shared, admitted| {
        // A heavy slot, so that light queries need not wait for it.
        let _slot = piece::slot(shared, &admitted.query, WorkClass::Heavy)?;
        admitted.query.set_state(QueryState::Running);
        let begin = Instant::now();
        let options = run::limited(shared, &admitted.query)
            .with_dataset(dataset)
            .with_union_default(union_default.or(shared.options.union_default))
            .with_base(base);
        let found = admitted.db().why_empty(&query, &options);
        shared.admission.served(WorkClass::Heavy, begin.elapsed());
        found.map_err(AnswerFailure::running)
    });
    let reasons: Vec<Value> = found.await?.iter().map(document).collect();
    let document = json!({ "reasons": reasons });
    Ok(text("application/json", format!("{document:#}\n")))
}

/// A reason in the form of a diagnostic for a query's text.
fn document(reason: &Reason) -> Value {
    let mut made = json!({
        "kind": reason.kind.name(),
        "message": reason.message,
        "suggestions": reason.suggestions,
    });
    if let Some(place) = reason.place {
        made["start"] = json!(place.start);
        made["end"] = json!(place.end);
        made["line"] = json!(place.line);
        made["column"] = json!(place.column);
    }
    made
}
