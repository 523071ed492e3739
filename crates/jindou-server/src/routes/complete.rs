//! `/complete`: completion of an unfinished query at the cursor.

use super::input::Parameters;
use super::text;
use crate::admission::limits::WorkClass;
use crate::admission::{AdmissionRequest, Admitted};
use crate::live::QueryState;
use crate::piece;
use crate::problem::Problem;
use crate::run::{AnswerFailure, Connection};
use crate::shared::AppState;
use axum::body::Body;
use axum::extract::Request;
use http::{Method, Response};
use jindou::QueryOptions;
use jindou::complete::{
    Completion, Counts, Item, LONGEST_TEXT, PATIENCE, Request as Unfinished, Slot,
};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Longest value of the parameter `timeout`.
const LONGEST_PATIENCE: Duration = Duration::from_secs(1);
/// Time that a request may wait for a slot, in addition to its `timeout`.
const WAIT: Duration = Duration::from_millis(250);
/// Memory limit, in bytes, of the query that a completion runs.
const MEMORY: u64 = 64 << 20;
/// Default and largest number of items.
const ITEMS: [usize; 2] = [50, 500];

pub(super) async fn answer(
    shared: &Arc<AppState>,
    connection: &Connection,
    request: Request,
) -> Result<Response<Body>, Problem> {
    let (parts, content) = request.into_parts();
    if !matches!(parts.method, Method::GET | Method::HEAD | Method::POST) {
        return Err(Problem::method("GET, HEAD, POST, OPTIONS"));
    }
    // Percent-encoding takes at most three characters per byte of the text; the fourth is for other parameters.
    let most = shared.options.max_request_bytes.min(4 * LONGEST_TEXT);
    let parameters = Parameters::of_request(&parts, content, most).await?;
    let before = parameters.one("text")?.ok_or_else(|| {
        Problem::bad_request("the parameter 'text' is missing: the query's text before the cursor")
    })?;
    let after = parameters.one("after")?.unwrap_or_default();
    let limit = match parameters.one("limit")? {
        None => ITEMS[0],
        Some(text) => text
            .trim()
            .parse::<usize>()
            .map_err(|_| Problem::bad_request(format!("limit={text} is not a number of items")))?,
    };
    let patience = parameters.timeout()?.unwrap_or(PATIENCE);
    let patience = patience.min(LONGEST_PATIENCE);
    let labels = match parameters.one("labels")? {
        Some(_) if !parameters.switch("labels")? => Some(Arc::default()),
        _ if shared.options.label_properties.is_empty() => None,
        _ => Some(shared.options.label_properties.clone().into()),
    };
    let asked = Wish {
        labels,
        before,
        after,
        limit: limit.min(ITEMS[1]),
        patience,
        options: QueryOptions::default()
            .with_union_default(parameters.union_default()?.or(shared.options.union_default))
            .with_dataset(parameters.dataset())
            .with_common_prefixes(shared.options.common_prefixes)
            .with_store_prefixes(shared.options.store_prefixes)
            .with_functions(shared.options.functions.clone()),
    };
    let shown = format!("completion of {}", asked.before);
    let admission = AdmissionRequest {
        text: &shown,
        timeout: Some(patience + WAIT),
        memory: Some(MEMORY),
    };
    let tag = parameters.tag()?;
    let made = piece::run(
        shared,
        connection,
        &admission,
        tag,
        move |shared, admitted| {
            let _slot = piece::light_slot(shared, &admitted.query)?;
            admitted.query.set_state(QueryState::Running);
            let begin = Instant::now();
            let found = asked.found(admitted);
            shared.admission.served(WorkClass::Light, begin.elapsed());
            found.map_err(AnswerFailure::running)
        },
    );
    let document = made.await?;
    Ok(text("application/json", format!("{document}\n")))
}

/// A parsed completion request.
struct Wish {
    /// The properties whose objects are labels; `None` for the server's defaults.
    labels: Option<Arc<[String]>>,
    before: String,
    after: String,
    limit: usize,
    patience: Duration,
    options: QueryOptions,
}

impl Wish {
    fn found(self, admitted: &Admitted) -> jindou::Result<Value> {
        let (memory, cancel) = (admitted.query.memory.clone(), admitted.query.token());
        let begin = Instant::now();
        let usual = Unfinished::new(&self.before, &self.after);
        let asked = Unfinished {
            labels: self.labels.unwrap_or_else(|| usual.labels.clone()),
            limit: self.limit,
            patience: self.patience,
            options: self.options.with_memory(memory).with_cancel(cancel),
            ..usual
        };
        let found = admitted.complete(&asked)?;
        Ok(document(&self.before, &found, begin.elapsed()))
    }
}

fn document(before: &str, found: &Completion, took: Duration) -> Value {
    let (counts, sampled) = match found.counts {
        Counts::Nothing => ("none", None),
        Counts::Exact => ("exact", None),
        Counts::Estimate => ("estimate", None),
        Counts::Whole => ("whole", None),
        Counts::Sample(n) => ("sample", Some(n)),
    };
    let slot = match found.slot {
        Slot::Nothing => "nothing",
        Slot::Keyword => "keyword",
        Slot::Prefix => "prefix",
        Slot::Variable => "variable",
        Slot::Expression => "expression",
        Slot::Graph => "graph",
        Slot::Subject => "subject",
        Slot::Predicate => "predicate",
        Slot::Object => "object",
    };
    let items: Vec<Value> = found.items.iter().map(item).collect();
    json!({
        "slot": slot, "from": found.from, "to": before.len(), "word": before.get(found.from..),
        "counts": counts, "sampled": sampled, "partial": found.partial,
        "ms": crate::millis(took), "items": items,
    })
}

fn item(item: &Item) -> Value {
    let mut made = json!({ "text": item.text, "kind": item.kind.name() });
    if let Some(iri) = &item.iri {
        made["iri"] = json!(iri);
    }
    if let Some(count) = item.count {
        made["count"] = json!(count);
    }
    if let Some(label) = &item.label {
        made["label"] = json!(label);
    }
    if let Some((name, iri)) = &item.declare {
        made["prefix"] = json!({ "name": name, "iri": iri });
    }
    made
}
